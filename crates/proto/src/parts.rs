//! Counts the parts of a request: fields, elements of lists, entries of maps, on all levels. They
//! are counted before memory is spent on them, because an empty part takes a byte or two on the
//! wire and much more in memory. The descriptors tell which fields are messages: bytes that users
//! choose may look like one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use abide_core::limits::InvalidField;
use prost::{
    Message, Name,
    bytes::Buf,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::DESCRIPTORS;

/// Bound on the parts down to the commands of a task, which are the large ones: several times what
/// a run can have pending.
const NEAR_MAX: usize = 1 << 16;

/// Number of levels that [`NEAR_MAX`] applies to.
const NEAR_LEVELS: usize = 3;

/// Bound on the parts of all levels: as many commands as a task may have, with fifty parts each.
const ALL_MAX: usize = 1 << 19;

/// Levels that are counted. The decoder refuses deeper nesting.
const LEVELS: usize = 100;

static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::read);

/// Number of parts of a request. Each takes memory once it is decoded, however few bytes it has on
/// the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartCount {
    /// Parts of all levels.
    pub all: usize,
    /// For each message that is a field of the request: its tag, and the number of its parts, itself
    /// included. In order.
    pub fields: Vec<(u32, usize)>,
}

impl PartCount {
    /// The numbers of parts of the messages in the field with this tag, in order; then zeroes.
    pub fn of_field(&self, tag: u32) -> impl Iterator<Item = usize> {
        let of_field = self.fields.iter().filter(move |(of, _)| *of == tag);
        of_field.map(|(_, parts)| *parts).chain(std::iter::repeat(0))
    }
}

/// Counts the parts of the request to a method such as `/abide.v1.Abide/StartRun`, up to the bounds.
/// Bytes that are not such a request have no parts.
pub fn of_request(method: &str, message: &[u8]) -> usize {
    let Some(request) = SCHEMA.methods.get(method) else { return 0 };
    let mut count = Count::default();
    // Over the bound, the request is refused when it is decoded.
    let _ = count.take_message(message, *request, 0);
    count.all
}

/// Counts the parts of a request, and refuses it if they are more than the bounds. Bytes that are not
/// a request have no parts.
pub(crate) fn check<U: Name>(message: &[u8]) -> Result<PartCount, InvalidField> {
    let Some(request) = SCHEMA.requests.get(&U::full_name()) else {
        return Ok(PartCount::default());
    };
    let mut count = Count::default();
    let counted = count.take_message(message, *request, 0);
    counted.map_err(|bound| {
        let problem = format!("has more than {bound} parts; send smaller requests");
        InvalidField::new("request", problem)
    })?;
    Ok(PartCount { all: count.all, fields: count.fields })
}

/// Parts that were found so far.
#[derive(Default)]
struct Count {
    near: usize,
    all: usize,
    fields: Vec<(u32, usize)>,
}

