//! Names that a message cannot have, because they are methods of every handle: the typed handle would
//! hide them without a word. Signals are methods of the handles of children too.

use super::model::{Handler, Mark};
use crate::signature::error;

/// The methods of `WorkflowHandle`.
const HANDLE_METHODS: [&str; 30] = [
    "as_ref",
    "cancel",
    "clone",
    "delete",
    "describe",
    "follow_history",
    "follow_waits",
    "history",
    "id",
    "pause",
    "query",
    "query_untyped",
    "repair",
    "reschedule_timer",
    "reschedule_wait",
    "reset",
    "result",
    "result_untyped",
    "retry",
    "run",
    "run_id",
    "signal",
    "signal_untyped",
    "terminate",
    "unpause",
    "update",
    "update_by_id",
    "update_by_id_untyped",
    "update_untyped",
    "waits",
];

/// The methods of `ChildHandle` and `ExternalWorkflow` that `WorkflowHandle` does not have.
const CHILD_METHODS: [&str; 1] = ["workflow_id"];

pub(super) fn check(mark: Mark, handlers: &[Handler]) -> syn::Result<()> {
    let of_children = if mark == Mark::Signal { CHILD_METHODS.as_slice() } else { &[] };
    let methods = HANDLE_METHODS.iter().chain(of_children);
    let taken = |handler: &&Handler| methods.clone().any(|method| handler.ident == method);
    match handlers.iter().find(taken) {
        Some(Handler { ident, name, .. }) => {
            let (attribute, name) = (mark.attribute(), name.value());
            let message = format!(
                "`{ident}` is a method of every handle: rename this one, and keep its name on the \
                 wire by `#[{attribute}(name = \"{name}\")]` if runs or clients know it"
            );
            Err(error(ident, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use syn::{Attribute, ImplItem, Item, Type, Visibility};

    use super::{CHILD_METHODS, HANDLE_METHODS};

    fn hidden(attribute: &Attribute) -> bool {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    }

    /// The methods in all `impl` blocks of a type in a folder of the SDK, as its sources have them.
    fn methods(folder: &str, handle: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/src").join(folder);
        let mut methods = BTreeSet::new();
        for file in fs::read_dir(folder).expect("the sources") {
            let text = fs::read_to_string(file.expect("a file").path()).expect("a source");
            for item in syn::parse_file(&text).expect("Rust").items {
                let Item::Impl(block) = item else { continue };
                let of_handle = matches!(&*block.self_ty, Type::Path(path)
                    if path.path.segments.last().is_some_and(|it| it.ident == handle));
                for item in block.items.into_iter().filter(|_| of_handle) {
                    let ImplItem::Fn(method) = item else { continue };
                    let shown = matches!(method.vis, Visibility::Public(_));
                    if shown && !method.attrs.iter().any(hidden) {
                        methods.insert(method.sig.ident.to_string());
                    }
                }
            }
        }
        methods
    }

    #[test]
    fn all_methods_of_handles_are_known() {
        let mut known: BTreeSet<_> = HANDLE_METHODS.map(str::to_owned).into();
        for of_traits in ["as_ref", "clone"] {
            assert!(known.remove(of_traits));
        }
        assert_eq!(methods("client", "WorkflowHandle"), known);
    }

    #[test]
    fn all_methods_of_the_handles_of_children_are_known() {
        let mut methods_of_children = methods("context", "ChildHandle");
        methods_of_children.extend(methods("context", "ExternalWorkflow"));
        methods_of_children.retain(|method| !HANDLE_METHODS.contains(&method.as_str()));
        assert_eq!(methods_of_children, CHILD_METHODS.map(str::to_owned).into());
    }
}
