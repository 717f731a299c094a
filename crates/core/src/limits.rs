//! All limits of the engine, each with its reason. A request that exceeds a limit is refused before
//! anything is written, and the error names the limit. The simulator lowers them to reach every
//! path.

use std::{borrow::Cow, fmt, time::Duration};

use crate::{
    event::{Blocked, Marker, MarkerKind, RunSpec, WaitDetails},
    failure::Failure,
    ids::WorkflowKey,
    payload::{Extension, PayloadMap, Size, extension_size, map_size, size, text_size},
    retry::RetryPolicy,
    schedule::{self, ScheduleBounds, cron},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an id or name: keeps key columns far below the size of a page.
    pub id_bytes: usize,
    /// Bytes of one payload: a transition must fit a message.
    pub payload_bytes: usize,
    /// Payloads of one list or map, and entries of their metadata: each takes memory beside its bytes,
    /// so many empty ones would take much more than `payload_bytes`.
    pub payload_items: usize,
    /// Bytes of the memo of a run, and of its search attributes: a page of a list holds many of them,
    /// and each change of the run rewrites its row.
    pub attributes_bytes: usize,
    /// Search attributes that a namespace may have: all of them are read at once.
    pub search_attributes: usize,
    /// Keywords, words and other values of a run's search attributes: each is a row of an index.
    pub search_entries: usize,
    /// Bytes of the details of one wait: a page of a list holds many of them, and each change of
    /// the wait rewrites its row.
    pub wait_details_bytes: usize,
    /// Bytes of the details of all open waits of a run: they are shown together.
    pub open_details_bytes: usize,
    /// Causes of a failure: each level of nesting costs stack.
    pub failure_depth: usize,
    /// Events of a run from which inputs from outside are refused: replay must stay fast.
    pub events: u64,
    /// Events beyond `events` that are reserved for internal inputs and the close.
    pub events_reserve: u64,
    /// Events from which code is advised to continue as new.
    pub events_suggested: u64,
    /// Bytes of history from which code is advised to continue as new.
    pub history_bytes_suggested: u64,
    /// Inputs that are buffered while a task is started: they are copied into one transition.
    pub buffered_inputs: usize,
    /// Bytes of memory of buffered inputs, and of updates that code has not judged yet, from which
    /// more of them wait: all of them are written as one log row. One input may exceed it.
    pub buffered_bytes: usize,
    /// Open timers and condition waits of a run: they are held in memory.
    pub pending_timers: usize,
    /// Pending activities of a run.
    pub pending_activities: usize,
    /// Bytes of memory of their inputs: a run that is in use is held in memory.
    pub pending_activity_bytes: usize,
    /// Pending children and external requests of a run, except cancel requests to its own children.
    pub pending_children: usize,
    /// Updates of a run that have no outcome yet.
    pub pending_updates: usize,
    /// Total updates of a run: their outcomes are kept while it is open.
    pub updates: usize,
    /// Bytes of memory of those outcomes.
    pub update_bytes: usize,
    /// Commands of one task, in addition to one for each open item that can be ended.
    pub commands: usize,
    /// Keys of one kind that the next run of a chain takes over, newest first.
    pub carried_keys: usize,
    /// Bytes of those keys: they are part of one event of the next run, which must fit a message.
    pub carried_key_bytes: usize,
    /// Keys of earlier terminations that the next run of a workflow id takes over, newest first: with
    /// them, a run costs more the more runs there were. Clients repeat an unanswered call soon.
    pub terminate_keys: usize,
    /// Default timeout of a workflow task.
    pub task_timeout: Duration,
    /// Minimum interval between two heartbeats that are written.
    pub heartbeat_write_interval: Duration,
    /// Bytes of memory of a shard's heartbeats that are not written yet. Without room for more, only the
    /// time of a heartbeat is kept until its attempt may write again.
    pub heartbeat_bytes: usize,
    /// How long a worker may take to present its attempts after its stream was lost or a restart.
    pub session_grace: Duration,
    /// Whether workers of the process that had the shard before may still present their attempts. They
    /// cannot if all workers are inside the process of their engine.
    pub workers_outlive_owner: bool,
    /// Callers that wait for one run: every change of the run checks all of them.
    pub run_waiters: usize,
    /// Runs that a shard caches, not counting those with work in flight.
    pub cached_runs: usize,
    /// Bytes of memory of a shard's updates that code has neither accepted nor rejected: they are
    /// nowhere else.
    pub waiting_update_bytes: usize,
    /// Bytes of memory that all cached runs may take. The last one used stays for a moment, however
    /// large.
    pub cached_bytes: usize,
    /// Minimum number of log rows between two snapshots of a run: a large one is written less
    /// often.
    pub snapshot_rows: u64,
    /// Rows per read.
    pub page_rows: usize,
    /// Bytes after which a page of a log is full: rows differ much in size, and a shard or a client
    /// holds a whole page in memory.
    pub log_page_bytes: usize,
    /// Bytes of one page of a list: it must fit a message, and many may be in flight.
    pub page_bytes: usize,
    /// Rows that a store examines in one read for a list or count of runs: other reads get their turn
    /// in between.
    pub examined_rows: usize,
    /// Rows that a store examines for a tally.
    pub tally_rows: usize,
    /// Groups of a tally, which must fit a message: a thousand intervals of every kind of wait.
    pub tally_groups: usize,
    /// How far ahead a shard keeps due times in memory.
    pub near_window: Duration,
    /// How many due times a shard keeps in memory.
    pub near_timers: usize,
    /// Tasks that a queue keeps in memory; the others remain rows.
    pub queued_offers: usize,
    /// Tasks that are on their way to one worker, whatever its credit: each may be large.
    pub matches_in_flight: usize,
    /// Requests that are queued for a busy run.
    pub waiting_requests: usize,
    /// How long to wait for the answer to an effect before sending it again.
    pub effect_timeout: Duration,
    /// Effects of a shard that are resent at the same time: repeats must not overload a target that
    /// is merely slow.
    pub resent_effects: usize,
    /// How long answers to effects are kept if their source never confirms them.
    pub inbox_retention: Duration,
    /// How long answers to effects are kept after their source confirmed them: longer than a repeat
    /// can be in flight.
    pub confirmed_retention: Duration,
    /// Interval between two searches for runs that nothing would resume.
    pub sweep_interval: Duration,
    /// Open runs that one such search examines: it must not delay other reads.
    pub swept_runs: usize,
    /// Open runs without a task whose log each search compares with their rows: each is loaded.
    pub checked_runs: usize,
    /// Bytes of a history that a reset copies: it is held in memory, and written in one batch.
    pub reset_bytes: u64,
    /// Bounds of schedules.
    pub schedules: ScheduleBounds,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            id_bytes: 1000,
            payload_bytes: 2 << 20,
            payload_items: 20_000,
            attributes_bytes: 64 << 10,
            search_attributes: 200,
            search_entries: 500,
            wait_details_bytes: 64 << 10,
            open_details_bytes: 2 << 20,
            failure_depth: 100,
            events: 50_000,
            events_reserve: 5_000,
            events_suggested: 4_096,
            history_bytes_suggested: 4 << 20,
            buffered_inputs: 1_000,
            buffered_bytes: 4 << 20,
            pending_timers: 10_000,
            pending_activities: 10_000,
            pending_activity_bytes: 64 << 20,
            pending_children: 10_000,
            pending_updates: 100,
            updates: 2_000,
            update_bytes: 64 << 20,
            commands: 10_000,
            carried_keys: 20_000,
            carried_key_bytes: 1 << 20,
            terminate_keys: 100,
            task_timeout: Duration::from_secs(10),
            heartbeat_write_interval: Duration::from_secs(5),
            heartbeat_bytes: 1 << 20,
            session_grace: Duration::from_secs(5),
            workers_outlive_owner: true,
            run_waiters: 10_000,
            cached_runs: 64,
            waiting_update_bytes: 1 << 20,
            cached_bytes: 1 << 20,
            snapshot_rows: 200,
            page_rows: 200,
            log_page_bytes: 1 << 20,
            page_bytes: 4 << 20,
            examined_rows: 2_000,
            tally_rows: 100_000,
            tally_groups: 6_000,
            near_window: Duration::from_secs(60),
            near_timers: 10_000,
            queued_offers: 1_000,
            matches_in_flight: 32,
            waiting_requests: 1_000,
            effect_timeout: Duration::from_secs(5),
            resent_effects: 1_000,
            inbox_retention: Duration::from_secs(7 * 24 * 3600),
            confirmed_retention: Duration::from_secs(600),
            sweep_interval: Duration::from_secs(60),
            swept_runs: 4096,
            checked_runs: 10,
            reset_bytes: 64 << 20,
            schedules: ScheduleBounds::default(),
        }
    }
}

