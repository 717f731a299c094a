//! Every text of a command has a bound. The descriptors tell which fields are texts, so a new field
//! without a bound fails here as soon as it exists.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    command::{Ask, Command},
    event::{ActivitySpec, Origin, RunSpec, TimerSpec},
    ids::StartId,
    limits::Limits,
    retry::RetryPolicy,
    run::{self, CompleteTask, Context, Input, Reply, Run, StartRun, StartTask},
};
use abide_proto::{DESCRIPTORS, generated as wire};
use prost::{
    Message,
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint},
};
use prost_types::{DescriptorProto, FileDescriptorSet, field_descriptor_proto::Type};

use crate::{
    values::{activity_spec, extension, run as run_id, time, timer_spec, workflow},
    workers::every_ask,
};

/// Longer than any text may be under [`limits`].
const LONG: usize = 3_000;

fn limits() -> Limits {
    let most = LONG - 500;
    Limits { payload_bytes: most, wait_details_bytes: most, ..Limits::default() }
}

/// What is too large to be an outcome goes to the caller of the update, and is no fault of the task.
const OUTCOMES: [&str; 2] = ["reject_update.failure", "complete_update.outcome"];

/// Fields of a message, by tag: the name, and the message type if it is one; texts have no type.
type Fields = BTreeMap<u32, (String, Option<String>)>;

/// The fields of every message type that are texts or messages.
fn schema() -> BTreeMap<String, Fields> {
    fn collect(scope: &str, messages: &[DescriptorProto], types: &mut BTreeMap<String, Fields>) {
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            let fields = message.field.iter().filter_map(|field| {
                let of = match field.r#type() {
                    Type::String => None,
                    Type::Message => Some(field.type_name().to_owned()),
                    _ => return None,
                };
                Some((u32::try_from(field.number()).ok()?, (field.name().to_owned(), of)))
            });
            types.insert(name.clone(), fields.collect());
            collect(&name, &message.nested_type, types);
        }
    }
    let files = FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
    let mut types = BTreeMap::new();
    for file in &files.file {
        collect(&format!(".{}", file.package()), &file.message_type, &mut types);
    }
    types
}

/// A message with one of its texts made long, and which text that is.
struct Variant {
    path: String,
    field: (String, u32),
    bytes: Vec<u8>,
}

/// All variants of a message of this type.
fn variants(schema: &BTreeMap<String, Fields>, of: &str, path: &str, bytes: &[u8]) -> Vec<Variant> {
    let mut variants = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let begin = bytes.len() - rest.len();
        let (tag, wire_type) = decode_key(&mut rest).expect("a key");
        let value = match wire_type {
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut rest).expect("a length"));
                let (value, after) = rest.split_at(length.expect("small"));
                rest = after;
                value
            }
            WireType::Varint => {
                decode_varint(&mut rest).expect("a number");
                continue;
            }
            other => panic!("no field here is {other:?}"),
        };
        let Some((name, holds)) = schema[of].get(&tag) else { continue };
        let path = format!("{path}.{name}");
        let inner = match holds {
            Some(holds) => variants_of_field(schema, holds, &path, value),
            None => vec![((of.to_owned(), tag), path, vec![b'x'; LONG])],
        };
        let end = bytes.len() - rest.len();
        variants.extend(inner.into_iter().map(|(field, path, value)| {
            let mut changed = bytes[..begin].to_vec();
            encode_key(tag, WireType::LengthDelimited, &mut changed);
            encode_varint(value.len() as u64, &mut changed);
            changed.extend(value);
            changed.extend(&bytes[end..]);
            Variant { path, field, bytes: changed }
        }));
    }
    variants
}

fn variants_of_field(
    schema: &BTreeMap<String, Fields>,
    of: &str,
    path: &str,
    bytes: &[u8],
) -> Vec<((String, u32), String, Vec<u8>)> {
    let inner = variants(schema, of, path, bytes).into_iter();
    inner.map(|variant| (variant.field, variant.path, variant.bytes)).collect()
}

/// All texts that a message of this type can hold, at any depth.
fn texts(schema: &BTreeMap<String, Fields>, of: &str) -> BTreeSet<(String, u32)> {
    let (mut open, mut seen, mut texts) = (vec![of.to_owned()], BTreeSet::new(), BTreeSet::new());
    while let Some(of) = open.pop() {
        if !seen.insert(of.clone()) {
            continue;
        }
        for (tag, (_, holds)) in &schema[&of] {
            match holds {
                Some(holds) => open.push(holds.clone()),
                None => drop(texts.insert((of.clone(), *tag))),
            }
        }
    }
    texts
}

/// What the run answers to a task with this command.
fn answer(command: Command) -> Reply {
    let limits = limits();
    let context = Context { now: time(1), next_run: run_id(2), limits: &limits };
    let spec = RunSpec { workflow_type: "w".into(), queue: "q".into(), ..RunSpec::default() };
    let (mut run, _): (Run, _) = run::start(&context, StartRun::new(workflow(), run_id(1), spec));
    let start = StartId { incarnation: 1, counter: 1 };
    let taken = StartTask { start, session: "s".into(), identity: String::new(), build: None };
    run::decide(&mut run, &context, Input::StartTask(taken)).expect("a task");
    let completion = CompleteTask {
        start,
        commands: vec![command],
        flags: BTreeSet::new(),
        sdk_metadata: Default::default(),
        force_next: false,
        carried: Vec::new(),
    };
    let input = Input::CompleteTask(Box::new(completion));
    run::decide(&mut run, &context, input).expect("an answer").reply
}

fn samples() -> Vec<Ask> {
    let origins = [
        Origin::CreateTimer,
        Origin::ExternalEvent { name: "s".into() },
        Origin::Condition { key: Some("k".into()), fingerprint: Some("f".into()) },
        Origin::ActivityRetry { execution: "e".into() },
        Origin::ChildWorkflowRetry { workflow: "w".into() },
    ];
    let timers =
        origins.map(|origin| Ask::StartTimer(TimerSpec { origin: Some(origin), ..timer_spec() }));
    let retry = Some(RetryPolicy::default().non_retryable("T"));
    let mut asks = every_ask();
    asks.extend(timers);
    asks.push(Ask::ScheduleActivity(ActivitySpec { retry, ..activity_spec() }));
    asks
}

#[test]
fn every_text_of_a_command_has_a_bound() {
    const COMMAND: &str = ".abide.v1.Command";
    let schema = schema();
    let mut seen = BTreeSet::new();
    for ask in samples() {
        let sample = Command { extension: extension(), ..ask.into() };
        let bytes = wire::Command::from(sample).encode_to_vec();
        for variant in variants(&schema, COMMAND, "", &bytes) {
            let path = variant.path.trim_start_matches('.');
            seen.insert(variant.field);
            if OUTCOMES.iter().any(|outcome| path.starts_with(outcome)) {
                continue;
            }
            let command = wire::Command::decode(&*variant.bytes).expect("a command");
            let Ok(command) = Command::try_from(command) else { continue };
            let reply = answer(command);
            let Reply::TaskRefused { message, .. } = &reply else {
                panic!("{path} may have {LONG} bytes: {reply:?}");
            };
            assert!(
                message.len() < LONG && message.contains("bytes, the limit is"),
                "{path}: {message}"
            );
        }
    }
    let missing: Vec<_> = texts(&schema, COMMAND).difference(&seen).cloned().collect();
    assert_eq!(missing, [], "no sample has these texts");
}
