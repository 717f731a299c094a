//! What the API's descriptors say: messages with their fields, and methods. Everything here that makes
//! messages goes by it, so a new field or method is attacked as soon as it exists.

use std::collections::HashMap;

use abide_proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::Finding;

/// The service of which a lone server has nothing.
const BETWEEN_NODES: &str = "abide.v1.Peers";

/// All messages and the methods that a lone server has.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Messages, by their index.
    pub(crate) messages: Vec<MessageType>,
    /// What can be called.
    pub(crate) methods: Vec<Method>,
}

/// A kind of message.
#[derive(Debug)]
pub(crate) struct MessageType {
    /// Without its package.
    pub(crate) name: String,
    /// Its fields.
    pub(crate) fields: Vec<FieldType>,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) struct FieldType {
    /// Its name.
    pub(crate) name: String,
    /// Its tag.
    pub(crate) tag: u32,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Any number of them.
    pub(crate) repeated: bool,
    /// It may be left out.
    pub(crate) optional: bool,
    /// It is one case of several: their common number within the message.
    pub(crate) choice: Option<i32>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message of this index.
    Message(usize),
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// A number, or a truth, of variable length.
    Number,
    /// One of these numbers.
    Enumeration(Vec<i32>),
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
}

/// Something that can be called.
#[derive(Debug)]
pub(crate) struct Method {
    /// As in `/abide.v1.Abide/StartRun`.
    pub(crate) path: String,
    /// The request's message.
    pub(crate) input: usize,
    /// The answer's message.
    pub(crate) output: usize,
    /// The caller sends as many messages as it likes.
    pub(crate) streams: bool,
    /// The server answers with as many messages as there are, as time goes by.
    pub(crate) follows: bool,
}

/// Fields that good requests mostly do without.
const LEFT_OUT: &[&str] =
    &["run", "page_token", "page_size", "signal", "update", "cron", "retry", "filter", "recorded"];

impl Schema {
    /// The schema of this program.
    pub(crate) fn read() -> Result<Self, Finding> {
        let files = FileDescriptorSet::decode(DESCRIPTORS)?;
        let (mut named, mut enumerations) = (Vec::new(), HashMap::new());
        for file in &files.file {
            let scope = format!(".{}", file.package());
            for it in &file.enum_type {
                let numbers = it.value.iter().map(|value| value.number()).collect();
                enumerations.insert(format!("{scope}.{}", it.name()), numbers);
            }
            collect(&scope, &file.message_type, &mut named);
        }
        let indices: HashMap<&str, usize> =
            named.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
        let messages = named.iter().map(|(_, message)| MessageType {
            name: message.name().to_owned(),
            fields: message
                .field
                .iter()
                .filter_map(|field| field_type(field, &indices, &enumerations))
                .collect(),
        });
        let messages = messages.collect();
        let mut methods = Vec::new();
        for file in &files.file {
            for service in &file.service {
                let service_name = format!("{}.{}", file.package(), service.name());
                for method in service.method.iter().filter(|_| service_name != BETWEEN_NODES) {
                    let index = |name: &str| indices.get(name).copied();
                    let (Some(input), Some(output)) =
                        (index(method.input_type()), index(method.output_type()))
                    else {
                        continue;
                    };
                    methods.push(Method {
                        path: format!("/{service_name}/{}", method.name()),
                        input,
                        output,
                        streams: method.client_streaming(),
                        follows: method.server_streaming(),
                    });
                }
            }
        }
        Ok(Self { messages, methods })
    }

    /// The method of this name.
    pub(crate) fn method(&self, name: &str) -> Result<&Method, Finding> {
        let found = self.methods.iter().find(|method| method.path.ends_with(name));
        found.ok_or_else(|| Finding::new(format!("there is no method {name}")))
    }
}

fn field_type(
    field: &FieldDescriptorProto,
    messages: &HashMap<&str, usize>,
    enumerations: &HashMap<String, Vec<i32>>,
) -> Option<FieldType> {
    let kind = match field.r#type() {
        Type::Message | Type::Group => Kind::Message(*messages.get(field.type_name())?),
        Type::String => Kind::Text,
        Type::Bytes => Kind::Bytes,
        Type::Enum => Kind::Enumeration(enumerations.get(field.type_name())?.clone()),
        Type::Fixed32 | Type::Sfixed32 | Type::Float => Kind::Fixed32,
        Type::Fixed64 | Type::Sfixed64 | Type::Double => Kind::Fixed64,
        Type::Bool
        | Type::Int32
        | Type::Int64
        | Type::Uint32
        | Type::Uint64
        | Type::Sint32
        | Type::Sint64 => Kind::Number,
    };
    let optional = field.proto3_optional() || LEFT_OUT.contains(&field.name());
    let choice = field.oneof_index.filter(|_| !field.proto3_optional());
    Some(FieldType {
        name: field.name().to_owned(),
        tag: u32::try_from(field.number()).ok()?,
        kind,
        repeated: field.label() == Label::Repeated,
        optional,
        choice,
    })
}

/// Messages with those that are defined within them.
fn collect<'a>(
    scope: &str,
    messages: &'a [DescriptorProto],
    named: &mut Vec<(String, &'a DescriptorProto)>,
) {
    for message in messages {
        let name = format!("{scope}.{}", message.name());
        collect(&name, &message.nested_type, named);
        named.push((name, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_are_understood() {
        let schema = Schema::read().expect("the schema");
        assert!(schema.methods.iter().any(|method| method.path == "/abide.v1.Workers/Connect"));
        assert_eq!(schema.methods.iter().filter(|method| method.streams).count(), 2);
        let start = &schema.messages[schema.method("/StartRun").expect("a method").input];
        let spec = start.fields.iter().find(|field| field.name == "spec").expect("a field");
        assert!(matches!(spec.kind, Kind::Message(_)) && spec.tag == 3 && !spec.repeated);
    }
}
