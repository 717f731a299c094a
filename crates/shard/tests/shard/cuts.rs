//! Scenarios of a parent and its child on different shards. Each runs once without a crash, and then
//! once per output of a shard, with a crash instead of that output: the result is always the same.

use abide_core::{
    command::{Ask, Command, ContinueAsNew},
    dispatch::Dispatch,
    event::{ChildSpec, DeliveryFailure, Fact, ParentClosePolicy, RunSpec, Target},
    failure::Failure,
    limits::Limits,
    payload::Payload,
    report::{Report, TaskCompletion, TaskToken},
    retry::RetryPolicy,
};
use abide_shard::message::Message;
use abide_store::RunFilter;

use crate::harness::{Crash, World, shard_of, worker, workflow};

/// The workflow code: the commands of a task, given the history.
type Code = fn(&[Fact]) -> Vec<Ask>;

#[derive(Clone, Copy)]
struct Story {
    parent: Code,
    kid: Code,
    /// Another workflow already uses the child's id.
    occupied: bool,
}

const PARENT: &str = "parent";
const KID: &str = "kid";

/// The events of every run of both workflows, without those of tasks.
type End = Vec<(&'static str, Vec<&'static str>)>;

#[test]
fn a_child_is_signalled_and_completes() {
    let story = Story { parent: signals_and_awaits, kid: completes_by_signal, occupied: false };
    let end = survives(story);
    let parent = [
        "RunStarted",
        "ChildInitiated",
        "ChildStarted",
        "ExternalSignalInitiated",
        "ExternalSignalDelivered",
        "ChildCompleted",
        "RunCompleted",
    ];
    assert_eq!(end[0], (PARENT, parent.into()));
    assert_eq!(end[1], (KID, vec!["RunStarted", "SignalReceived", "RunCompleted"]));
    assert_eq!(end.len(), 2);
}

#[test]
fn a_child_goes_on_in_new_runs_and_fails_at_last() {
    let end = survives(Story { parent: awaits, kid: continues_then_fails, occupied: false });
    let parent = ["RunStarted", "ChildInitiated", "ChildStarted", "ChildFailed", "RunCompleted"];
    assert_eq!(end[0], (PARENT, parent.into()));
    assert_eq!(end[1], (KID, vec!["RunStarted", "RunContinuedAsNew"]));
    assert_eq!(end[2], (KID, vec!["RunStarted", "RunFailed"]), "and is tried again");
    assert_eq!(end[3], (KID, vec!["RunStarted", "RunFailed"]));
    assert_eq!(end.len(), 4);
}

#[test]
fn a_parent_that_closes_ends_its_child_by_its_policy() {
    let end = survives(Story { parent: leaves_to_terminate, kid: waits, occupied: false });
    assert_eq!(end[1], (KID, vec!["RunStarted", "RunTerminated"]));
    assert_eq!(end.len(), 2);
    let story = Story { parent: leaves_to_cancel, kid: cancels_when_asked, occupied: false };
    let end = survives(story);
    assert_eq!(end[1], (KID, vec!["RunStarted", "RunCancelRequested", "RunCancelled"]));
    assert_eq!(end.len(), 2);
}

#[test]
fn a_child_whose_id_is_taken_is_refused() {
    let end = survives(Story { parent: awaits, kid: waits, occupied: true });
    let parent = ["RunStarted", "ChildInitiated", "ChildStartFailed", "RunCompleted"];
    assert_eq!(end[0], (PARENT, parent.into()));
    assert_eq!(end[1], (KID, vec!["RunStarted"]), "nothing happened to the one who has the id");
    assert_eq!(end.len(), 2);
}

/// After a crash, messages from the other shard may arrive in a different order.
fn sorted(mut end: End) -> End {
    end.iter_mut().for_each(|(_, names)| names.sort_unstable());
    end
}

/// Runs the scenario with a crash at every output, and returns its result.
fn survives(story: Story) -> End {
    assert_ne!(shard_of(PARENT), shard_of(KID));
    let mut whole = World::new();
    let end = tell(&mut whole, story);
    for crash in [Crash::All, Crash::Shard] {
        for number in 1..=whole.outputs {
            let mut world = World::new();
            world.fuse = Some((number, crash));
            let told = tell(&mut world, story);
            assert_eq!(
                sorted(told),
                sorted(end.clone()),
                "{crash:?} crashes instead of output {number}"
            );
        }
    }
    end
}

fn tell(world: &mut World, story: Story) -> End {
    // The worker completes tasks but never sees acknowledgements, and the client retries its call.
    for _ in 0..200 {
        if story.occupied && runs(world, KID).is_empty() {
            start(world, KID);
            continue;
        }
        start(world, PARENT);
        for shard in [shard_of(PARENT), shard_of(KID)] {
            world.send(shard, Message::Tick);
        }
        if let Some(offer) = world.offers.pop() {
            let shard = offer.shard;
            world.send(shard, Message::Matched(offer, worker("session")));
            if let Some(Dispatch::Workflow { token, .. }) = world.dispatches.pop() {
                take_turn(world, story, token);
            }
        } else if settled(world) {
            return end(world);
        } else {
            // Lost effects are resent, and delayed runs begin.
            world.pass(Limits::default().effect_timeout);
        }
    }
    panic!("the story has no end: {:?}", end(world));
}

