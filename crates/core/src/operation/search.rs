//! The search attributes of a namespace.

use crate::{
    ids::NamespaceId,
    search::{AttributeKind, Definitions},
};

/// Registers a search attribute. To repeat it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateSearchAttribute {
    pub namespace: NamespaceId,
    pub name: String,
    pub kind: AttributeKind,
}

/// Removes a search attribute. Runs keep the values that they have, which no query finds. To repeat it
/// changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteSearchAttribute {
    pub namespace: NamespaceId,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSearchAttributes {
    pub namespace: NamespaceId,
}

/// All search attributes of the namespace, after what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchAttributes(pub Definitions);
