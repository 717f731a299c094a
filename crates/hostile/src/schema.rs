//! The API's descriptors: messages with their fields, and methods. Everything here that makes
//! messages uses them, so a new field or method is attacked as soon as it exists.

use std::collections::HashMap;

use abide_proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::Finding;

/// The service that a server without a cluster does not offer.
const BETWEEN_NODES: &str = "abide.v1.Peers";

/// All messages, and the methods of a server without a cluster.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Message types; other tables refer to them by index.
    pub(crate) messages: Vec<MessageType>,
    pub(crate) methods: Vec<Method>,
}

/// A kind of message.
#[derive(Debug)]
pub(crate) struct MessageType {
    /// The name without its package.
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldType>,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(crate) struct FieldType {
    pub(crate) name: String,
    pub(crate) tag: u32,
    pub(crate) kind: Kind,
    /// Whether the field is a list.
    pub(crate) repeated: bool,
    /// Whether the field may be absent.
    pub(crate) optional: bool,
    /// Index of the `oneof` within the message, if the field is one of its cases.
    pub(crate) choice: Option<i32>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message with this index.
    Message(usize),
    Text,
    Bytes,
    /// A varint: a number or a boolean.
    Number,
    /// An enumeration with these numbers.
    Enumeration(Vec<i32>),
    Fixed32,
    Fixed64,
}

#[derive(Debug)]
pub(crate) struct Method {
    /// The path, such as `/abide.v1.Abide/StartRun`.
    pub(crate) path: String,
    /// Index of the request's message type.
    pub(crate) input: usize,
    /// Index of the answer's message type.
    pub(crate) output: usize,
    /// Whether the caller sends a stream of messages.
    pub(crate) streams: bool,
    /// Whether the server answers with a stream that goes on as time passes.
    pub(crate) follows: bool,
}

/// Fields that valid requests mostly leave out.
const LEFT_OUT: &[&str] =
    &["run", "page_token", "page_size", "signal", "update", "cron", "retry", "filter", "recorded"];

impl Schema {
    /// Reads the descriptors that are built into this program.
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

    /// Finds the method whose path ends with this name.
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

/// Collects messages, with those that are defined inside them.
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
