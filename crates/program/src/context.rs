//! State that the steps of a program share: ids, unused inputs, and the commands of the current
//! step.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use abide_core::{
    command::{Ask, Command},
    event::{Guards, Marker, MarkerKind, Origin, RunSpec, Target, TimerSpec},
    failure::Failure,
    ids::{ActivityId, EventNumber, ExecutionId, TimerId, UpdateId, WorkflowId, WorkflowKey},
    payload::{Payload, PayloadMap, Payloads},
    time::Timestamp,
};

/// Outcome of something that the program waited for.
pub(super) type Outcome = Result<String, Box<Failure>>;

#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) workflow: WorkflowKey,
    pub(super) spec: RunSpec,
    /// Number of the run among the runs of its workflow.
    pub(super) ordinal: u64,
    pub(super) now: Timestamp,
    pub(super) replaying: bool,
    /// Markers that history has for this turn.
    pub(super) markers: Vec<Marker>,
    pub(super) commands: Vec<Command>,
    pub(super) closed: bool,
    /// Outcomes of the steps so far.
    pub(super) trace: Vec<String>,
    /// Unread signals: event, name, argument.
    pub(super) signals: VecDeque<(EventNumber, String, String)>,
    /// Number of received signals, by name.
    pub(super) received: BTreeMap<String, u64>,
    /// Open sleeps, oldest first.
    pub(super) sleeping: Vec<TimerId>,
    pub(super) fired: BTreeSet<TimerId>,
    pub(super) activities: BTreeMap<ActivityId, (ExecutionId, Outcome)>,
    pub(super) children: BTreeMap<u64, Outcome>,
    pub(super) externals: BTreeMap<u64, Outcome>,
    /// Accepted updates without an outcome, with the timer that each waits for.
    pub(super) updates: Vec<(UpdateId, TimerId)>,
    versions: BTreeMap<String, bool>,
    counters: BTreeMap<&'static str, u64>,
}

impl Context {
    pub(super) fn new() -> Self {
        Self {
            workflow: WorkflowKey { namespace: "".into(), workflow: "".into() },
            spec: RunSpec::default(),
            ordinal: 0,
            now: Timestamp::EPOCH,
            replaying: false,
            markers: Vec::new(),
            commands: Vec::new(),
            closed: false,
            trace: Vec::new(),
            signals: VecDeque::new(),
            received: BTreeMap::new(),
            sleeping: Vec::new(),
            fired: BTreeSet::new(),
            activities: BTreeMap::new(),
            children: BTreeMap::new(),
            externals: BTreeMap::new(),
            updates: Vec::new(),
            versions: BTreeMap::new(),
            counters: BTreeMap::new(),
        }
    }

    /// Counts from 1, separately for each kind.
    pub(super) fn count(&mut self, kind: &'static str) -> u64 {
        let counter = self.counters.entry(kind).or_default();
        *counter += 1;
        *counter
    }

    /// Next id of a kind.
    pub(super) fn next_id(&mut self, kind: &'static str) -> String {
        format!("{kind}-{}", self.count(kind))
    }

    pub(super) fn ask(&mut self, ask: Ask) {
        if !self.closed {
            self.closed = ask.closes();
            self.commands.push(ask.into());
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }

    /// Starts a timer. One without limit is optional, so its ids are counted separately.
    pub(super) fn start_timer(&mut self, delay: Option<Duration>, origin: Origin) -> TimerId {
        let kind = if delay.is_some() { "timer" } else { "signal" };
        let timer = TimerId::from(self.next_id(kind));
        self.start_named_timer(timer.clone(), delay, origin);
        timer
    }

    /// Starts a timer with a given id.
    pub(super) fn start_named_timer(
        &mut self,
        timer: TimerId,
        delay: Option<Duration>,
        origin: Origin,
    ) {
        let fire_at = delay.map_or(Timestamp::NEVER, |delay| self.now.saturating_add(delay));
        let origin = Some(origin);
        let guards = Guards::default();
        self.ask(Ask::StartTimer(TimerSpec { timer, fire_at, origin, details: None, guards }));
    }

    /// Cancels a timer, unless it has fired.
    pub(super) fn cancel_timer(&mut self, timer: &TimerId) {
        if !self.fired.remove(timer) {
            self.ask(Ask::CancelTimer(timer.clone()));
        }
    }

    /// The oldest unread signal of this name; an empty name matches any.
    pub(super) fn take_signal(&mut self, wanted: &str) -> Option<String> {
        let fits = |name: &str| wanted.is_empty() || name == wanted;
        let index = self.signals.iter().position(|(_, name, _)| fits(name))?;
        self.signals.remove(index).map(|(_, _, argument)| argument)
    }

    /// The recorded value on replay, a new one otherwise. The value is the current time.
    pub(super) fn side_effect(&mut self) -> String {
        let id = self.next_id("side-effect");
        let recorded = self.take_marker(&MarkerKind::SideEffect, &id);
        let marker = recorded.unwrap_or_else(|| {
            let value = (String::from("value"), vec![payload(&self.now.to_string())]);
            marker(MarkerKind::SideEffect, id, BTreeMap::from([value]))
        });
        let value = marker.details.get("value").map_or_else(String::new, |value| text(value));
        self.ask(Ask::RecordMarker(marker));
        value
    }

    /// Whether the run follows the change: a live turn does and records it, a replayed turn does if
    /// it was recorded.
    pub(super) fn version(&mut self, change: &str) -> bool {
        if let Some(known) = self.versions.get(change) {
            return *known;
        }
        let recorded = self.take_marker(&MarkerKind::Version, change);
        let follows = recorded.is_some() || !self.replaying;
        self.versions.insert(change.to_owned(), follows);
        if follows {
            let new = || marker(MarkerKind::Version, change.to_owned(), BTreeMap::new());
            let marker = recorded.unwrap_or_else(new);
            self.ask(Ask::RecordMarker(marker));
        }
        follows
    }

    fn take_marker(&mut self, kind: &MarkerKind, id: &str) -> Option<Marker> {
        let wanted = |marker: &Marker| marker.kind == *kind && marker.id == id;
        let index = self.markers.iter().position(wanted)?;
        Some(self.markers.remove(index))
    }

    pub(super) fn neighbour(&self, workflow: impl Into<WorkflowId>) -> WorkflowKey {
        WorkflowKey { namespace: self.workflow.namespace.clone(), workflow: workflow.into() }
    }

    /// The current run of another workflow.
    pub(super) fn target(&self, workflow: &str) -> Target {
        Target { workflow: self.neighbour(workflow), run: None, child: None }
    }
}

fn marker(kind: MarkerKind, id: String, details: BTreeMap<String, Payloads>) -> Marker {
    Marker { kind, id, details, failure: None, header: PayloadMap::new() }
}

pub(super) fn payload(text: &str) -> Payload {
    Payload::new(text.to_owned())
}

pub(super) fn text(payloads: &[Payload]) -> String {
    let texts = payloads.iter().map(|payload| String::from_utf8_lossy(&payload.data));
    texts.collect::<Vec<_>>().join(",")
}
