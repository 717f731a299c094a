//! The worst shapes of every message: each field of each request and frame, repeated very often,
//! very long, or nested inside itself. The rest of the message is valid, so that it gets as far as
//! possible. Shapes that are refused before their fields are read are as large as a message may be,
//! and are sent once per method; the others are as large as possible without being refused for
//! their number of parts.

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use fastrand::Rng;
use prost::encoding::{WireType, encode_key};
use tokio::time::timeout;
use tokio_stream::{StreamExt as _, iter};

use crate::{
    Arena, Bytes as Amount, Finding, Report, Victim,
    generate::{Generator, Seen},
    owed::may_wait,
    parts::{Part, Value, encode, groups, nested, wrap},
    raw,
    schema::{FieldType, Kind, Method, Schema},
};

/// The largest message that a server accepts, less what surrounds the field.
const MOST: usize = (16 << 20) - (16 << 10);

/// A number of parts below the lowest bound.
const UNDER: usize = 60_000;

/// The same for the higher bound.
const FAR_UNDER: usize = 250_000;

/// One such message at a time must not take more than this.
const RSS: Amount = Amount::mb(600);

/// An answer that takes longer than this hangs. Calls that may wait are given up.
const DEADLINE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_millis(300);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let schema = Schema::read()?;
    let mut victim = arena.start().await?;
    let watch = victim.honest().await?.watch();
    let (mut messages, mut slowest) = (0, Duration::ZERO);
    let mut visited = HashSet::new();
    for method in &schema.methods {
        let mut shapes: Vec<_> = whole().into_iter().map(|shape| (1, shape)).collect();
        for path in paths(&schema, method.input, &mut visited) {
            let count = if path.len() > 3 { FAR_UNDER } else { UNDER };
            let leaf = path[path.len() - 1];
            for content in contents(&schema, leaf, count) {
                shapes.push((leaf.1.tag, around(&schema, &path, content)));
            }
        }
        for (tag, shape) in shapes {
            messages += 1;
            let took = send(&schema, &victim, method, shape.into()).await;
            let told = |finding| Finding::new(format!("{} with tag {tag}: {finding}", method.path));
            victim.check().map_err(told)?;
            slowest = slowest.max(took.map_err(told)?);
            let peak = victim.peak_rss();
            Finding::unless(peak <= RSS, || format!("RSS came to {peak}")).map_err(told)?;
        }
    }
    let latency = watch.end().await?;
    let peak = victim.peak_rss();
    victim.end().await?;
    Ok(Report::default()
        .with("messages", messages)
        .with("slowest of them", format!("{slowest:.1?}"))
        .with("peak RSS", peak)
        .with("slowest honest call", latency))
}

/// A field, and the index of its message.
type Step<'a> = (usize, &'a FieldType);

/// The path to each field of each message inside a request, once per type of message.
fn paths<'a>(schema: &'a Schema, root: usize, visited: &mut HashSet<usize>) -> Vec<Vec<Step<'a>>> {
    let mut paths = Vec::new();
    let mut waiting: Vec<(usize, Vec<Step<'a>>)> = vec![(root, Vec::new())];
    while let Some((message, way)) = waiting.pop() {
        if !visited.insert(message) {
            continue;
        }
        for field in &schema.messages[message].fields {
            let mut path = way.clone();
            path.push((message, field));
            if let Kind::Message(inner) = field.kind {
                waiting.push((inner, path.clone()));
            }
            paths.push(path);
        }
    }
    paths
}

/// Whole messages in which no field can be recognised.
fn whole() -> [Vec<u8>; 5] {
    let mut empty = Vec::new();
    wrap(1, &[], &mut empty);
    [
        empty.repeat(MOST / empty.len()),
        nested(1, MOST / 6),
        groups(1, MOST, false),
        groups(1_000, MOST / 4, true),
        vec![0xff; MOST],
    ]
}