/// A limit that a request would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    pub what: Cow<'static, str>,
    pub limit: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} would exceed the limit of {}", self.what, self.limit)
    }
}

impl Limits {
    /// Checks that the name is neither empty nor too long.
    #[doc(hidden)]
    pub fn check_name(&self, field: &'static str, name: &str) -> Result<(), InvalidField> {
        if name.is_empty() {
            return Err(InvalidField::new(field, "is empty"));
        }
        self.check_length(field, name)
    }

    /// Checks that the name is not too long; it may be empty where that has a meaning.
    #[doc(hidden)]
    pub fn check_length(&self, field: &'static str, name: &str) -> Result<(), InvalidField> {
        check_bytes(field, name.len(), self.id_bytes)
    }

    /// Checks that the data is not too large.
    #[doc(hidden)]
    pub fn check_size(&self, field: &'static str, size: Size) -> Result<(), InvalidField> {
        let Size { bytes, items } = size;
        if items > self.payload_items {
            let limit = self.payload_items;
            let problem = format!(
                "has {items} payloads and entries of metadata, the limit is {limit}; put many values into \
                 one payload"
            );
            return Err(InvalidField::new(field, problem));
        }
        check_bytes(field, bytes, self.payload_bytes)
    }

    /// Checks that a memo, or all search attributes, are not too large.
    #[doc(hidden)]
    pub fn check_attributes(
        &self,
        field: &'static str,
        attributes: &PayloadMap,
    ) -> Result<(), InvalidField> {
        let size = map_size(attributes);
        self.check_size(field, size)?;
        check_bytes(field, size.bytes, self.attributes_bytes)
    }

