//! Authorization: which caller may perform which operation, decided once at the engine's entry
//! point.

use abide_core::{
    limits::InvalidField,
    operation::{AnyOperation, CallError, Caller},
};

/// Refuses a caller that may not perform this operation.
pub(crate) fn admit(caller: &Caller, operation: &AnyOperation) -> Result<(), CallError> {
    let name = operation.name();
    if caller.may(name) {
        return Ok(());
    }
    let problem = format!("is {name:?}, which needs the role {:?}", name.needs());
    Err(InvalidField::new("operation", problem).into())
}

#[cfg(test)]
mod tests {
    use abide_core::{
        ids::WorkflowKey,
        operation::{ListNodes, Repair, Role, RunTarget},
    };

    use super::*;

    #[test]
    fn a_viewer_looks_and_repairs_nothing() {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "order".into() };
        let target = RunTarget { workflow, run: None };
        let repair = Repair { target, identity: "viewer".into() }.into();
        let viewer = Caller::new(Role::Viewer);
        assert_eq!(admit(&viewer, &ListNodes.into()), Ok(()));
        let refused = admit(&viewer, &repair).expect_err("it is an operator's");
        assert_eq!(refused.to_string(), "operation is Repair, which needs the role Operator");
        assert_eq!(admit(&Caller::TRUSTED, &repair), Ok(()));
    }
}
