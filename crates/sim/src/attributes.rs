//! The search attributes that the namespaces of a world have registered.

use abide_core::{
    codec,
    search::{AttributeKind, Definitions},
};
use abide_sdk::search::SearchAttribute;
use abide_store::rows::RegistryRow;

use crate::names::NAMESPACES;

pub const STAGE: SearchAttribute<i64> = SearchAttribute::int("Stage");
pub const TAGS: SearchAttribute<Vec<String>> = SearchAttribute::keyword_list("Tags");

/// Values that programs set.
pub const STAGE_VALUES: [i64; 3] = [0, 1, 2];
pub const TAG_VALUES: [&str; 3] = ["big", "new", "odd"];

pub fn definitions() -> Definitions {
    let kinds = [(STAGE.name(), AttributeKind::Int), (TAGS.name(), AttributeKind::KeywordList)];
    kinds.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
}

/// The rows of the registry that say so.
pub fn registered() -> impl Iterator<Item = RegistryRow> {
    NAMESPACES.into_iter().map(|namespace| RegistryRow {
        name: Definitions::registry_name(&namespace.into()),
        version: 1,
        value: codec::encode_definitions(&definitions()),
    })
}
