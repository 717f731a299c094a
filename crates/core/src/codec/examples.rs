//! One fixed example of everything that is stored: every fact, note, effect and answer with all
//! fields set, and every case of the enums inside them. The tables of the codec list the cases, so
//! that no case can be missing here.

use std::fmt::Debug;

use bytes::Bytes;

use super::{
    arbitrary::{Cases, Sample, Source},
    *,
};
use crate::{
    batch::{BatchAction, BatchSpec, BatchState},
    effect::{Action, ChildClosed, RunOutcome},
    event::{
        ActivityScheduled, ActivitySpec, ActivityTimedOut, Blocked, BlockedReason, CancelMode,
        ChildInitiated, ChildSpec, ChildStartFailed, Delivery, DeliveryFailure,
        ExternalCancelInitiated, Fact, Flag, Initiator, Marker, MarkerKind, MarkerRecorded, Mover,
        Origin, ParentClosePolicy, PreviousRun, ReusePolicy, RunFailed, RunStarted, RunTimedOut,
        TaskCompleted, TaskFailed, TaskFailureCause, TimerRescheduled, TimerSpec, TimerStarted,
        UpdateCompleted, UpdateOutcome,
    },
    failure::{Failure, FailureKind, TimeoutKind},
    retry::RetryState,
    run::ResetPoint,
    schedule::{
        Overlap, Schedule, ScheduleChange, ScheduleChanged, ScheduleState, ScheduledOutcome,
        ScheduledRun,
    },
};

/// An example of something that is stored.
pub(super) struct Example {
    /// Name of the example, without version.
    pub(super) name: String,
    pub(super) bytes: Bytes,
    /// Readable form of the value.
    pub(super) says: String,
    /// Decodes the bytes, and returns them encoded again together with their readable form.
    pub(super) reread: Box<dyn Fn(Bytes) -> (Bytes, String)>,
}

pub(super) fn all() -> Vec<Example> {
    let mut all = Vec::new();
    for (name, draw) in Fact::cases() {
        let body = Body::new(draw(&mut Source::full()));
        all.push(history(name, vec![body.with_extension(Source::full().part("extension"))]));
    }
    for (name, draw) in Note::cases() {
        let notes = vec![draw(&mut Source::full())];
        all.push(example(
            &format!("Note{name}"),
            &notes,
            |notes| encode_notes(notes),
            decode_fresh_notes,
        ));
    }
    for (name, draw) in ScheduleChange::cases() {
        let change = draw(&mut Source::full());
        let changed = ScheduleChanged { change, ..least() };
        let notes = vec![Note::ScheduleChanged(Box::new(changed))];
        let name = format!("ScheduleChange{name}");
        all.push(example(&name, &notes, |notes| encode_notes(notes), decode_fresh_notes));
    }
    for (name, draw) in Action::cases() {
        let action = draw(&mut Source::full());
        let effect = Effect { action, ..Source::full().part("Effect") };
        all.push(example(&format!("Effect{name}"), &effect, encode_effect, decode_effect));
    }
    for (name, draw) in RunOutcome::cases() {
        let closed = ChildClosed { outcome: draw(&mut Source::full()), ..least() };
        let effect = Effect { action: Action::ChildClosed(closed), ..least() };
        all.push(example(&format!("ChildOutcome{name}"), &effect, encode_effect, decode_effect));
    }
    for (name, draw) in EffectOutcome::cases() {
        let answer = draw(&mut Source::full());
        all.push(example(&format!("Answer{name}"), &answer, encode_answer, decode_answer));
    }
    all.push(example(
        "WaitDetails",
        &Source::full().part("WaitDetails"),
        |details: &Option<WaitDetails>| encode_wait_details(details.as_ref()),
        decode_wait_details,
    ));
    let run = Source::full().part("RunDetails");
    all.push(example("RunDetails", &run, encode_run_details, decode_run_details));
    let batches = vec![Source::full().part("Batch")];
    all.push(example(
        "Batches",
        &batches,
        |batches: &Vec<_>| encode_batches(batches),
        decode_batches,
    ));
    all.extend(unions());
    all.extend(enumerations());
    all
}

/// The cases of unions inside facts and batches, an event or a batch for each.
fn unions() -> [Example; 8] {
    [
        each("Origin", |origin: Origin| {
            let spec = TimerSpec { origin: Some(origin), ..least() };
            TimerStarted { spec, ..least() }
        }),
        each("Mover", |by: Mover| TimerRescheduled { by, ..least() }),
        each("MarkerKind", |kind: MarkerKind| {
            let marker = Marker { kind, ..least() };
            MarkerRecorded { marker, ..least() }
        }),
        each("Outcome", |outcome: UpdateOutcome| UpdateCompleted { outcome, ..least() }),
        each("FailureKind", |kind: FailureKind| {
            let failure = Failure { kind, ..least() };
            RunFailed { failure, ..least() }
        }),
        each("ScheduledOutcome", |outcome: ScheduledOutcome| {
            let recent = vec![ScheduledRun { outcome: Some(outcome), ..least() }];
            let schedule = Some(Box::new(ScheduleState { recent, ..least() }));
            RunStarted { schedule, ..least() }
        }),
        batches("BatchAction", |action: BatchAction| BatchSpec { action, ..least() }),
        batches("ResetPoint", |to: ResetPoint| {
            let action = BatchAction::Reset { to, drop_signals: false, drop_updates: false };
            BatchSpec { action, ..least() }
        }),
    ]
}