/// The field in its worst shapes, with up to `count` parts.
fn contents(schema: &Schema, (_, field): Step<'_>, count: usize) -> Vec<Vec<u8>> {
    let tag = field.tag;
    let mut empty = Vec::new();
    wrap(tag, &[], &mut empty);
    let text = |length: usize| {
        let mut bytes = Vec::new();
        wrap(tag, &vec![b'1'; length], &mut bytes);
        bytes
    };
    match &field.kind {
        Kind::Message(inner) => {
            let mut full = Vec::new();
            let message = full_message(schema, *inner);
            wrap(tag, &encode(&message), &mut full);
            // An estimate of its parts that is never too small.
            let times = (count / (full.len() / 2)).min(MOST / full.len()).max(1);
            vec![empty.repeat(count), full.repeat(times), nested(tag, count)]
        }
        Kind::Text | Kind::Bytes => {
            vec![text(MOST), empty.repeat(count)]
        }
        Kind::Number | Kind::Enumeration(_) | Kind::Fixed32 | Kind::Fixed64 => {
            let mut one = Vec::new();
            encode_key(tag, WireType::Varint, &mut one);
            one.push(1);
            vec![if field.repeated { text(count) } else { one.repeat(count) }]
        }
    }
}

/// Builds a valid message with this content in place of the field.
fn around(schema: &Schema, path: &[Step<'_>], content: Vec<u8>) -> Vec<u8> {
    let mut content = content;
    for (depth, (message, field)) in path.iter().enumerate().rev() {
        let fields = &schema.messages[*message].fields;
        let stays = |tag: u32| {
            let other = fields.iter().find(|other| other.tag == tag);
            other.is_some_and(|other| {
                tag != field.tag && (other.choice.is_none() || other.choice != field.choice)
            })
        };
        let mut parts = full_message(schema, *message);
        parts.retain(|part| stays(part.tag));
        parts.push(Part { tag: field.tag, value: Value::Raw(content) });
        content = encode(&parts);
        if let Some((_, outer)) = depth.checked_sub(1).and_then(|depth| path.get(depth)) {
            let inner = content;
            content = Vec::new();
            wrap(outer.tag, &inner, &mut content);
        }
    }
    content
}

/// A message with all of its fields set, the same every time.
fn full_message(schema: &Schema, index: usize) -> Vec<Part> {
    let (seen, mut rng) = (Seen::default(), Rng::with_seed(7));
    Generator { schema, seen: &seen, rng: &mut rng, full: true }.message(index)
}

/// Sends the message, after a hello if the method needs one; returns how long the answer took.
async fn send(
    schema: &Schema,
    victim: &Victim,
    method: &Method,
    message: Bytes,
) -> Result<Duration, Finding> {
    let channel = victim.channel().await?;
    let waits = may_wait(schema, method, &message);
    let mut frames = vec![message];
    if let Some(hello) = schema.messages[method.input].fields.iter().find(|it| it.name == "hello") {
        let Kind::Message(index) = hello.kind else { return Err(Finding::new("no hello")) };
        let value = Value::Message(full_message(schema, index));
        frames.insert(0, encode(&[Part { tag: hello.tag, value }]).into());
    }
    let began = std::time::Instant::now();
    let asked = async {
        let Ok(mut told) = raw::stream(&channel, &method.path, iter(frames)).await else { return };
        while let Some(Ok(_)) = told.next().await {}
    };
    let patience = if waits { PATIENCE } else { DEADLINE };
    let answered = timeout(patience, asked).await.is_ok();
    Finding::unless(answered || waits, || format!("no answer within {DEADLINE:?}"))?;
    Ok(began.elapsed())
}

#[cfg(test)]
mod tests {
    use abide_proto::generated::StartRunRequest;
    use prost::Message as _;

    use super::*;

    #[test]
    fn what_is_around_the_field_is_good() {
        let schema = Schema::read().expect("the schema");
        let start = schema.method("/StartRun").expect("a method").input;
        let paths = paths(&schema, start, &mut HashSet::new());
        let path = paths.iter().find(|path| path[path.len() - 1].1.name == "input");
        let mut input = Vec::new();
        wrap(path.expect("a run has an input").last().expect("a step").1.tag, &[], &mut input);
        let bytes = around(&schema, path.expect("a path"), input.repeat(7));
        let request = StartRunRequest::decode(bytes.as_slice()).expect("it is a request");
        assert_eq!(request.workflow.expect("a workflow").namespace, "default");
        let inputs = [
            request.spec.map_or(0, |spec| spec.input.len()),
            request.signal.map_or(0, |signal| signal.input.len()),
            request.update.and_then(|it| it.request).map_or(0, |request| request.input.len()),
        ];
        assert!(inputs.contains(&7), "{inputs:?}");
    }
}
