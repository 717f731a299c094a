//! Requests of clients.

use std::time::Duration;

use abide_core::{
    event::{RunSpec, SignalReceived, UpdateRequest},
    ids::{Key, WorkflowKey},
    operation::{
        AwaitClose, AwaitEvents, AwaitUpdate, Begin, Cancel, ConflictPolicy, Describe, Pause,
        Query, QueryRequest, Repair, RunOperation, RunTarget, Signal, Start, StartUpdate,
        Terminate, Unpause, Update, UpdateWait,
    },
    payload::{Extension, Payload},
    retry::RetryPolicy,
    schedule::id_of,
};

use super::{
    World,
    clients::{Operation, exactly},
    workers::QUEUE,
};
use crate::{
    code::{HANDLED_SIGNALS, OUTSIDER},
    names::{Names, key},
    programs::{self, Catalog, SIGNALS, UNDECLARED_SIGNAL},
    rng::Rng,
};

impl World {
    pub(super) fn draw_request(&mut self, number: usize) -> Option<RunOperation> {
        // The first requests start workflows, so that there is something to ask.
        if number < 6 {
            return Some(self.draw_start(number));
        }
        let target = self.draw_target();
        let identity = String::from("client");
        let own = Key::from(format!("key{number}"));
        // Only with several nodes can a reply be stale.
        let (queries, looks) = if self.leased() { (10, 20) } else { (6, 4) };
        let weights = [24, 24, 4, 3, 4, 4, 14, queries, 12, 3, looks, 3, 5, 40, 8, 4, 14];
        match self.rng.weighted(&weights) {
            0 => Some(self.draw_start(number)),
            1 => match self.draw_reused_key(number) {
                None => Some(
                    Signal { target, signal: self.draw_signal(own), extension: Extension::new() }
                        .into(),
                ),
                reused => reused,
            },
            2 => {
                let reason = String::from("drawn");
                Some(Cancel { target, reason, identity, key: Some(own) }.into())
            }
            3 => {
                let (reason, details) = (String::from("drawn"), Vec::new());
                Some(Terminate { target, reason, identity, details, key: Some(own) }.into())
            }
            4 => {
                let reason = String::new();
                Some(Pause { target, reason, identity: String::new(), key: Some(own) }.into())
            }
            5 => {
                let reason = String::new();
                Some(Unpause { target, reason, identity: String::new(), key: Some(own) }.into())
            }
            6 => Some(self.draw_update(number, target)),
            7 => {
                let query = QueryRequest::new("trace", Vec::new());
                Some(Query { target, query }.into())
            }
            8 => self.draw_move(number),
            9 => Some(Repair { target, identity }.into()),
            10 if self.rng.chance(300) => Some(AwaitEvents { target, after: 0 }.into()),
            10 => Some(Describe { target }.into()),
            11 => Some(AwaitClose { target }.into()),
            12 => self.draw_look_up(),
            13 => self.draw_help(number),
            14 => self.draw_reset(own),
            15 => self.draw_delete(),
            _ => self.draw_schedule(number, own),
        }
    }

    /// A workflow, most often an existing one, and sometimes its current run.
    fn draw_target(&mut self) -> RunTarget {
        let known = self.ledger.workflows.keys();
        let known: Vec<_> = known.filter(|key| id_of(&key.workflow).is_none()).collect();
        let elsewhere = self.rng.chance(100);
        let known = self.rng.pick(&known).filter(|_| !elsewhere);
        let workflow = match known {
            Some(workflow) => (*workflow).clone(),
            None => key(self.rng.pick(&Names::get().roots).map_or("", |name| name)),
        };
        let current = self.ledger.current(&workflow).map(|story| story.run.id);
        match current {
            Some(run) if self.rng.chance(250) => exactly(workflow, run),
            _ => RunTarget { workflow, run: None },
        }
    }

    /// A client reuses the key of another's start by mistake.
    fn draw_reused_start(&mut self) -> Option<RunOperation> {
        if !self.rng.chance(100) {
            return None;
        }
        let sent: Vec<_> = self.operations.iter().filter_map(Operation::start).collect();
        let mut start = (*self.rng.pick(&sent)?).clone();
        start.spec.workflow_type = Catalog::pick_type(&mut self.rng);
        Some(start.into())
    }

    fn draw_start(&mut self, number: usize) -> RunOperation {
        if let Some(reused) = self.draw_reused_start() {
            return reused;
        }
        let rng = &mut self.rng;
        let names = Names::get();
        let workflow = key(rng.pick(&names.roots).map_or("", |name| name));
        let conflict = match rng.weighted(&[5, 3, 2]) {
            0 => ConflictPolicy::Reject,
            1 => ConflictPolicy::UseExisting,
            _ => ConflictPolicy::TerminateExisting,
        };
        let reuse = programs::reuse(rng);
        let begin = match rng.chance(150) {
            true => Begin::After(Duration::from_millis(rng.between(0, 4000))),
            false => Begin::AtOnce,
        };
        let spec = draw_spec(rng);
        let signal = rng.chance(200).then(|| Key::from(format!("start-signal{number}")));
        let signal = signal.map(|key| self.draw_signal(key));
        let update = signal.is_none() && self.rng.chance(200);
        let update = update.then(|| Box::new(self.draw_start_update(number, &workflow)));
        Start {
            workflow,
            spec,
            identity: "client".into(),
            key: Some(Key::from(format!("start{number}"))),
            conflict,
            reuse: reuse.into(),
            begin,
            signal,
            update,
        }
        .into()
    }

    fn draw_signal(&mut self, key: Key) -> SignalReceived {
        let names = match self.rng.weighted(&[12, 7, 1]) {
            0 => &SIGNALS[..],
            1 => &HANDLED_SIGNALS[..],
            _ => &[UNDECLARED_SIGNAL][..],
        };
        let name = self.rng.pick(names).copied().unwrap_or("go");
        signal(name, key)
    }

