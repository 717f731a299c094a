//! The steps that code receives, recorded by code that follows a script.

use std::collections::BTreeMap;

use abide_core::{
    command::{Ask, Command},
    event::{
        ActivityCompleted, Marker, MarkerKind, Origin, SignalReceived, TaskCompleted,
        UpdateAdmitted, UpdateRequest,
    },
    failure::Failure,
    ids::UpdateId,
    payload::PayloadMap,
    replay::{Code, Replay, Step},
    time::Timestamp,
};

use super::history::{History, activity_spec, at, child_spec, short, timer_spec};

/// Answers the step of a name with commands, once, and remembers all steps.
#[derive(Default)]
struct Scripted {
    script: BTreeMap<&'static str, Vec<Ask>>,
    told: Vec<String>,
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = (&'static str, Vec<Ask>)>) -> Replay<Self> {
        let script = script.into_iter().collect();
        Replay::new(Self { script, told: Vec::new() })
    }
}

impl Code for Scripted {
    fn advance(&mut self, _at: Timestamp, step: Step<'_>) -> Vec<Command> {
        let name = match step {
            Step::Turn(turn) if turn.replaying => format!("replayed turn {}", turn.number),
            Step::Turn(turn) => format!("turn {}", turn.number),
            Step::Start(_) => "start".into(),
            Step::Signal { signal, .. } => format!("signal {}", signal.name),
            Step::CancelRequested(_) => "cancel".into(),
            Step::ActivityResolved { activity, .. } => format!("{activity} resolved"),
            Step::TimerFired { timer, .. } => format!("{timer} fired"),
            Step::TimerRescheduled { timer, .. } => format!("{timer} moved"),
            Step::ChildInitiated { child, initiated, .. } => {
                format!("child {child} is {initiated}")
            }
            Step::ChildStarted { child, .. } => format!("child {child} started"),
            Step::ChildResolved { child, .. } => format!("child {child} resolved"),
            Step::ExternalResolved { external, .. } => format!("external {external} resolved"),
            Step::LocalResolved(marker) => format!("{} resolved", marker.id),
            Step::Update { update, .. } => format!("update {update}"),
        };
        let commands = self.script.remove(name.as_str()).unwrap_or_default();
        self.told.push(name);
        commands.into_iter().map(Command::from).collect()
    }
}

fn start_timer(timer: &str) -> Ask {
    Ask::StartTimer(timer_spec(timer, at(60), None))
}

/// A run with a child: live first, then the completion of its first turn comes back.
#[test]
fn a_live_turn_is_not_run_again() {
    let mut replay =
        Scripted::new([("start", vec![Ask::StartChild(Box::new(child_spec("c", "C")))])]);
    let mut history = History::new().open_task();
    replay.feed(history.events.clone()).unwrap();
    let completion = replay.turn(&[]).unwrap();
    history.complete_task(completion.flags);
    let history = history.child("c", "C").signal("A", "").open_task();
    replay.feed(history.events).unwrap();
    replay.turn(&[]).unwrap();
    assert_eq!(replay.code().told, ["turn 3", "start", "turn 8", "child 1 is 5", "signal A"]);
}

/// The same history, replayed: the same steps, but for the word.
#[test]
fn a_replayed_turn_has_the_steps_of_the_live_one() {
    let mut replay =
        Scripted::new([("start", vec![Ask::StartChild(Box::new(child_spec("c", "C")))])]);
    let history = History::new().task().child("c", "C").signal("A", "").open_task();
    replay.feed(history.events).unwrap();
    replay.turn(&[]).unwrap();
    let told = ["replayed turn 3", "start", "turn 8", "child 1 is 5", "signal A"];
    assert_eq!(replay.code().told, told);
}

/// The signal makes code cancel the timer whose firing is the next event.
#[test]
fn code_is_not_told_of_a_late_firing() {
    let cancel = vec![Ask::CancelTimer("t".into())];
    let mut replay = Scripted::new([("start", vec![start_timer("t")]), ("signal A", cancel)]);
    let history = History::new().task().did(start_timer("t")).signal("A", "").fired("t");
    replay.feed(history.open_task().events).unwrap();
    let commands = replay.turn(&[]).unwrap().commands;
    let told = ["replayed turn 3", "start", "turn 9", "signal A"];
    assert_eq!((commands, &replay.code().told[..]), (Vec::new(), &told.map(String::from)[..]));
}

/// An optional timer that an older history lacks is asked for when the task completes. The end of a local
/// activity makes code cancel it before.
#[test]
fn a_float_that_is_cancelled_within_its_task_leaves_nothing_live_as_on_replay() {
    let marker = || Marker {
        kind: MarkerKind::LocalActivity,
        id: "local-1".into(),
        details: BTreeMap::new(),
        failure: None,
        header: PayloadMap::new(),
    };
    let wait = || {
        let origin = Some(Origin::ExternalEvent { name: "A".into() });
        Ask::StartTimer(timer_spec("signal-1", Timestamp::NEVER, origin))
    };
    let script = || {
        let ended = vec![Ask::RecordMarker(marker()), Ask::CancelTimer("signal-1".into())];
        Scripted::new([("start", vec![wait()]), ("local-1 resolved", ended)])
    };
    let history = || History::new().old_task().signal("B", "");
    let mut live = script();
    live.feed(history().open_task().events).unwrap();
    live.turn(&[]).unwrap();
    live.local_resolved(&marker()).unwrap();
    let sent = live.completion().commands;
    assert_eq!(sent.len(), 1, "{sent:?}");
    let recorded = history().task();
    let recorded = sent.into_iter().fold(recorded, |history, command| history.did(command.ask));
    let mut replayed = script();
    replayed.feed(recorded.events).unwrap();
    replayed.settle().unwrap();
}