    /// Checks the namespace and the id of a workflow that is no schedule.
    pub fn check_workflow(&self, workflow: &WorkflowKey) -> Result<(), InvalidField> {
        self.check_length("namespace", workflow.namespace.as_str())?;
        self.check_name("workflow id", workflow.workflow.as_str())?;
        match schedule::id_of(&workflow.workflow) {
            Some(_) => Err(InvalidField::new("workflow id", schedule::RESERVED)),
            None => Ok(()),
        }
    }

    /// Checks that the details of a wait are not too large.
    #[doc(hidden)]
    pub fn check_details(&self, details: &WaitDetails) -> Result<(), InvalidField> {
        self.check_size("details of the wait", map_size(&details.data))?;
        check_bytes("details of the wait", details.size(), self.wait_details_bytes)
    }

    /// Checks the specification of a run: of a start, a child, or the next run of a workflow.
    #[doc(hidden)]
    pub fn check_spec(&self, spec: &RunSpec) -> Result<(), InvalidField> {
        self.check_name("workflow type", &spec.workflow_type)?;
        self.check_name("queue", &spec.queue)?;
        self.check_size("input", size(&spec.input))?;
        self.check_size("header", map_size(&spec.header))?;
        self.check_attributes("memo", &spec.memo)?;
        self.check_attributes("search attributes", &spec.search_attributes)?;
        let timeouts = [
            ("execution timeout", spec.execution_timeout),
            ("run timeout", spec.run_timeout),
            ("task timeout", spec.task_timeout),
        ];
        if let Some((field, _)) = timeouts.iter().find(|(_, limit)| *limit == Some(Duration::ZERO))
        {
            return Err(InvalidField::new(*field, "is zero; leave it out for no limit"));
        }
        if spec.retry.as_ref().is_some_and(|policy| policy.recorded) {
            let problem = "is recorded, which is for the activities and children of a run";
            return Err(InvalidField::new("retry policy", problem));
        }
        self.check_retry(spec.retry.as_ref())?;
        self.check_length("cron", spec.cron.as_deref().unwrap_or_default())?;
        match &spec.cron {
            Some(cron) => match cron::problem(cron) {
                Some(problem) => Err(InvalidField::new("cron", format!("{cron:?} {problem}"))),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Checks that the error types of a retry policy are not too large.
    #[doc(hidden)]
    pub fn check_retry(&self, retry: Option<&RetryPolicy>) -> Result<(), InvalidField> {
        let types =
            retry.map(|policy| policy.non_retryable_types.iter().map(|it| text_size(it)).sum());
        self.check_size("retry policy", types.unwrap_or_default())
    }

    /// Checks that the data of a gateway is not too large.
    #[doc(hidden)]
    pub fn check_extension(&self, extension: &Extension) -> Result<(), InvalidField> {
        self.check_size("extension", extension_size(extension))
    }

    /// Checks that the description of a mismatch is not too large.
    #[doc(hidden)]
    pub fn check_blocked(&self, blocked: &Blocked) -> Result<(), InvalidField> {
        let Blocked { expected, recorded, .. } = blocked;
        let keys = [
            &blocked.expected_key,
            &blocked.recorded_key,
            &blocked.expected_fingerprint,
            &blocked.recorded_fingerprint,
        ];
        let keys = keys.into_iter().flatten();
        let texts = keys.chain(recorded).chain([expected]).map(|text| text_size(text));
        self.check_size("blocked", texts.sum())
    }

    /// Checks that a marker is not too large, its failure included.
    #[doc(hidden)]
    pub fn check_marker(&self, marker: &Marker) -> Result<(), InvalidField> {
        self.check_length("marker id", &marker.id)?;
        if let MarkerKind::Named(name) = &marker.kind {
            self.check_length("marker kind", name)?;
        }
        let details = marker.details.iter().map(|(name, value)| text_size(name) + size(value));
        self.check_size("marker", details.sum::<Size>() + map_size(&marker.header))?;
        marker.failure.as_ref().map_or(Ok(()), |failure| self.check_failure(failure))
    }

    /// Checks that the failure is neither too large nor nested too deeply.
    #[doc(hidden)]
    pub fn check_failure(&self, failure: &Failure) -> Result<(), InvalidField> {
        let depth = failure.depth();
        if depth > self.failure_depth {
            let problem = format!("has {depth} causes, the limit is {}", self.failure_depth);
            return Err(InvalidField::new("failure", problem));
        }
        self.check_size("failure", failure.size())
    }
}

fn check_bytes(field: &'static str, size: usize, limit: usize) -> Result<(), InvalidField> {
    if size <= limit {
        return Ok(());
    }
    Err(InvalidField::new(field, format!("has {size} bytes, the limit is {limit}")))
}

/// An invalid field of a request, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidField {
    pub field: String,
    /// What is wrong with it, and the limit if there is one.
    pub problem: String,
}

impl InvalidField {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl Exceeded {
    /// `Ok` while `count` is below `limit`.
    pub fn check(what: &'static str, count: usize, limit: usize) -> Result<(), Self> {
        if count < limit {
            return Ok(());
        }
        Err(Self { what: what.into(), limit: u64::try_from(limit).unwrap_or(u64::MAX) })
    }
}

/// Longest delay between attempts of a workflow task, so that an operator soon sees a deployed fix
/// work.
pub const TASK_BACKOFF_MAX: Duration = Duration::from_secs(600);

pub const CONDITION_KEY_BYTES: usize = 128;

/// Whether this is a valid key: 1 to 128 letters, digits and `. _ - :`, so that it can be part of a
/// URL.
pub fn valid_condition_key(key: &str) -> bool {
    (1..=CONDITION_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::payload::Payload;

    #[test]
    fn condition_keys() {
        assert!(valid_condition_key("approval.decided:2_a-B"));
        assert!(valid_condition_key(&"k".repeat(128)));
        for bad in ["", "a b", "ä", "a/b", &"k".repeat(129)] {
            assert!(!valid_condition_key(bad), "{bad}");
        }
    }

    /// An empty payload has no bytes and still takes memory.
    #[test]
    fn payloads_are_bounded_in_number_too() {
        let limits = Limits { payload_items: 10, ..Limits::default() };
        let check = |payloads: Vec<Payload>| limits.check_size("input", size(&payloads));
        assert_eq!(check(vec![Payload::default(); 10]), Ok(()));
        let refused = check(vec![Payload::default(); 11]).unwrap_err().to_string();
        assert_eq!(
            refused,
            "input has 11 payloads and entries of metadata, the limit is 10; put many values into one \
             payload"
        );
        let metadata = (0..5).map(|number| (number.to_string(), Bytes::new())).collect();
        let described = Payload { metadata, ..Payload::default() };
        assert_eq!(check(vec![described.clone()]), Ok(()));
        assert!(check(vec![described; 2]).is_err());
        let memory = size(&vec![Payload::default(); 32_000]).memory();
        assert!(memory > 1_000_000, "{memory}");
        // What was as large as the limit allows still is.
        let limits = Limits::default();
        let most = [Payload::new(vec![0; limits.payload_bytes])];
        assert_eq!(limits.check_size("input", size(&most)), Ok(()));
    }

    /// Every text of a blocked run counts, and all of them together.
    #[test]
    fn texts_of_blocked_runs_are_bounded() {
        let limits = Limits::default();
        let most = "x".repeat(limits.payload_bytes);
        let with = |change: fn(&mut Blocked, String)| {
            let mut blocked = Blocked::default();
            change(&mut blocked, most.clone());
            limits.check_blocked(&blocked).unwrap();
            blocked.expected.push('x');
            blocked
        };
        for blocked in [
            with(|blocked, text| blocked.expected = text),
            with(|blocked, text| blocked.recorded = vec![text]),
            with(|blocked, text| blocked.expected_key = Some(text)),
            with(|blocked, text| blocked.recorded_key = Some(text)),
            with(|blocked, text| blocked.expected_fingerprint = Some(text)),
            with(|blocked, text| blocked.recorded_fingerprint = Some(text)),
        ] {
            let refused = limits.check_blocked(&blocked).unwrap_err();
            assert_eq!(refused.field, "blocked");
        }
    }

    #[test]
    fn a_cron_expression_is_bounded_before_it_is_read() {
        let limits = Limits::default();
        let refused = |cron: String| {
            let (workflow_type, queue, cron) = ("w".into(), "q".into(), Some(cron));
            let spec = RunSpec { workflow_type, queue, cron, ..RunSpec::default() };
            limits.check_spec(&spec).unwrap_err().to_string()
        };
        let long = refused("*".repeat(limits.id_bytes + 1));
        assert!(long.contains("the limit is") && !long.contains("***"), "{long}");
        assert!(refused("soon".into()).contains("is not a cron expression"));
    }

    #[test]
    fn a_refusal_names_the_bound() {
        assert_eq!(Exceeded::check("timers", 1, 2), Ok(()));
        let exceeded = Exceeded::check("open timers", 2, 2).unwrap_err();
        assert_eq!(exceeded.to_string(), "open timers would exceed the limit of 2");
    }
}
