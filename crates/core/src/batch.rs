//! Batches: one action on every run that a query finds, carried out in the background. The batches of a
//! namespace are one row of the registry, which is bounded: the oldest ones that have ended give way.

use crate::{
    ids::{Key, NamespaceId, RunId, WorkflowId, WorkflowKey},
    limits::{InvalidField, Limits},
    operation::{Cancel, Delete, Reset, RunOperation, RunTarget, Signal, Terminate},
    payload::{Extension, Payloads},
    run::{Reapply, ResetPoint},
    time::Timestamp,
};

/// Batches of a namespace that may run at the same time: each lists and changes runs all the time.
pub const RUNNING_MAX: usize = 10;

/// Batches that the row of a namespace holds: it is read and written as a whole.
pub const KEPT_MAX: usize = 50;

/// Failures that a batch reports one by one; the others are counted.
pub const FAILURES_MAX: usize = 20;

/// Characters of the reason of a failure.
const REASON_MAX: usize = 200;

/// Runs per second if the request does not say.
pub const RATE_DEFAULT: u32 = 100;

/// The highest rate in runs per second: the actions of one batch must leave room for others.
pub const RATE_MAX: u32 = 10_000;

/// Bytes of an id: it is part of the key of each action.
pub const ID_BYTES_MAX: usize = 200;

/// Bytes of the input of a signal. The row holds it as long as the batch runs, and is written per page.
pub const INPUT_BYTES_MAX: usize = 16 * 1024;

/// What a batch does, and to which runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSpec {
    /// Chosen by the caller, so that a repeat is recognised.
    pub id: String,
    /// The runs, in the language of lists.
    pub query: String,
    pub action: BatchAction,
    /// Runs per second.
    pub rate: u32,
    pub reason: String,
    pub identity: String,
}

/// What a batch does to each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchAction {
    Cancel,
    Terminate,
    Delete,
    Signal { name: String, input: Payloads },
    Reset { to: ResetPoint, drop_signals: bool, drop_updates: bool },
}

/// A batch, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub spec: BatchSpec,
    pub state: BatchState,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Runs that the query found when the batch was started.
    pub total: u64,
    /// Runs to which the action was done.
    pub done: u64,
    /// Runs that refused it.
    pub failed: u64,
    /// The first of those.
    pub failures: Vec<BatchFailure>,
    /// The last run of the list, from the newest, that was dealt with.
    pub position: Option<BatchPosition>,
    /// The process that carries it out.
    pub driver: String,
    /// Grows with each sign of life of the driver.
    pub beat: u64,
}

/// Where a batch stands in the list of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPosition {
    pub started_at: Timestamp,
    pub run: RunId,
}

/// A run that refused the action of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFailure {
    pub workflow: WorkflowId,
    pub run: RunId,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchState {
    Running,
    /// An operator stopped it.
    Stopped,
    /// It has dealt with all runs.
    Completed,
}

impl BatchSpec {
    /// Checks what can be checked without the store, and sets the default rate.
    pub fn checked(mut self, limits: &Limits) -> Result<Self, InvalidField> {
        limits.check_length("reason", &self.reason)?;
        limits.check_length("identity", &self.identity)?;
        bounded("id", self.id.len(), ID_BYTES_MAX, "choose a shorter one")?;
        if self.id.is_empty() {
            return Err(InvalidField::new("id", "is empty: choose one, so that a repeat is known"));
        }
        if self.query.trim().is_empty() {
            let problem =
                "is empty: a batch must say which runs it means, as in WorkflowType = 'order'";
            return Err(InvalidField::new("query", problem));
        }
        if self.rate > RATE_MAX {
            let problem = format!("is {}, the highest is {RATE_MAX} runs per second", self.rate);
            return Err(InvalidField::new("rate", problem));
        }
        if self.rate == 0 {
            self.rate = RATE_DEFAULT;
        }
        match &self.action {
            BatchAction::Signal { name, input } => {
                limits.check_name("signal", name)?;
                let size = crate::payload::size(input);
                limits.check_size("input", size)?;
                let hint = "store the data elsewhere, and send where it is";
                bounded("input", size.bytes, INPUT_BYTES_MAX, hint)?;
            }
            BatchAction::Reset { to: ResetPoint::Event(_), .. } => {
                let problem =
                    "names an event, and each run has others: name first, last, build or failure";
                return Err(InvalidField::new("to", problem));
            }
            BatchAction::Reset { .. }
            | BatchAction::Cancel
            | BatchAction::Terminate
            | BatchAction::Delete => {}
        }
        Ok(self)
    }