/// Code uses the id of a cancelled timer again; the firing of the old one is late.
#[test]
fn a_firing_belongs_to_the_timer_that_was_started() {
    let again = vec![Ask::CancelTimer("t".into()), start_timer("t")];
    let mut replay = Scripted::new([("start", vec![start_timer("t")]), ("signal A", again)]);
    let history = History::new().task().did(start_timer("t")).signal("A", "").fired("t");
    replay.feed(history.open_task().events).unwrap();
    let asks: Vec<_> = replay.turn(&[]).unwrap().commands.iter().map(short).collect();
    assert_eq!((asks, replay.code().told.len()), (vec!["TimerStarted t".into()], 4));
}

/// The same, and code cancels the second timer too: only the first cancel is void.
#[test]
fn the_cancel_of_a_timer_started_again_is_kept() {
    let cancel = || Ask::CancelTimer("t".into());
    let twice = vec![cancel(), start_timer("t"), cancel()];
    let mut replay = Scripted::new([("start", vec![start_timer("t")]), ("signal A", twice)]);
    let history = History::new().task().did(start_timer("t")).signal("A", "").fired("t");
    replay.feed(history.open_task().events).unwrap();
    let asks: Vec<_> = replay.turn(&[]).unwrap().commands.iter().map(short).collect();
    assert_eq!(asks, ["TimerStarted t", "TimerCancelled t"]);
}

/// An update from another run is rejected; its caller asks again and is accepted later.
#[test]
fn a_rejected_update_may_come_again() {
    let update = || UpdateId::from("u");
    let request = UpdateRequest::default();
    let admitted = UpdateAdmitted { update: update(), request: request.clone() };
    let reject = Ask::RejectUpdate { update: update(), failure: Failure::default() };
    let accept = Ask::AcceptUpdate { update: update(), request };
    let mut replay = Scripted::new([("update u", vec![reject])]);
    replay.feed(History::new().add(admitted).task().open_task().events).unwrap();
    replay.code_mut().script.insert("update u", vec![accept.clone()]);
    let again = UpdateAdmitted { update: update(), request: UpdateRequest::default() };
    assert_eq!(replay.turn(&[again]).unwrap().commands, [Command::from(accept)]);
}

/// The activity closes, and only then, in the same group, code wants to cancel it.
#[test]
fn the_cancel_of_a_closed_activity_is_withdrawn() {
    let schedule = Ask::ScheduleActivity(activity_spec("a", "work"));
    let cancel = vec![Ask::CancelActivity("a".into())];
    let mut replay = Scripted::new([("start", vec![schedule]), ("signal A", cancel)]);
    let history = History::new().task().activity("a", "work");
    let completed = ActivityCompleted { scheduled: 5, ..ActivityCompleted::default() };
    let history = history.add(completed).signal("A", "").open_task();
    replay.feed(history.events).unwrap();
    assert_eq!(replay.turn(&[]).unwrap().commands, []);
}

/// An input stands between the start of a task and its completion: the task did not see it.
#[test]
fn an_input_after_a_start_belongs_to_the_next_group() {
    let mut replay = Scripted::new([]);
    let history = History::new().open_task().signal("A", "");
    let completed = TaskCompleted { scheduled: 2, started: 3, ..TaskCompleted::default() };
    let late = SignalReceived { name: "B".into(), ..SignalReceived::default() };
    replay.feed(history.add(completed).add(late).open_task().events).unwrap();
    replay.turn(&[]).unwrap();
    let told = ["replayed turn 3", "start", "turn 8", "signal A", "signal B"];
    assert_eq!(replay.code().told, told);
}

fn local_end() -> Marker {
    Marker {
        kind: MarkerKind::LocalActivity,
        id: "local-1".into(),
        details: BTreeMap::new(),
        failure: None,
        header: BTreeMap::new(),
    }
}

/// Old code waits for a signal without a timer; today's code gives the wait up when a local activity has
/// ended, in its first task.
#[test]
fn a_wait_that_ends_with_a_local_activity_leaves_no_trace() {
    let origin = Some(Origin::ExternalEvent { name: "A".into() });
    let wait = Ask::StartTimer(timer_spec("signal-1", Timestamp::NEVER, origin));
    let code = || {
        let give_up = vec![Ask::RecordMarker(local_end()), Ask::CancelTimer("signal-1".into())];
        Scripted::new([("start", vec![wait.clone()]), ("local-1 resolved", give_up)])
    };
    let mut history = History::new().old_task().signal("B", "").open_task();
    let mut replay = code();
    replay.feed(history.events.clone()).unwrap();
    replay.turn(&[]).unwrap();
    replay.local_resolved(&local_end()).unwrap();
    let completion = replay.completion();
    let asks: Vec<_> = completion.commands.iter().map(short).collect();
    assert_eq!(asks, ["MarkerRecorded"], "history never had the timer");
    history.complete_task(completion.flags);
    for command in &completion.commands {
        history.record(command);
    }
    let history = history.signal("C", "").open_task();
    replay.feed(history.events.clone()).unwrap();
    let mut again = code();
    again.feed(history.events).unwrap();
    assert_eq!(again.turn(&[]).unwrap(), replay.turn(&[]).unwrap());
}
