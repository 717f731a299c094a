//! Random workflow programs. A world has a few types; a type may run types before it as children, so
//! that no family is endless. Each type also has a wrong version, which fits no history of the right
//! one.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use abide_core::{
    event::{Condition, Delivery},
    ids::{RunId, WorkflowKey},
    program::{Activity, Child, Node, OnCancel, Program},
    retry::RetryPolicy,
};

use crate::{
    code::{Machine, Runner},
    names::{CHILD_ATTEMPTS, Names},
    rng::Rng,
};

/// How many workflow types a world has.
const TYPES: usize = 5;

/// Names of signals that programs wait for and clients send.
pub const SIGNALS: [&str; 3] = ["go", "tell", "stop"];

/// The code of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// The code that the workflows were written for.
    Right,
    /// Code that fits none of their histories.
    Wrong,
}

/// The programs of a world.
#[derive(Debug)]
pub struct Catalog {
    types: BTreeMap<String, Type>,
}

/// A workflow type.
#[derive(Debug)]
struct Type {
    runner: Runner,
    right: Rc<Program>,
    wrong: Rc<Program>,
}

impl Catalog {
    /// Draws the programs of a world.
    pub fn draw(rng: &mut Rng) -> Self {
        let types = (0..TYPES).map(|number| {
            let runner = if rng.chance(750) { Runner::Executor } else { Runner::Interpreter };
            let right = draw_program(rng, Drawn { number, runner });
            let wrong = Rc::new(spoil(&right));
            (type_name(number), Type { runner, right: Rc::new(right), wrong })
        });
        Self { types: types.collect() }
    }

    /// The code of a type, at the beginning of a run.
    pub fn machine(
        &self,
        build: Build,
        workflow_type: &str,
        workflow: &WorkflowKey,
        run: RunId,
    ) -> Option<Machine> {
        let Type { runner, right, wrong } = self.types.get(workflow_type)?;
        let program = match build {
            Build::Right => right,
            Build::Wrong => wrong,
        };
        Machine::new(*runner, program, workflow_type, workflow, run)
    }

    /// A type for a client to start.
    pub fn pick_type(rng: &mut Rng) -> String {
        type_name(rng.index(TYPES))
    }
}

fn type_name(number: usize) -> String {
    format!("type{number}")
}

/// A step that no right program has, before everything else: it fits no history in which a task was
/// completed.
fn spoil(program: &Program) -> Program {
    let first = Node::activity("spoilt");
    let body = Node::Sequence(vec![first, program.body.clone()]);
    Program { body, ..program.clone() }
}

/// What is drawn: the program of a type, for its runner.
#[derive(Clone, Copy)]
struct Drawn {
    number: usize,
    runner: Runner,
}

fn draw_program(rng: &mut Rng, drawn: Drawn) -> Program {
    let steps = (0..rng.between(2, 6)).map(|_| draw_node(rng, drawn, 2)).collect::<Vec<_>>();
    Program {
        body: Node::Sequence(steps),
        on_cancel: if rng.chance(700) { OnCancel::Close } else { OnCancel::Ignore },
        update_delay: rng.chance(600).then(|| Duration::from_millis(rng.between(1, 4000))),
    }
}