    /// Without the input of a signal, as a batch that has ended is kept.
    pub fn without_input(mut self) -> Self {
        if let BatchAction::Signal { input, .. } = &mut self.action {
            input.clear();
        }
        self
    }

    /// The action on one run. To repeat it has no further effect.
    pub fn operation(&self, workflow: WorkflowKey, run: RunId) -> RunOperation {
        let target = RunTarget { workflow, run: Some(run) };
        let (reason, identity) = (self.reason.clone(), self.identity.clone());
        let key = Some(Key::from(format!("batch {} of {run}", self.id)));
        match &self.action {
            BatchAction::Cancel => Cancel { target, reason, identity, key }.into(),
            BatchAction::Terminate => {
                Terminate { target, reason, identity, details: Vec::new(), key }.into()
            }
            BatchAction::Delete => Delete { target, identity }.into(),
            BatchAction::Signal { name, input } => {
                let signal = crate::event::SignalReceived {
                    name: name.clone(),
                    input: input.clone(),
                    identity,
                    key,
                    ..Default::default()
                };
                Signal { target, signal, extension: Extension::new() }.into()
            }
            BatchAction::Reset { to, drop_signals, drop_updates } => {
                let reapply = Reapply { signals: !drop_signals, updates: !drop_updates };
                Reset { target, to: to.clone(), reapply, reason, identity, key }.into()
            }
        }
    }
}

fn bounded(field: &'static str, size: usize, limit: usize, hint: &str) -> Result<(), InvalidField> {
    if size <= limit {
        return Ok(());
    }
    let problem = format!("has {size} bytes, the limit for a batch is {limit}; {hint}");
    Err(InvalidField::new(field, problem))
}

impl BatchAction {
    /// Its name for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Delete => "delete",
            Self::Signal { .. } => "signal",
            Self::Reset { .. } => "reset",
        }
    }
}

impl Batch {
    /// The row of the registry that holds the batches of a namespace. The registry is read by prefix: the
    /// length keeps the name of one row from being the beginning of another's.
    pub fn registry_name(namespace: &NamespaceId) -> String {
        format!("{REGISTRY_PREFIX}{}/{namespace}", namespace.as_str().len())
    }

    /// The namespace whose batches the row with this name holds.
    pub fn namespace_of(registry_name: &str) -> Option<NamespaceId> {
        let (_, namespace) = registry_name.strip_prefix(REGISTRY_PREFIX)?.split_once('/')?;
        Some(namespace.into())
    }

    pub const fn running(&self) -> bool {
        matches!(self.state, BatchState::Running)
    }

    /// Whether a request with this specification is a repeat of the one that started the batch.
    pub fn is_of(&self, spec: &BatchSpec) -> bool {
        match self.running() {
            true => self.spec == *spec,
            false => self.spec == spec.clone().without_input(),
        }
    }

    /// Ends it. The input of its signal is needed no longer.
    pub fn end(&mut self, state: BatchState, at: Timestamp) {
        (self.state, self.ended_at) = (state, Some(at));
        self.spec = self.spec.clone().without_input();
    }

    /// Counts a run that refused the action.
    pub fn fail(&mut self, workflow: WorkflowId, run: RunId, reason: &str) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            let reason = reason.chars().take(REASON_MAX).collect();
            self.failures.push(BatchFailure { workflow, run, reason });
        }
    }
}

/// What the names of all rows with batches begin with.
pub const REGISTRY_PREFIX: &str = "batches/";

/// Starts a batch. To repeat it with the same id changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartBatch {
    pub namespace: NamespaceId,
    pub spec: BatchSpec,
}

/// Stops a batch. What it has done stays done. To repeat it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopBatch {
    pub namespace: NamespaceId,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBatches {
    pub namespace: NamespaceId,
}

