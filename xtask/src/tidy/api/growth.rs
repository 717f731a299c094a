//! Whether the API can grow without breaking programs: its enums and its structs with public fields are
//! `#[non_exhaustive]`, and it shows nothing of the core, whose types follow the log's format.

use syn::{Attribute, Fields, Item};

use super::sources::{Definition, Sources, public};

/// Complete by their meaning: nothing is ever added.
const COMPLETE: &[(&str, &str)] = &[
    ("Decision", "answers of users, who match all of them"),
    ("Outcome", "in time or not"),
    ("Payload", "bytes, and a map for everything that is said about them"),
    ("UpdateState", "the three stages of an update, which callers match"),
    ("Verdict", "every request ends in one of these ways, and programs must handle each"),
    ("WorkflowKey", "a namespace and an id in it"),
];

/// The crate whose types follow the log's format.
const CORE: &str = "abide_core";

/// Words of the core that have no fields to grow, or are complete.
const WORDS: &[&str] = &[
    "ActivityId",
    "BuildId",
    "DecodeError",
    "EventNumber",
    "ExecutionId",
    "Key",
    "NamespaceId",
    "ParseTimestampError",
    "Payload",
    "Payloads",
    "RunId",
    "TimerId",
    "Timestamp",
    "UpdateId",
    "WorkflowId",
    "WorkflowKey",
];

/// What is wrong with an exported definition, if anything is.
pub(super) fn fault(sources: &Sources, definition: &Definition) -> Option<&'static str> {
    let Definition { module, name } = definition;
    if module[0] == CORE && !WORDS.contains(&name.as_str()) {
        return Some("is a type of the core, which follows the log's format");
    }
    if COMPLETE.iter().any(|(complete, _)| complete == name) {
        return None;
    }
    sources.items(module).iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == name && !item.variants.is_empty() => {
            closed(&item.attrs).then_some("is an enum without #[non_exhaustive]")
        }
        Item::Struct(item) if item.ident == name && only_public_fields(&item.fields) => {
            closed(&item.attrs).then_some("is a struct of public fields without #[non_exhaustive]")
        }
        _ => None,
    })
}

fn closed(attributes: &[Attribute]) -> bool {
    !attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"))
}

/// A wrapper of one value has no name for another.
fn only_public_fields(fields: &Fields) -> bool {
    match fields {
        Fields::Named(fields) => fields.named.iter().all(|field| public(&field.vis)),
        Fields::Unnamed(_) | Fields::Unit => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::files::File;

    use super::*;

    fn fault_of(krate: &str, source: &str) -> Option<&'static str> {
        let file = File::new(format!("crates/{krate}/src/lib.rs"), source);
        let sources = Sources::read(&[file]).unwrap();
        let module = vec![format!("abide_{krate}")];
        fault(&sources, &Definition { module, name: "Shape".to_owned() })
    }

    #[test]
    fn what_cannot_grow_is_found() {
        for closed in ["pub enum Shape { Round }", "pub struct Shape { pub width: u32 }"] {
            assert!(fault_of("sdk", closed).is_some(), "{closed}");
            assert_eq!(fault_of("sdk", &format!("#[non_exhaustive] {closed}")), None);
        }
        for open in [
            "pub struct Shape { pub width: u32, height: u32 }",
            "pub struct Shape(pub u32);",
            "pub enum Shape {}",
        ] {
            assert_eq!(fault_of("sdk", open), None, "{open}");
        }
    }

    #[test]
    fn types_of_the_core_are_found() {
        assert!(fault_of("core", "#[non_exhaustive] pub enum Shape { Round }").is_some());
    }
}