fn draw_node(rng: &mut Rng, drawn: Drawn, depth: u32) -> Node {
    let nested = if depth > 0 { 3 } else { 0 };
    let child = if drawn.number > 0 { 4 } else { 0 };
    // What the SDK does not offer: conditions, recorded values and versions, moves by code.
    let [until, effect, version, moved] = match drawn.runner {
        Runner::Executor => [0; 4],
        Runner::Interpreter => [3, 2, 1, 2],
    };
    let weights =
        [nested, nested, nested, 5, 8, 4, until, child, 2, 1, effect, version, moved, 2, 1];
    match rng.weighted(&weights) {
        0 => Node::Sequence(draw_nodes(rng, drawn, depth)),
        1 => Node::Join(draw_nodes(rng, drawn, depth)),
        2 => Node::Select(draw_nodes(rng, drawn, depth)),
        3 => Node::Sleep(long(rng)),
        4 => Node::Activity(draw_activity(rng)),
        5 => {
            let timeout = draw_timeout(rng);
            let any = drawn.runner == Runner::Interpreter && rng.chance(200);
            let name = if any { String::new() } else { signal(rng) };
            Node::WaitSignal { name, timeout }
        }
        6 => {
            let key = rng.chance(700).then(|| format!("key.{}", rng.below(3)));
            let condition = Condition { key, fingerprint: Some("f1".into()) };
            let (signal, at_least) = (signal(rng), rng.between(1, 2));
            Node::WaitUntil { condition, signal, at_least, timeout: draw_timeout(rng) }
        }
        7 => Node::Child(draw_child(rng, drawn)),
        8 => Node::SignalExternal { workflow: neighbour(rng), name: signal(rng) },
        9 => Node::CancelExternal { workflow: neighbour(rng) },
        10 => Node::SideEffect,
        11 => Node::Version { change: format!("change{}", rng.below(2)) },
        12 => Node::Join(vec![Node::Sleep(long(rng)), Node::Reschedule(short(rng))]),
        13 => Node::ContinueAsNew { runs: rng.between(2, 3) },
        _ => Node::Fail("drawn".into()),
    }
}

fn draw_nodes(rng: &mut Rng, drawn: Drawn, depth: u32) -> Vec<Node> {
    (0..rng.between(2, 3)).map(|_| draw_node(rng, drawn, depth - 1)).collect()
}

fn draw_activity(rng: &mut Rng) -> Activity {
    let kinds = ["ok", "ok", "flaky", "fatal", "slow", "beat"];
    let activity_type = (*rng.pick(&kinds).unwrap_or(&"ok")).to_owned();
    let start_to_close = Some(Duration::from_millis(rng.between(400, 3000)));
    let heartbeat = (activity_type == "beat").then(|| Duration::from_millis(rng.between(200, 600)));
    let delivery = if rng.chance(250) { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
    Activity { activity_type, retry: draw_retry(rng), delivery, start_to_close, heartbeat }
}

fn draw_retry(rng: &mut Rng) -> Option<RetryPolicy> {
    rng.chance(700).then(|| RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(20, 800)),
        maximum_interval: Duration::from_secs(5),
        maximum_attempts: u32::try_from(rng.between(0, 4)).unwrap_or_default(),
        recorded: rng.chance(200),
        ..RetryPolicy::default()
    })
}

fn draw_child(rng: &mut Rng, drawn: Drawn) -> Child {
    let names = Names::get();
    let workflow_type = type_name(rng.index(drawn.number));
    let retried = rng.chance(400);
    // The interpreter retries a child with a new child, the SDK lets the server do it with a new run.
    let new_child = retried && drawn.runner == Runner::Interpreter;
    let pool = if new_child { &names.retried } else { &names.children };
    let retry = retried.then(|| RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(20, 800)),
        maximum_attempts: CHILD_ATTEMPTS,
        ..RetryPolicy::default()
    });
    Child { workflow_type, workflow: rng.pick(pool).cloned(), retry }
}

/// No limit, none at all, or some time.
fn draw_timeout(rng: &mut Rng) -> Option<Duration> {
    match rng.weighted(&[3, 1, 6]) {
        0 => None,
        1 => Some(Duration::ZERO),
        _ => Some(long(rng)),
    }
}

fn short(rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.between(1, 900))
}

fn long(rng: &mut Rng) -> Duration {
    if rng.chance(50) {
        return Duration::from_secs(rng.between(60, 4000));
    }
    // Round values, so that several timers are due at the same moment.
    Duration::from_millis(rng.between(1, 40) * 250)
}

fn signal(rng: &mut Rng) -> String {
    (*rng.pick(&SIGNALS).unwrap_or(&"go")).to_owned()
}

/// Another workflow, which may or may not exist.
fn neighbour(rng: &mut Rng) -> String {
    let names = Names::get();
    let pool = if rng.chance(800) { &names.roots } else { &names.children };
    rng.pick(pool).cloned().unwrap_or_default()
}
