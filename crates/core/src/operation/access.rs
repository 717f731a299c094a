//! Who asks, and what that caller may ask for.

use super::OperationName;

/// What a caller may do. Each role may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks at runs and changes nothing.
    Viewer,
    /// Starts runs and sends them messages.
    Client,
    /// Decides over runs from outside: ends, pauses, moves and repairs them.
    Operator,
}

/// Who asks. The edge that takes a request makes the caller, and the engine looks at it once, at its
/// door: what travels on from there has been admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    role: Role,
}

impl Caller {
    /// A caller that is not authenticated: the program around an embedded engine, and every client of
    /// a server, as long as servers have no users.
    pub const TRUSTED: Self = Self::new(Role::Operator);

    /// A caller of this role.
    pub const fn new(role: Role) -> Self {
        Self { role }
    }

    /// The caller may ask for this.
    pub fn may(&self, operation: OperationName) -> bool {
        operation.needs() <= self.role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_may_ask_for_what_its_role_and_the_lower_ones_need() {
        for name in OperationName::ALL {
            assert!(Caller::TRUSTED.may(*name), "{name:?}");
            let viewer = Caller::new(Role::Viewer);
            assert!(!viewer.may(*name) || name.repeatable(), "{name:?} changes something");
            assert_eq!(Caller::new(Role::Client).may(*name), name.needs() < Role::Operator);
        }
    }
}