/// The cases of enumerations, an event or a batch for each.
fn enumerations() -> [Example; 13] {
    let examples = [
        each("TimeoutKind", |kind: TimeoutKind| ActivityTimedOut { kind, ..least() }),
        each("RetryState", |retry_state: RetryState| RunTimedOut { retry_state, ..least() }),
        each("Initiator", |initiator: Initiator| {
            let previous = Some(PreviousRun { initiator, ..least() });
            RunStarted { previous, ..least() }
        }),
        each("Flag", |flag: Flag| TaskCompleted { flags: [flag].into(), ..least() }),
        each("TaskFailureCause", |cause: TaskFailureCause| TaskFailed { cause, ..least() }),
        each("BlockedReason", |reason: BlockedReason| {
            let blocked = Some(Blocked { reason, ..least() });
            TaskFailed { blocked, ..least() }
        }),
        each("Delivery", |delivery: Delivery| {
            let spec = ActivitySpec { delivery, ..least() };
            ActivityScheduled { spec, ..least() }
        }),
        each("ParentClosePolicy", |parent_close: ParentClosePolicy| {
            let child = ChildSpec { parent_close, ..least() };
            ChildInitiated { child, ..least() }
        }),
        each("ReusePolicy", |reuse: ReusePolicy| {
            let child = ChildSpec { reuse, ..least() };
            ChildInitiated { child, ..least() }
        }),
        each("CancelMode", |mode: CancelMode| ExternalCancelInitiated { mode, ..least() }),
        each("DeliveryFailure", |cause: DeliveryFailure| ChildStartFailed { cause, ..least() }),
        each("ScheduleOverlap", |overlap: Overlap| {
            let schedule = Schedule { overlap: Some(overlap), ..least() };
            let schedule = Some(Box::new(ScheduleState { schedule, ..least() }));
            RunStarted { schedule, ..least() }
        }),
        states(),
    ];
    let schema = include_str!("generated.rs").matches("::prost::Enumeration").count();
    assert_eq!(examples.len(), schema, "an enumeration of the schema is not in this list");
    examples
}

/// The value with the fewest parts.
fn least<T: Sample>() -> T {
    T::sample(&mut Source::random(Vec::new()))
}

fn each<T: Cases, F: Into<Fact>>(name: &str, fact: impl Fn(T) -> F) -> Example {
    let bodies = T::cases().into_iter().map(|(_, draw)| fact(draw(&mut Source::full())));
    history(name, bodies.map(Body::new).collect())
}

/// A batch for each case of something in its request.
fn batches<T: Cases>(name: &str, spec: impl Fn(T) -> BatchSpec) -> Example {
    let specs = T::cases().into_iter().map(|(_, draw)| spec(draw(&mut Source::full())));
    let batches = specs.map(|spec| Batch { spec, ..least() }).collect();
    example(name, &batches, |batches: &Vec<_>| encode_batches(batches), decode_batches)
}

/// A batch in each state.
fn states() -> Example {
    let states = BatchState::cases().into_iter().map(|(_, draw)| draw(&mut Source::full()));
    let batches = states.map(|state| Batch { state, ..least() }).collect();
    example("BatchState", &batches, |batches: &Vec<_>| encode_batches(batches), decode_batches)
}

fn history(name: &str, bodies: Vec<Body>) -> Example {
    let time = Source::full().part("time");
    let events = (1..).zip(bodies).map(|(number, body)| Event { number, time, body });
    example(name, &events.collect(), |events: &Vec<_>| encode_events(events), decode_fresh_events)
}

/// An example, checked to survive a round trip.
fn example<T: Debug + PartialEq + 'static>(
    name: &str,
    value: &T,
    encode: fn(&T) -> Bytes,
    decode: fn(Bytes) -> Result<T, DecodeError>,
) -> Example {
    let bytes = encode(value);
    assert_eq!(decode(bytes.clone()).as_ref(), Ok(value), "{name} does not survive");
    let reread = move |bytes| {
        let value = decode(bytes).unwrap();
        (encode(&value), format!("{value:#?}\n"))
    };
    Example {
        name: name.to_owned(),
        bytes,
        says: format!("{value:#?}\n"),
        reread: Box::new(reread),
    }
}

fn encode_events(events: &[Event]) -> Bytes {
    encode_row(&events.iter().cloned().map(Record::Event).collect::<Vec<_>>()).events
}

fn encode_notes(notes: &[Note]) -> Bytes {
    encode_row(&notes.iter().cloned().map(Record::Note).collect::<Vec<_>>()).notes
}

fn decode_fresh_events(bytes: Bytes) -> Result<Vec<Event>, DecodeError> {
    let events = decode_events(bytes)?.into_iter();
    Ok(events.map(|event| Event { body: fresh(event.body), ..event }).collect())
}

fn decode_fresh_notes(bytes: Bytes) -> Result<Vec<Note>, DecodeError> {
    let mut notes = decode_notes(bytes)?;
    for note in &mut notes {
        if let Note::InputBuffered(body) = note {
            *body = fresh(body.clone());
        }
    }
    Ok(notes)
}

/// The body without the bytes it was read from, so that it is encoded again.
fn fresh(body: Body) -> Body {
    let extension = body.extension.clone();
    body.with_extension(extension)
}