impl Count {
    /// Counts the parts of a message, or returns the bound that they exceed. Malformed bytes are
    /// left to the decoder, which reports what is wrong.
    fn take_message(
        &mut self,
        mut message: &[u8],
        index: usize,
        level: usize,
    ) -> Result<(), usize> {
        while message.has_remaining() {
            let Ok((tag, wire_type)) = decode_key(&mut message) else { break };
            let mut content = message;
            if skip_field(wire_type, tag, &mut message, DecodeContext::default()).is_err() {
                break;
            }
            self.take(1, level)?;
            if wire_type != WireType::LengthDelimited {
                continue;
            }
            content = &content[..content.len() - message.len()];
            // The length precedes the content, and was already read to skip it.
            let holds =
                SCHEMA.messages[index].get(&tag).filter(|_| decode_varint(&mut content).is_ok());
            match holds {
                Some(Holds::Message(inner)) if level < LEVELS => {
                    let before = self.all;
                    self.take_message(content, *inner, level + 1)?;
                    if level == 0 {
                        self.fields.push((tag, 1 + self.all - before));
                    }
                }
                Some(Holds::Numbers) => {
                    // The last byte of each number has its highest bit clear.
                    let numbers = content.iter().filter(|byte| **byte < 0x80).count();
                    self.take(numbers, level)?;
                }
                Some(Holds::Message(_)) | None => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, parts: usize, level: usize) -> Result<(), usize> {
        self.all += parts;
        if level < NEAR_LEVELS {
            self.near += parts;
        }
        if self.near > NEAR_MAX {
            return Err(NEAR_MAX);
        }
        if self.all > ALL_MAX { Err(ALL_MAX) } else { Ok(()) }
    }
}

/// Which fields of which messages can hold parts.
struct Schema {
    /// Fields with parts, by message and tag.
    messages: Vec<BTreeMap<u32, Holds>>,
    /// The messages that are requests or frames of clients and workers, by full name.
    requests: HashMap<String, usize>,
    /// The same by method: `/package.Service/Method`.
    methods: HashMap<String, usize>,
}

/// The content of a field with parts.
enum Holds {
    /// The message with this index.
    Message(usize),
    /// Packed numbers, each of which counts as a part.
    Numbers,
}

impl Schema {
    fn read() -> Self {
        // The descriptors are part of the program; a test checks that they can be read.
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
        let mut named = Vec::new();
        for file in &files.file {
            collect(&format!(".{}", file.package()), &file.message_type, &mut named);
        }
        let indices: HashMap<_, _> =
            named.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
        let holds = |field: &FieldDescriptorProto| match field.r#type() {
            Type::Message => indices.get(field.type_name()).copied().map(Holds::Message),
            Type::String | Type::Bytes | Type::Group => None,
            _ if field.label() == Label::Repeated => Some(Holds::Numbers),
            _ => None,
        };
        let fields = |message: &DescriptorProto| {
            let tag = |field: &FieldDescriptorProto| u32::try_from(field.number()).ok();
            message.field.iter().filter_map(|field| Some((tag(field)?, holds(field)?))).collect()
        };
        let messages = named.iter().map(|(_, message)| fields(message)).collect();
        let (mut requests, mut methods) = (HashMap::new(), HashMap::new());
        for file in &files.file {
            for (service, method) in file
                .service
                .iter()
                .flat_map(|service| service.method.iter().map(move |it| (service, it)))
            {
                let input = method.input_type();
                let Some(index) = indices.get(input).copied() else { continue };
                requests.insert(input.trim_start_matches('.').to_owned(), index);
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                methods.insert(path, index);
            }
        }
        Self { messages, requests, methods }
    }
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
    use abide_core::codec::generated::{Failure, FailureLink, Payload, RunSpec};

    use super::*;
    use crate::generated::{
        CallsFrame, Command, CompleteTask, Completion, FailTask, NumberedCall, StartRunRequest,
        WorkerFrame, completion, numbered_call::Call,
    };

    /// The tag of the calls in their frame.
    const CALLS: u32 = 1;

    fn check<U: Name>(message: &U) -> Result<(), InvalidField> {
        super::check::<U>(&message.encode_to_vec()).map(drop)
    }

    fn start(input: Vec<Payload>) -> StartRunRequest {
        let spec = Some(RunSpec { input, ..RunSpec::default() });
        StartRunRequest { spec, ..StartRunRequest::default() }
    }

    fn frame(completion: completion::Completion) -> WorkerFrame {
        let completions = vec![Completion { number: 1, completion: Some(completion) }];
        WorkerFrame { completions, ..WorkerFrame::default() }
    }

    #[test]
    fn very_many_calls_are_refused() {
        let frame = |calls| {
            let calls = vec![NumberedCall::default(); calls];
            CallsFrame { calls, ..CallsFrame::default() }
        };
        assert_eq!(check(&frame(NEAR_MAX)), Ok(()));
        let refused = check(&frame(NEAR_MAX + 1)).expect_err("one too many");
        assert!(refused.problem.contains("65536 parts"), "{}", refused.problem);
    }

    /// Also of a small request: an empty payload has two bytes on the wire, and many more in memory.
    #[test]
    fn parts_are_counted_whatever_the_size_and_also_for_each_call() {
        let request = start(vec![Payload::default(); 3]);
        let bytes = request.encode_to_vec();
        assert_eq!(super::check::<StartRunRequest>(&bytes).map(|count| count.all), Ok(4));
        assert_eq!(of_request("/abide.v1.Abide/StartRun", &bytes), 4);
        assert_eq!(of_request("/abide.v1.Abide/Nothing", &bytes), 0);
        let call = |request| NumberedCall { number: 7, call: Some(Call::Start(request)) };
        let calls = vec![call(start(vec![])), call(request), NumberedCall::default()];
        let frame = CallsFrame { calls, abandoned: vec![1, 2] }.encode_to_vec();
        let count = super::check::<CallsFrame>(&frame).expect("few parts");
        // The call, its number, its request and the request's specification; then the payloads.
        assert_eq!(count.of_field(CALLS).take(4).collect::<Vec<_>>(), [4, 7, 1, 0]);
        assert_eq!(count.all, 4 + 7 + 1 + 3);
    }

    #[test]
    fn very_many_numbers_are_refused() {
        let frame = |abandoned| CallsFrame { abandoned, ..CallsFrame::default() };
        assert_eq!(check(&frame(vec![u64::MAX; NEAR_MAX - 1])), Ok(()));
        assert!(check(&frame(vec![0; NEAR_MAX])).is_err());
    }

    #[test]
    fn very_many_commands_are_refused() {
        let frame = |commands| {
            let commands = vec![Command::default(); commands];
            frame(completion::Completion::CompleteTask(CompleteTask {
                commands,
                ..CompleteTask::default()
            }))
        };
        assert_eq!(check(&frame(10_000)), Ok(()));
        assert!(check(&frame(NEAR_MAX)).is_err());
    }

    #[test]
    fn very_many_parts_deep_inside_are_refused() {
        assert_eq!(check(&start(vec![Payload::default(); 1_000])), Ok(()));
        assert!(check(&start(vec![Payload::default(); NEAR_MAX])).is_err());
        let failed = |details| {
            let links = vec![FailureLink { details, ..FailureLink::default() }];
            frame(completion::Completion::FailTask(FailTask {
                failure: Some(Failure { links }),
                ..FailTask::default()
            }))
        };
        assert_eq!(check(&failed(vec![Payload::default(); 10_000])), Ok(()));
        assert!(check(&failed(vec![Payload::default(); ALL_MAX])).is_err());
    }

    /// A message that could hold itself would be as deep as its sender likes, and so would be the
    /// value decoded from it: dropping, copying or comparing that value could overflow the stack.
    #[test]
    fn no_message_can_hold_itself() {
        fn depth(index: usize, around: &mut Vec<usize>) -> usize {
            assert!(!around.contains(&index), "message {index} holds itself");
            around.push(index);
            let inner = SCHEMA.messages[index].values().filter_map(|holds| match holds {
                Holds::Message(inner) => Some(*inner),
                Holds::Numbers => None,
            });
            let deepest = inner.map(|inner| depth(inner, around)).max();
            around.pop();
            1 + deepest.unwrap_or(0)
        }
        let deepest = SCHEMA.requests.values().map(|request| depth(*request, &mut Vec::new()));
        let deepest = deepest.max().expect("there are requests");
        assert!((5..20).contains(&deepest), "requests are {deepest} levels deep");
    }

    #[test]
    fn bytes_of_users_are_not_counted() {
        let looks_like_a_list = start(vec![Payload::default(); NEAR_MAX]).encode_to_vec();
        let payload = Payload { data: looks_like_a_list.into(), ..Payload::default() };
        assert_eq!(check(&start(vec![payload])), Ok(()));
    }
}