/// The batch that was asked for, or all of the namespace, the newest last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches(pub Vec<Batch>);

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> BatchSpec {
        BatchSpec {
            id: "b".into(),
            query: "WorkflowType = 'order'".into(),
            action: BatchAction::Terminate,
            rate: 0,
            reason: String::new(),
            identity: String::new(),
        }
    }

    fn refused(spec: BatchSpec) -> String {
        spec.checked(&Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_the_bound() {
        assert_eq!(spec().checked(&Limits::default()).unwrap().rate, RATE_DEFAULT);
        assert!(refused(BatchSpec { query: " ".into(), ..spec() }).contains("WorkflowType"));
        assert!(refused(BatchSpec { id: String::new(), ..spec() }).contains("choose one"));
        let long = refused(BatchSpec { id: "x".repeat(201), ..spec() });
        assert_eq!(long, "id has 201 bytes, the limit for a batch is 200; choose a shorter one");
        assert!(refused(BatchSpec { rate: 10_001, ..spec() }).contains("10000"));
        let to = ResetPoint::Event(4);
        let action = BatchAction::Reset { to, drop_signals: false, drop_updates: false };
        assert!(refused(BatchSpec { action, ..spec() }).contains("each run has others"));
    }

    fn signal(name: &str, bytes: usize) -> BatchSpec {
        let input = vec![crate::payload::Payload::new(vec![7; bytes])];
        BatchSpec { action: BatchAction::Signal { name: name.into(), input }, ..spec() }
    }

    #[test]
    fn a_signal_needs_a_name_and_a_small_input() {
        let limits = Limits::default();
        assert!(signal("paid", 16_000).checked(&limits).is_ok());
        let large = refused(signal("paid", 17_000));
        assert!(large.starts_with("input has 170"), "{large}");
        assert!(large.contains("limit for a batch is 16384; store the data elsewhere"), "{large}");
        assert_eq!(refused(signal("", 1)), "signal is empty");
    }

    #[test]
    fn the_longest_id_makes_a_key_that_every_run_accepts() {
        let limits = Limits::default();
        let spec = BatchSpec { id: "x".repeat(ID_BYTES_MAX), ..signal("paid", 1) };
        let spec = spec.checked(&limits).unwrap();
        let workflow = WorkflowKey { namespace: "n".into(), workflow: "w".into() };
        let RunOperation::Signal(operation) = spec.operation(workflow, RunId::MIN) else {
            panic!("it is a signal")
        };
        let key = operation.signal.key.unwrap();
        limits.check_name("key", key.as_str()).unwrap();
    }

    #[test]
    fn a_batch_that_has_ended_keeps_no_input_and_knows_its_request() {
        let spec = signal("paid", 9);
        let mut batch = batch(spec.clone());
        assert!(batch.is_of(&spec) && !batch.is_of(&signal("paid", 8)));
        batch.end(BatchState::Stopped, Timestamp::EPOCH);
        assert_eq!(batch.spec.action, BatchAction::Signal { name: "paid".into(), input: vec![] });
        assert!(batch.is_of(&spec) && !batch.is_of(&signal("sent", 9)));
    }

    #[test]
    fn no_row_is_read_with_that_of_another_namespace() {
        let name = |namespace: &str| Batch::registry_name(&namespace.into());
        let names = ["a", "ab", "a/b", "1/a", "2/ab"];
        for (one, other) in names.iter().flat_map(|one| names.map(|other| (*one, other))) {
            assert_eq!(name(other).starts_with(&name(one)), one == other, "{one} {other}");
        }
        assert_eq!(Batch::namespace_of(&name("1/a")), Some("1/a".into()));
    }

    fn batch(spec: BatchSpec) -> Batch {
        Batch {
            spec,
            state: BatchState::Running,
            started_at: Timestamp::EPOCH,
            ended_at: None,
            total: 0,
            done: 0,
            failed: 0,
            failures: Vec::new(),
            position: None,
            driver: String::new(),
            beat: 0,
        }
    }

    #[test]
    fn only_the_first_failures_are_kept() {
        let mut batch = batch(spec());
        for _ in 0..100 {
            batch.fail("w".into(), RunId::MIN, &"x".repeat(1000));
        }
        assert_eq!((batch.failed, batch.failures.len()), (100, FAILURES_MAX));
        assert_eq!(batch.failures[0].reason.len(), REASON_MAX);
    }
}
