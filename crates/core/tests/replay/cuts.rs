//! Drawn programs on drawn histories: however a history is cut, replay agrees with what the code did
//! live, and a history that lost its optional timers is replayed all the same.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    event::{Condition, Delivery, Event, Fact},
    ids::EventNumber,
    replay::Replay,
    retry::RetryPolicy,
};
use abide_program::{Activity, Child, Interpreter, Node, OnCancel, Program};
use proptest::{collection::vec, option, prelude::*};

use super::{history::History, server::Server};

fn retried() -> Option<RetryPolicy> {
    Some(RetryPolicy { recorded: true, maximum_attempts: 2, ..RetryPolicy::default() })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("A".to_owned()), Just("B".to_owned())]
}

fn timeout() -> impl Strategy<Value = Option<Duration>> {
    option::of((0..3_u64).prop_map(Duration::from_secs))
}

fn leaf() -> impl Strategy<Value = Node> {
    let activity = |retry| Activity {
        activity_type: "work".into(),
        retry,
        delivery: Delivery::AtMostOnce,
        ..Activity::default()
    };
    let child = |retry| Child { workflow_type: "child".into(), workflow: None, retry };
    let until = |(signal, at_least, timeout)| Node::WaitUntil {
        condition: Condition { key: Some("key".into()), fingerprint: Some("f".into()) },
        signal,
        at_least,
        timeout,
    };
    prop_oneof![
        4 => (name(), timeout()).prop_map(|(name, timeout)| Node::WaitSignal { name, timeout }),
        3 => name().prop_map(Node::signal),
        2 => (1..9_u64).prop_map(Node::sleep),
        2 => (name(), 1..3_u64, timeout()).prop_map(until),
        1 => Just(Node::activity("work")),
        1 => Just(Node::Activity(activity(retried()))),
        1 => Just(Node::Child(child(None))),
        1 => Just(Node::Child(child(retried()))),
        1 => name().prop_map(|name| Node::SignalExternal { workflow: "other".into(), name }),
        1 => Just(Node::CancelExternal { workflow: "other".into() }),
        1 => Just(Node::SideEffect),
        1 => Just(Node::Version { change: "change".into() }),
        1 => (1..9_u64).prop_map(|seconds| Node::Reschedule(Duration::from_secs(seconds))),
        1 => Just(Node::ContinueAsNew { runs: 2 }),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(Node::Sequence),
            2 => vec(inner.clone(), 2..4).prop_map(Node::Join),
            2 => vec(inner, 2..3).prop_map(Node::Select),
        ]
    })
}

fn program() -> impl Strategy<Value = Program> {
    let delay = option::of(Just(Duration::from_secs(1)));
    let on_cancel = prop_oneof![Just(OnCancel::Close), Just(OnCancel::Ignore)];
    (vec(node(), 1..5), on_cancel, delay).prop_map(|(steps, on_cancel, update_delay)| Program {
        on_cancel,
        update_delay,
        ..Program::new(steps)
    })
}

fn choices() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 1..5), 1..12)
}

/// Lets the drawn things happen until the run closes.
fn live(program: &Program, history: History, choices: &[Vec<u8>]) -> Server {
    let mut server = Server::new(program, history);
    server.task(Vec::new());
    for step in choices {
        if server.closed() {
            break;
        }
        server.step(step);
    }
    server
}

fn whole(program: &Program, portions: &[&[Event]]) -> Replay<Interpreter> {
    let mut replay = Replay::new(program.code());
    for portion in portions {
        replay.feed(portion.to_vec()).unwrap();
    }
    replay.settle().unwrap();
    replay
}

/// Feeds the history in two portions, at every cut, and takes every turn again on a new machine.
fn agrees(program: &Program, server: &Server) {
    let events = &server.history.events;
    for cut in 0..=events.len() {
        let (before, after) = events.split_at(cut);
        let replay = whole(program, &[before, after]);
        assert_eq!(replay.code().trace(), server.cached.code().trace());
    }
    for turn in &server.turns {
        let mut replay = Replay::new(program.code());
        replay.feed(events[..turn.given].to_vec()).unwrap();
        assert_eq!(replay.turn(&turn.updates).unwrap(), turn.completion);
    }
}

/// The history as older code wrote it: no optional timers, no flags, numbers dense again.
fn aged(history: &History) -> History {
    let mut old = History::default();
    let mut numbers = BTreeMap::new();
    let mut optional = Vec::new();
    for Event { number, body, .. } in &history.events {
        let mut fact = body.fact.clone();
        match &mut fact {
            Fact::TimerStarted(started) if started.spec.optional() => {
                optional.push(*number);
                continue;
            }
            Fact::TimerCancelled(cancelled) if optional.contains(&cancelled.started) => continue,
            Fact::TaskCompleted(completed) => completed.flags.clear(),
            _ => {}
        }
        numbers.insert(*number, old.next());
        if let Some(reference) = reference(&mut fact) {
            *reference = numbers[reference];
        }
        old.push(fact);
    }
    old
}

fn reference(fact: &mut Fact) -> Option<&mut EventNumber> {
    Some(match fact {
        Fact::TimerFired(fired) => &mut fired.started,
        Fact::TimerCancelled(cancelled) => &mut cancelled.started,
        Fact::ActivityCompleted(completed) => &mut completed.scheduled,
        Fact::ActivityFailed(failed) => &mut failed.scheduled,
        Fact::ActivityCancelRequested(requested) => &mut requested.scheduled,
        Fact::ChildFailed(failed) => &mut failed.initiated,
        Fact::ExternalSignalDelivered(delivered) => &mut delivered.initiated,
        Fact::ExternalCancelFailed(failed) => &mut failed.initiated,
        _ => return None,
    })
}

/// Moved timers have other times in an aged history.
fn timeless(trace: &[String]) -> Vec<&str> {
    trace.iter().map(|entry| entry.split(" moved").next().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Live on a cached machine, replayed from the start, and cut anywhere.
    #[test]
    fn every_cut_agrees_with_the_live_run(program in program(), choices in choices()) {
        let server = live(&program, History::new(), &choices);
        agrees(&program, &server);
    }

    /// Older code left no optional timers; all other events still match.
    #[test]
    fn a_history_without_optional_timers_is_replayed(program in program(), choices in choices()) {
        let server = live(&program, History::new(), &choices);
        let replay = whole(&program, &[&aged(&server.history).events]);
        let (old, new) = (replay.code().trace(), server.cached.code().trace());
        prop_assert_eq!(timeless(old), timeless(new));
    }

    /// Older code began the run, and code that records every wait goes on with it.
    #[test]
    fn an_old_run_goes_on(program in program(), first in choices(), then in choices()) {
        let server = live(&program, History::new(), &first);
        if !server.closed() {
            let server = live(&program, aged(&server.history), &then);
            agrees(&program, &server);
        }
    }
}