    /// A client reuses the key of another's signal for its own by mistake.
    fn draw_reused_key(&mut self, number: usize) -> Option<RunOperation> {
        if !self.rng.chance(100) {
            return None;
        }
        let sent: Vec<_> = self.operations.iter().filter_map(Operation::signal).collect();
        let (target, sent) = *self.rng.pick(&sent)?;
        let input = vec![Payload::new(format!("reused{number}"))];
        let signal = SignalReceived { input, ..sent.clone() };
        Some(Signal { target: target.clone(), signal, extension: Extension::new() }.into())
    }

    fn draw_update(&mut self, number: usize, target: RunTarget) -> RunOperation {
        if let Some(repeated) = self.draw_repeated_update(number) {
            return repeated;
        }
        let blocked = if self.rng.chance(400) { self.draw_blocked() } else { None };
        let hurried = blocked.is_some();
        let target = blocked.unwrap_or(target);
        let StartUpdate { update, request, until, wait_while_blocked } =
            self.draw_start_update(number, &target.workflow);
        let wait_while_blocked = wait_while_blocked && !hurried;
        Update { target, update, request, until, wait_while_blocked }.into()
    }

    fn draw_start_update(&mut self, number: usize, workflow: &WorkflowKey) -> StartUpdate {
        let (name, input) = match self.rng.weighted(&[5, 5, 2, 5, 3]) {
            0 => ("accept", String::new()),
            1 => ("work", format!("work{number}")),
            2 => ("reject", String::new()),
            3 if self.rng.chance(250) => ("vote", OUTSIDER.into()),
            3 => ("vote", format!("voter{number}")),
            _ => {
                // Some are in the past.
                let at = (self.clock_for(workflow).unix_millis() + self.rng.below(6000))
                    .saturating_sub(1000);
                ("postpone", at.to_string())
            }
        };
        let input = vec![Payload::new(input)];
        let request = UpdateRequest { name: name.into(), input, ..UpdateRequest::default() };
        let until = if self.rng.chance(500) { UpdateWait::Accepted } else { UpdateWait::Completed };
        let (update, wait_while_blocked) = (format!("update{number}").into(), self.rng.chance(500));
        StartUpdate { update, request, until, wait_while_blocked }
    }

    /// Requests an update again, of the current run. Updates that may be rejected are not repeated:
    /// another run may accept what one has rejected.
    fn draw_repeated_update(&mut self, number: usize) -> Option<RunOperation> {
        if !self.rng.chance(200) {
            return None;
        }
        let asked = self.operations.iter().filter_map(Operation::update);
        let asked: Vec<_> = asked.filter(|(.., request)| never_rejected(request)).collect();
        let (workflow, update, request) = *self.rng.pick(&asked)?;
        let target = RunTarget { workflow: workflow.clone(), run: None };
        let (update, mut request) = (update.clone(), request.clone());
        if self.rng.chance(300) {
            // Another client's request, under the same id by mistake.
            request.input = vec![Payload::new(format!("reused{number}"))];
        }
        let (until, wait_while_blocked) = (UpdateWait::Completed, self.rng.chance(500));
        Some(Update { target, update, request, until, wait_while_blocked }.into())
    }

    /// Asks for the outcome of an update, which may not have arrived yet.
    fn draw_look_up(&mut self) -> Option<RunOperation> {
        let asked: Vec<_> = self.operations.iter().filter_map(Operation::update).collect();
        let (workflow, update, _) = *self.rng.pick(&asked)?;
        let (workflow, update) = (workflow.clone(), update.clone());
        let runs = self.ledger.workflows.get(&workflow).map_or(&[][..], Vec::as_slice);
        let named = self.rng.chance(300);
        let run = self.rng.pick(runs).copied().filter(|_| named);
        let until = match self.rng.weighted(&[1, 2, 3]) {
            0 => UpdateWait::Admitted,
            1 => UpdateWait::Accepted,
            _ => UpdateWait::Completed,
        };
        let (target, wait_while_blocked) = (RunTarget { workflow, run }, self.rng.chance(500));
        Some(AwaitUpdate { target, update, until, wait_while_blocked }.into())
    }
}

/// Whether the program accepts it in every state.
fn never_rejected(request: &UpdateRequest) -> bool {
    ["accept", "work"].contains(&request.name.as_str())
}

/// A signal with a unique text.
pub(super) fn signal(name: &str, key: Key) -> SignalReceived {
    let input = vec![Payload::new(key.as_str().to_owned())];
    SignalReceived { name: name.to_owned(), input, key: Some(key), ..SignalReceived::default() }
}

pub(super) fn draw_spec(rng: &mut Rng) -> RunSpec {
    let retry = rng.chance(250).then(|| RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(50, 1500)),
        maximum_attempts: u32::try_from(rng.between(2, 3)).unwrap_or(2),
        ..RetryPolicy::default()
    });
    let mut spec = RunSpec {
        workflow_type: Catalog::pick_type(rng),
        queue: QUEUE.into(),
        run_timeout: rng.chance(150).then(|| Duration::from_millis(rng.between(1000, 20_000))),
        execution_timeout: rng.chance(100).then(|| Duration::from_secs(rng.between(5, 60))),
        task_timeout: rng.chance(200).then(|| Duration::from_millis(rng.between(300, 2000))),
        retry,
        ..RunSpec::default()
    };
    if rng.chance(20) {
        // A few runs, not one each minute forever.
        spec.cron = Some("* * * * *".into());
        spec.execution_timeout = Some(Duration::from_secs(200));
    }
    spec
}
