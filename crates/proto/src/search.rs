//! Search attributes as messages.

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    operation::{
        CreateSearchAttribute, DeleteSearchAttribute, ListSearchAttributes, SearchAttributes,
    },
    search::{AttributeKind, Definitions},
};

use crate::{
    field::{case, enumeration, parts, word},
    generated as wire,
};

enumeration!(AttributeKind, AttributeKind { Keyword, KeywordList, Text, Int, Double, Bool, Time });

impl From<CreateSearchAttribute> for wire::CreateSearchAttributeRequest {
    fn from(CreateSearchAttribute { namespace, name, kind }: CreateSearchAttribute) -> Self {
        let kind = wire::AttributeKind::from(kind).into();
        Self { namespace: namespace.to_wire(), name, kind }
    }
}

impl TryFrom<wire::CreateSearchAttributeRequest> for CreateSearchAttribute {
    type Error = InvalidField;

    fn try_from(wire: wire::CreateSearchAttributeRequest) -> Result<Self, InvalidField> {
        Ok(Self {
            namespace: word("namespace", wire.namespace)?,
            name: wire.name,
            kind: case::<_, wire::AttributeKind>("kind", wire.kind)?,
        })
    }
}

impl From<DeleteSearchAttribute> for wire::DeleteSearchAttributeRequest {
    fn from(DeleteSearchAttribute { namespace, name }: DeleteSearchAttribute) -> Self {
        Self { namespace: namespace.to_wire(), name }
    }
}

impl TryFrom<wire::DeleteSearchAttributeRequest> for DeleteSearchAttribute {
    type Error = InvalidField;

    fn try_from(wire: wire::DeleteSearchAttributeRequest) -> Result<Self, InvalidField> {
        Ok(Self { namespace: word("namespace", wire.namespace)?, name: wire.name })
    }
}

impl From<ListSearchAttributes> for wire::ListSearchAttributesRequest {
    fn from(ListSearchAttributes { namespace }: ListSearchAttributes) -> Self {
        Self { namespace: namespace.to_wire() }
    }
}

impl TryFrom<wire::ListSearchAttributesRequest> for ListSearchAttributes {
    type Error = InvalidField;

    fn try_from(wire: wire::ListSearchAttributesRequest) -> Result<Self, InvalidField> {
        Ok(Self { namespace: word("namespace", wire.namespace)? })
    }
}

impl From<SearchAttributes> for wire::SearchAttributesResponse {
    fn from(SearchAttributes(attributes): SearchAttributes) -> Self {
        let attribute = |(name, kind): (&str, AttributeKind)| wire::SearchAttribute {
            name: name.to_owned(),
            kind: wire::AttributeKind::from(kind).into(),
        };
        Self { attributes: attributes.iter().map(attribute).collect() }
    }
}

impl TryFrom<wire::SearchAttributesResponse> for SearchAttributes {
    type Error = InvalidField;

    fn try_from(wire: wire::SearchAttributesResponse) -> Result<Self, InvalidField> {
        let attributes: Vec<Named> = parts("attributes", wire.attributes)?;
        let attributes = attributes.into_iter().map(|Named(name, kind)| (name, kind));
        Ok(Self(attributes.collect::<Definitions>()))
    }
}

/// An attribute with its type.
struct Named(String, AttributeKind);

impl TryFrom<wire::SearchAttribute> for Named {
    type Error = InvalidField;

    fn try_from(wire: wire::SearchAttribute) -> Result<Self, InvalidField> {
        Ok(Self(wire.name, case::<_, wire::AttributeKind>("kind", wire.kind)?))
    }
}