fn start(world: &mut World, id: &str) {
    let mut call = world.start_call(id);
    call.key = Some("the start".into());
    world.call(shard_of(id), call);
}

fn take_turn(world: &mut World, story: Story, token: TaskToken) {
    let parents = token.workflow == workflow(PARENT);
    let id = if parents { PARENT } else { KID };
    let facts = world.facts(id, token.run);
    let asks = if parents { (story.parent)(&facts) } else { (story.kid)(&facts) };
    let commands = asks.into_iter().map(Command::from).collect();
    let completion = TaskCompletion { commands, ..TaskCompletion::default() };
    world.say(shard_of(id), Report::CompleteTask(token, Box::new(completion)));
}

/// The parent is closed, and both outboxes are empty.
fn settled(world: &World) -> bool {
    let empty = |id| world.tables.outbox(shard_of(id), None, 9).is_empty();
    let closed = runs(world, PARENT).last().is_some_and(|run| run.closed_at.is_some());
    closed && empty(PARENT) && empty(KID) && world.shards.len() == 2
}

fn runs(world: &World, id: &str) -> Vec<abide_store::rows::RunRow> {
    let workflow = Some(workflow(id).workflow);
    let mut runs = world.tables.runs(&RunFilter { workflow, ..RunFilter::default() }, 99);
    runs.sort_by_key(|row| row.ordinal);
    runs
}

fn end(world: &World) -> End {
    let told = |id| {
        runs(world, id).into_iter().map(move |row| {
            let names = world.history(id, row.run).into_iter();
            (id, names.filter(|name| !name.starts_with("Task")).collect())
        })
    };
    told(PARENT).chain(told(KID)).collect()
}

fn has(facts: &[Fact], what: fn(&Fact) -> bool) -> bool {
    facts.iter().any(what)
}

fn child(parent_close: ParentClosePolicy) -> Ask {
    let retry = Some(RetryPolicy::default().maximum_attempts(2));
    let spec = RunSpec {
        workflow_type: "type".into(),
        queue: "queue".into(),
        retry,
        ..RunSpec::default()
    };
    let workflow = workflow(KID);
    let reuse = Default::default();
    Ask::StartChild(Box::new(ChildSpec {
        workflow,
        spec,
        parent_close,
        reuse,
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }))
}

fn awaits(facts: &[Fact]) -> Vec<Ask> {
    if !has(facts, |fact| matches!(fact, Fact::ChildInitiated(_))) {
        return vec![child(ParentClosePolicy::Terminate)];
    }
    let over = |fact: &Fact| match fact {
        Fact::ChildStartFailed(failed) => {
            assert_eq!(failed.cause, DeliveryFailure::AlreadyExists);
            true
        }
        Fact::ChildCompleted(_) | Fact::ChildFailed(_) => true,
        _ => false,
    };
    if has(facts, over) { vec![Ask::CompleteRun(Vec::new())] } else { Vec::new() }
}

fn signals_and_awaits(facts: &[Fact]) -> Vec<Ask> {
    let started = has(facts, |fact| matches!(fact, Fact::ChildStarted(_)));
    let signalled = has(facts, |fact| matches!(fact, Fact::ExternalSignalInitiated(_)));
    if started && !signalled {
        let target = Target { workflow: workflow(KID), run: None, child: None };
        let (input, header) = (vec![Payload::new("now")], Default::default());
        return vec![Ask::SignalExternal { target, name: "go".into(), input, header }];
    }
    let delivered = has(facts, |fact| matches!(fact, Fact::ExternalSignalDelivered(_)));
    if signalled && !delivered { Vec::new() } else { awaits(facts) }
}

fn leaves_to_terminate(_: &[Fact]) -> Vec<Ask> {
    vec![child(ParentClosePolicy::Terminate), Ask::CompleteRun(Vec::new())]
}

fn leaves_to_cancel(_: &[Fact]) -> Vec<Ask> {
    vec![child(ParentClosePolicy::RequestCancel), Ask::CompleteRun(Vec::new())]
}

fn waits(_: &[Fact]) -> Vec<Ask> {
    Vec::new()
}

fn completes_by_signal(facts: &[Fact]) -> Vec<Ask> {
    let signalled = has(facts, |fact| matches!(fact, Fact::SignalReceived(_)));
    if signalled { vec![Ask::CompleteRun(Vec::new())] } else { Vec::new() }
}

fn cancels_when_asked(facts: &[Fact]) -> Vec<Ask> {
    let asked = has(facts, |fact| matches!(fact, Fact::RunCancelRequested(_)));
    if asked { vec![Ask::CancelRun(Vec::new())] } else { Vec::new() }
}

fn continues_then_fails(facts: &[Fact]) -> Vec<Ask> {
    let Some(Fact::RunStarted(started)) = facts.first() else { panic!("no start") };
    if started.ordinal > 1 {
        return vec![Ask::FailRun(Failure::default())];
    }
    let spec = started.spec.clone();
    let next = ContinueAsNew { spec, signals: Vec::new(), updates: Vec::new() };
    vec![Ask::ContinueAsNew(Box::new(next))]
}
