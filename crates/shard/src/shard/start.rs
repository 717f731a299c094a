//! Starts of runs: at most one open run per workflow id, one run per start key, and policies for
//! existing runs.

use abide_core::{
    event::{Body, ReusePolicy, RunTerminated, SignalReceived},
    ids::{RunId, WorkflowKey},
    operation::{CallError, ConflictPolicy, Start, StartUpdate, Ticket},
    run::{Close, Decision, Input, Refusal, Reply, Run, Signal, StartRun, Status},
};
use abide_store::{WorkflowRuns, rows::RunKey};

use super::{Reading, Shard, Todo};
use crate::message::Fetch;

/// A search through the runs before `head` for the key of a start.
#[derive(Clone, Debug)]
pub(super) struct StartScan {
    ticket: Ticket,
    start: Start,
    head: RunId,
}

impl StartScan {
    /// The workflow to start.
    pub(super) const fn workflow(&self) -> &WorkflowKey {
        &self.start.workflow
    }

    /// Returns the start as it was requested.
    pub(super) fn into_start(self) -> (Ticket, Start) {
        (self.ticket, self.start)
    }
}

/// What a start does, given the current run.
enum StartDecision {
    /// The same start created the run: this is a retry.
    Repeat,
    /// The existing run is used.
    Use,
    /// A new run follows.
    Begin,
    /// A new run follows, after the open one is terminated.
    Replace,
    /// The start fails with "already exists".
    Refuse,
}

impl Shard {
    /// Starts the first run of a workflow.
    pub(super) fn start_first(&mut self, ticket: Ticket, start: Start) {
        self.begin_called(ticket, start, None);
    }

    /// Starts a workflow that has a current run, or an older one with the key.
    pub(super) fn start(&mut self, head: RunId, ticket: Ticket, start: Start) {
        let Some(entry) = self.memory.cache.peek(head) else { return };
        let repeat = start.key.is_some() && entry.run.key == start.key;
        if start.key.is_none() || repeat || entry.run.ordinal == 1 {
            return self.start_over(head, ticket, start);
        }
        let ordinal = entry.run.ordinal;
        // Uncommitted runs are not in the store yet, but they are in memory.
        if let Some(run) = self.memory.cache.run_of_start(&start.workflow, start.key.as_ref()) {
            return self.with_run(run, Todo::Repeated(ticket, Box::new(start)));
        }
        self.scan_starts(StartScan { ticket, start, head }, ordinal);
    }

    fn scan_starts(&mut self, scan: StartScan, before: u64) {
        let runs = WorkflowRuns {
            namespace: scan.start.workflow.namespace.clone(),
            workflow: scan.start.workflow.workflow.clone(),
            before: Some(before),
        };
        let fetch = Fetch::RunsOf(runs, self.limits.page_rows);
        self.fetch(Reading::StartScan(Box::new(scan)), fetch);
    }

    pub(super) fn start_scanned(&mut self, scan: StartScan, rows: Vec<RunKey>) {
        let key = scan.start.key.as_ref().map(|key| key.as_str());
        if let Some(row) = rows.iter().find(|row| row.start_key.as_deref() == key) {
            let (ticket, start) = scan.into_start();
            return self.with_run(row.run, Todo::Repeated(ticket, Box::new(start)));
        }
        match rows.last() {
            Some(row) if rows.len() >= self.limits.page_rows => {
                let before = row.ordinal;
                self.scan_starts(scan, before);
            }
            // The current run may have been evicted meanwhile. The result of the search still
            // counts: repeating it might never end.
            _ => {
                let workflow = scan.start.workflow.clone();
                self.with_head(&workflow, Todo::Scanned(Box::new(scan)));
            }
        }
    }

    /// No run before `scan.head` has the key. If another run is current by now, the search starts
    /// again.
    pub(super) fn start_unless_passed(&mut self, head: RunId, scan: StartScan) {
        if head == scan.head {
            self.start_over(head, scan.ticket, scan.start);
        } else {
            self.start(head, scan.ticket, scan.start);
        }
    }

    /// Applies the policies: no older run has the key.
    fn start_over(&mut self, head: RunId, ticket: Ticket, start: Start) {
        let Some(entry) = self.memory.cache.peek(head) else { return };
        match judge(&entry.run, &start) {
            StartDecision::Repeat => match reused_key(&entry.run, &start) {
                Some(refusal) => self.reply_after(head, ticket, Err(refusal.into())),
                None => self.start_done((head, true), ticket, start.workflow, start.update),
            },
            StartDecision::Use => self.use_existing(head, ticket, start),
            StartDecision::Begin => self.begin_called(ticket, start, Some(head)),
            StartDecision::Replace => {
                let run = self.draw_run();
                let reason = format!("replaced by run {run}");
                let terminated = RunTerminated {
                    reason,
                    identity: start.identity.clone(),
                    ..RunTerminated::default()
                };
                match self.judge(head, Input::Terminate(terminated)) {
                    Ok(decision) => self.replace(head, decision, ticket, (run, start)),
                    Err(error) => self.reply(ticket, Err(error)),
                }
            }
            StartDecision::Refuse => {
                let error = CallError::AlreadyExists { workflow: start.workflow, run: head };
                self.reply_after(head, ticket, Err(error));
            }
        }
    }

