//! Runs of one namespace cannot affect workflows of another, unless that namespace accepts it.

use std::sync::Arc;

use abide_core::{
    command::Ask,
    event::{CancelMode, ChildSpec, DeliveryFailure, Fact, ParentClosePolicy, RunSpec, Target},
    ids::{RunId, ShardId, WorkflowKey},
    operation::{AnyAnswer, Describe, Started},
};
use abide_shard::borders::Borders;
use abide_store::rows::LogLimit;

use crate::harness::{World, workflow};

fn foreign(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "billing".into(), workflow: id.into() }
}

fn shard(workflow: &WorkflowKey) -> ShardId {
    workflow.slot().shard()
}

fn spec() -> RunSpec {
    RunSpec { workflow_type: "type".into(), queue: "queue".into(), ..RunSpec::default() }
}

fn start_child(workflow: WorkflowKey) -> Ask {
    Ask::StartChild(Box::new(ChildSpec {
        workflow,
        spec: spec(),
        parent_close: ParentClosePolicy::Terminate,
        reuse: Default::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }))
}

fn signal(target: Target) -> Ask {
    let (name, input, header) = ("go".into(), Vec::new(), Default::default());
    Ask::SignalExternal { target, name, input, header }
}

fn cancel(target: Target, mode: CancelMode) -> Ask {
    Ask::CancelExternal { target, mode, reason: String::new() }
}

/// A target in `billing`, and a run in `default` that tries every command on it.
fn attack(world: &mut World) -> (RunId, RunId) {
    let mut call = world.start_call("victim");
    call.workflow = foreign("victim");
    let reply = world.ask(shard(&foreign("victim")), call);
    let Ok(AnyAnswer::Started(Started { run: victim, .. })) = reply else { panic!("{reply:?}") };
    world.offers.clear();
    let source = world.start("source");
    let token = world.take_task();
    let target = Target { workflow: foreign("victim"), run: None, child: None };
    let own = Target { run: Some(victim), child: Some(5), ..target.clone() };
    world.complete(
        token,
        vec![
            start_child(foreign("child")),
            signal(target.clone()),
            cancel(target.clone(), CancelMode::Request),
            cancel(target, CancelMode::Terminate),
            cancel(own, CancelMode::Terminate),
        ],
    );
    (source, victim)
}

fn history(world: &World, workflow: &WorkflowKey, run: RunId) -> Vec<&'static str> {
    let rows = world.tables.log(shard(workflow), run, 0, LogLimit::rows(usize::MAX));
    rows.into_iter()
        .flat_map(|row| abide_core::codec::decode_events(row.events).expect("it decodes"))
        .map(|event| event.body.fact.name())
        .collect()
}

/// The failure causes of the run's commands, in order.
fn causes(world: &World, run: RunId) -> Vec<DeliveryFailure> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only failures have a cause")]
    let cause = |fact| match fact {
        Fact::ChildStartFailed(failed) => Some(failed.cause),
        Fact::ExternalSignalFailed(failed) => Some(failed.cause),
        Fact::ExternalCancelFailed(failed) => Some(failed.cause),
        _ => None,
    };
    world.facts("source", run).into_iter().filter_map(cause).collect()
}

#[test]
fn a_namespace_takes_no_command_from_another_by_default() {
    let mut world = World::new();
    let (source, victim) = attack(&mut world);
    let mut causes = causes(&world, source);
    causes.sort_unstable();
    // The last effect refers to a child that the source does not have.
    let refused = [DeliveryFailure::NamespaceRefused; 4];
    assert_eq!(causes, [&[DeliveryFailure::NotFound], &refused[..]].concat());
    assert_eq!(history(&world, &foreign("victim"), victim), ["RunStarted", "TaskScheduled"]);
    let found = world.ask(
        shard(&foreign("child")),
        Describe {
            target: abide_core::operation::RunTarget { workflow: foreign("child"), run: None },
        },
    );
    assert!(found.is_err(), "there is no child");
}

#[test]
fn a_namespace_takes_what_it_accepts_and_nothing_goes_back() {
    let mut borders = Borders::default();
    borders.accept("billing".into(), "default".into());
    let mut world = World::new();
    world.borders = Arc::new(borders);
    let (source, victim) = attack(&mut world);
    assert_eq!(causes(&world, source), [DeliveryFailure::NotFound]);
    let victims = history(&world, &foreign("victim"), victim);
    assert_eq!(victims[2..], ["SignalReceived", "RunCancelRequested", "RunTerminated"]);
    let child = RunId::of_child(source, 5, world.now);
    assert_eq!(history(&world, &foreign("child"), child)[0], "RunStarted");
    // A child may report its end to its parent, and nothing else.
    let place = world.offers.iter().rposition(|offer| offer.run == child).expect("its task");
    let offer = world.offers.remove(place);
    world.offers.push(offer);
    let token = world.take_task();
    let target = Target { workflow: workflow("source"), run: None, child: None };
    let commands = vec![signal(target), Ask::CompleteRun(Vec::new())];
    world.complete(token, commands);
    let told = world.history("source", source);
    assert!(told.contains(&"ChildCompleted") && !told.contains(&"SignalReceived"), "{told:?}");
}