    fn use_existing(&mut self, head: RunId, ticket: Ticket, start: Start) {
        if let Some(taken) = self.bring_message(head, &start) {
            match taken {
                Err(error) if Self::busy(&error) => {
                    return self.park_busy(head, Todo::Request(ticket, start.into()));
                }
                // A refused update is reported with its own answer: the run exists all the same.
                Err(error) if start.update.is_none() => return self.reply(ticket, Err(error)),
                _ => {}
            }
        }
        self.start_done((head, false), ticket, start.workflow, start.update);
    }

    /// Delivers the signal or update of the start to the existing run.
    fn bring_message(&mut self, head: RunId, start: &Start) -> Option<Result<Reply, CallError>> {
        if let Some(asked) = start.update.as_deref().cloned() {
            let StartUpdate { update, request, wait_while_blocked, .. } = asked;
            return Some(self.admit(head, update, request, wait_while_blocked));
        }
        let mut signal = start.signal.clone()?;
        signal.received_at = self.now();
        let signal = Signal { signal, extension: Default::default() };
        Some(self.decide(head, Input::Signal(Box::new(signal))))
    }

    /// Begins the run that a call asks for, after the current one if there is one.
    fn begin_called(&mut self, ticket: Ticket, mut start: Start, head: Option<RunId>) {
        let (workflow, run, update) =
            (start.workflow.clone(), self.draw_run(), start.update.take());
        self.begin(self.called(run, start, head));
        self.start_done((run, true), ticket, workflow, update);
    }

    /// Begins the new run before work that waited for the old one looks for the current run.
    fn replace(
        &mut self,
        head: RunId,
        decision: Decision,
        ticket: Ticket,
        (run, mut start): (RunId, Start),
    ) {
        let (workflow, update) = (start.workflow.clone(), start.update.take());
        let successor = Some(Box::new(self.called(run, start, Some(head))));
        self.record(head, [Decision { successor, ..decision }]);
        self.start_done((run, true), ticket, workflow, update);
    }

    /// The new run that a call asks for.
    fn called(&self, run: RunId, start: Start, head: Option<RunId>) -> StartRun {
        let received_at = self.now();
        let head = head.and_then(|head| self.memory.cache.peek(head)).map(|entry| &entry.run);
        let signal = start.signal.map(|mut signal| {
            signal.received_at = received_at;
            Body::new(signal)
        });
        StartRun {
            ordinal: head.map_or(0, |head| head.ordinal) + 1,
            identity: start.identity,
            key: start.key,
            terminate_keys: head.map(|head| head.end_keys(&self.limits)).unwrap_or_default(),
            reset_keys: head.map(|head| head.known_resets(&self.limits)).unwrap_or_default(),
            inputs: signal.into_iter().collect(),
            ..StartRun::new(start.workflow, run, start.spec)
        }
        .beginning(start.begin.first_task_at(received_at), received_at)
    }
}

fn judge(head: &Run, start: &Start) -> StartDecision {
    if start.key.is_some() && head.key == start.key {
        return StartDecision::Repeat;
    }
    match head.status {
        Status::Open => match start.conflict {
            ConflictPolicy::Reject => StartDecision::Refuse,
            ConflictPolicy::UseExisting => StartDecision::Use,
            ConflictPolicy::TerminateExisting => StartDecision::Replace,
        },
        Status::Closed { .. }
            if start.conflict == ConflictPolicy::UseExisting && took(head, start) =>
        {
            StartDecision::Use
        }
        Status::Closed { how, .. } => reuse(how, start.reuse),
    }
}

/// The refusal of a start whose key was used for another type, another input, or without this
/// signal: a signal that is not delivered must not be acknowledged.
fn reused_key(run: &Run, start: &Start) -> Option<Refusal> {
    let same =
        run.spec.workflow_type == start.spec.workflow_type && run.spec.input == start.spec.input;
    let has = |signal: &SignalReceived| run.has_signal(signal);
    let repeat = same && start.signal.as_ref().is_none_or(has);
    start.key.clone().filter(|_| !repeat).map(Refusal::KeyReused)
}

/// Whether the run already has the signal or update of the start, so that the call is a retry.
fn took(head: &Run, start: &Start) -> bool {
    let key = start.signal.as_ref().and_then(|signal| signal.key.as_ref());
    key.is_some_and(|key| head.signal_keys.contains(key))
        || start.update.as_ref().is_some_and(|asked| head.update_stage(&asked.update).is_some())
}

fn reuse(how: Close, policy: ReusePolicy) -> StartDecision {
    match (policy, how) {
        (ReusePolicy::Allow, _) => StartDecision::Begin,
        (ReusePolicy::Reject, _) | (ReusePolicy::AllowIfFailed, Close::Completed) => {
            StartDecision::Refuse
        }
        (
            ReusePolicy::AllowIfFailed,
            Close::Failed
            | Close::TimedOut
            | Close::Cancelled
            | Close::Terminated
            | Close::ContinuedAsNew,
        ) => StartDecision::Begin,
    }
}

/// Whether a child may start, given the current run of its workflow id and its reuse policy.
pub(super) fn child_may_start(head: &Run, policy: ReusePolicy) -> bool {
    match head.status {
        Status::Open => false,
        Status::Closed { how, .. } => matches!(reuse(how, policy), StartDecision::Begin),
    }
}
