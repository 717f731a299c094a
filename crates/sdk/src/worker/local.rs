//! Runs local activities. Each is a task of the runtime beside the workflow thread and runs all of
//! its attempts. Its end is sent to the thread of its run as an order.
//!
//! Local activities belong to the run's machine. Dropping the machine, because its turn was not
//! accepted or the worker shuts down, aborts them; the next worker that gets the run runs them
//! again. A limit for the whole worker bounds how many run at once; the others wait, and the wait
//! counts towards their timeouts.

use std::{
    collections::{BTreeMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use abide_core::{
    attempt::ActivityToken,
    event::{ActivitySpec, Delivery, Marker},
    failure::{Failure, FailureKind, TimeoutKind},
    limits::Limits,
    payload::Payloads,
    report::TaskToken,
    retry::RetryState,
    run::ActivityGiven,
    time::Timestamp,
};
use futures_util::FutureExt;
use tokio::{
    sync::Semaphore,
    task::AbortHandle,
    time::{Instant, sleep, timeout_at},
};
use tracing::Instrument;

use super::{
    activity, metrics::WorkerMetrics, notice, overdue::STOP_GRACE, oversized, shared::WorkerCore,
    span, thread_message::ThreadMessage,
};
use crate::{
    Codecs,
    activity::{
        ActivityCode, ActivityContext, ActivityEnd, ActivityInfo, AttemptLink, CancelToken,
        LocalActivity, LocalEnd, LocalVerdict,
    },
    executor::LocalWork,
};

#[derive(Default)]
pub(super) struct LocalRunner {
    running: BTreeMap<String, LocalRunning>,
    /// Ends that workflow code has not seen, in order of arrival.
    ended: VecDeque<Marker>,
}

/// A running local activity. Dropping it aborts its task.
struct LocalRunning {
    /// Distinguishes it from an earlier one with the same id in the same run.
    serial: u64,
    cancel: CancelToken,
    task: AbortHandle,
}

impl Drop for LocalRunning {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The end of a local activity, sent to the workflow thread.
pub(super) struct LocalEnded {
    /// The task whose code started it.
    pub(super) token: TaskToken,
    serial: u64,
    marker: Marker,
}

/// Starts local activities for the runs of one thread.
pub(super) struct Launcher {
    pub(super) shared: Arc<WorkerCore>,
    pub(super) orders: Sender<ThreadMessage>,
    pub(super) started: u64,
}

impl LocalRunner {
    /// Some local activities are running.
    pub(super) fn running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Some local activities are running, or their ends have not been delivered to code.
    pub(super) fn unfinished(&self) -> bool {
        self.running() || !self.ended.is_empty()
    }

    /// The next end to deliver to code.
    pub(super) fn next_end(&mut self) -> Option<Marker> {
        self.ended.pop_front()
    }

    /// Records an end, unless code no longer waits for that activity.
    pub(super) fn end(&mut self, ended: LocalEnded) {
        let LocalEnded { serial, marker, .. } = ended;
        if self.running.get(&marker.id).is_some_and(|running| running.serial == serial) {
            self.running.remove(&marker.id);
            self.ended.push_back(marker);
        }
    }

    /// Starts and stops local activities as code requests. Returns the name of an activity that is
    /// not registered.
    pub(super) fn take(
        &mut self,
        work: LocalWork,
        token: &TaskToken,
        launcher: &mut Launcher,
    ) -> Result<(), String> {
        for id in work.give_up {
            self.ended.retain(|marker| marker.id != id);
            if let Some(running) = self.running.remove(&id) {
                launcher.stop(running);
            }
        }
        for activity in work.begin {
            let id = activity.id.clone();
            self.running.insert(id, launcher.begin(activity, token)?);
        }
        Ok(())
    }
}

impl Launcher {
    fn begin(
        &mut self,
        activity: LocalActivity,
        token: &TaskToken,
    ) -> Result<LocalRunning, String> {
        let Some(code) = self.shared.registry.activity_code(&activity.activity_type) else {
            return Err(activity.activity_type);
        };
        self.started += 1;
        let (serial, cancel) = (self.started, CancelToken::new());
        let attempts = LocalAttempts {
            room: Arc::clone(&self.shared.local_activities),
            metrics: self.shared.metrics.clone(),
            codecs: self.shared.codecs.clone(),
            code,
            token: token.clone(),
            cancel: cancel.clone(),
            began: Instant::now(),
            activity,
        };
        let (orders, token) = (self.orders.clone(), token.clone());
        let task = self.shared.runtime.spawn(async move {
            let marker = attempts.run().await;
            // The send fails only if the thread has ended and needs no result.
            drop(orders.send(ThreadMessage::LocalEnded(Box::new(LocalEnded {
                token,
                serial,
                marker,
            }))));
        });
        Ok(LocalRunning { serial, cancel, task: task.abort_handle() })
    }

    /// Asks a cancelled local activity to stop, and aborts it if it does not.
    fn stop(&self, running: LocalRunning) {
        running.cancel.cancel();
        self.shared.runtime.spawn(async move {
            sleep(STOP_GRACE).await;
            drop(running);
        });
    }

    /// Ends the pause of a task that waits for local activities after this time.
    pub(super) fn pause(&self, token: &TaskToken, pause: Duration) {
        let (orders, run, start) = (self.orders.clone(), token.run, token.start);
        self.shared.runtime.spawn(async move {
            sleep(pause).await;
            // The send fails only if the thread has ended.
            drop(orders.send(ThreadMessage::LocalPause(run, start)));
        });
    }
}

struct LocalAttempts {
    room: Arc<Semaphore>,
    metrics: WorkerMetrics,
    codecs: Codecs,
    code: Arc<dyn ActivityCode>,
    token: TaskToken,
    cancel: CancelToken,
    began: Instant,
    activity: LocalActivity,
}

impl LocalAttempts {
    async fn run(self) -> Marker {
        let mut attempt = self.activity.attempt;
        loop {
            let began = Instant::now();
            let ended = self.attempt(attempt).await;
            let counts = self.metrics.local(&self.activity.activity_type);
            counts.attempt(ended.is_ok(), began.elapsed());
            let failure = match ended {
                Ok(result) => return self.marker(attempt, LocalEnd::Completed(result)),
                Err(failure) if out_of_time(&failure) => {
                    let end = LocalEnd::Failed(failure, RetryState::Timeout);
                    return self.marker(attempt, end);
                }
                Err(failure) => failure,
            };
            tracing::warn!(
                workflow = %notice::shown(&self.token.workflow),
                activity = self.activity.activity_type,
                attempt,
                error = failure.message,
                "an attempt of a local activity failed"
            );
            match self.activity.judge(attempt, failure, self.began.elapsed()) {
                LocalVerdict::Again(delay) => sleep(delay).await,
                LocalVerdict::Ends(end) => return self.marker(attempt, end),
            }
            attempt += 1;
        }
    }

    async fn attempt(&self, attempt: u32) -> Result<Payloads, Failure> {
        let whole = self.until(self.began, self.activity.schedule_to_close);
        let room = timeout_at(whole, self.room.acquire()).await;
        // The semaphore is never closed; if it were, attempts would run without a bound.
        let _room = room.map_err(|_| Failure::timeout(TimeoutKind::ScheduleToClose))?.ok();
        let one = self.until(Instant::now(), self.activity.start_to_close);
        let (context, input) = (self.context(attempt), self.activity.input.clone());
        let span = span::of_attempt(context.info());
        let code = async move { self.code.run(context, input).await }.instrument(span);
        let code = AssertUnwindSafe(code);
        match timeout_at(one.min(whole), code.catch_unwind()).await {
            Ok(Ok(end)) => self.fitting(attempt, end).await,
            Ok(Err(panic)) => Err(activity::panicked(&*panic)),
            Err(_) if whole <= one => Err(Failure::timeout(TimeoutKind::ScheduleToClose)),
            Err(_) => Err(Failure::timeout(TimeoutKind::StartToClose)),
        }
    }

    /// A limit that is not set is far in the future.
    fn until(&self, since: Instant, limit: Option<Duration>) -> Instant {
        const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        since.checked_add(limit.unwrap_or(FAR).min(FAR)).unwrap_or(since)
    }

    fn context(&self, attempt: u32) -> ActivityContext {
        let LocalActivity { id, activity_type, start_to_close, schedule_to_close, retry, .. } =
            &self.activity;
        let spec = ActivitySpec {
            activity: id.as_str().into(),
            activity_type: activity_type.clone(),
            queue: String::new(),
            input: Vec::new(),
            header: self.activity.header.clone(),
            schedule_to_close: *schedule_to_close,
            schedule_to_start: None,
            start_to_close: *start_to_close,
            heartbeat: None,
            retry: Some(retry.clone()),
            delivery: Delivery::AtLeastOnce,
            retry_of: None,
            attempt: 0,
        };
        let given = ActivityGiven {
            spec,
            execution: self.activity.execution.clone(),
            attempt,
            scheduled_at: Timestamp::EPOCH,
            heartbeat: None,
        };
        let info =
            ActivityInfo { given, workflow: self.token.workflow.clone(), run: self.token.run };
        ActivityContext::new(info, Arc::new(Unheard), self.cancel.clone())
    }

    fn marker(&self, attempt: u32, end: LocalEnd) -> Marker {
        self.activity.marker(attempt, end)
    }

    /// The end of an attempt, reduced to what can be recorded: an oversized marker would fail every
    /// later task. What counts is the size of what is sent, which is encoded.
    async fn fitting(&self, attempt: u32, end: ActivityEnd) -> Result<Payloads, Failure> {
        let limits = Limits::default();
        match end {
            ActivityEnd::Completed(result) => {
                let marker = self.marker(attempt, LocalEnd::Completed(result.clone()));
                let marker = self.codecs.as_sent(marker).await;
                match marker.and_then(|marker| limits.check_marker(&marker)) {
                    Ok(()) => Ok(result),
                    Err(problem) => Err(oversized::not_stored(&problem)),
                }
            }
            ActivityEnd::Failed(failure) => {
                let failure = Failure::from(failure);
                let sent = self.codecs.as_sent(failure.clone()).await;
                Err(match sent.and_then(|failure| limits.check_failure(&failure)) {
                    Ok(()) => failure,
                    Err(problem) => oversized::shortened(&failure, &problem).unwrap_or(failure),
                })
            }
            ActivityEnd::Cancelled(_) => Err(activity::not_cancelled()),
            ActivityEnd::Later => Err(cannot_be_left()),
        }
    }
}

/// Discards heartbeats: local activities have no heartbeat timeout.
struct Unheard;

impl AttemptLink for Unheard {
    fn heartbeat(&self, _details: Payloads) {}

    fn token(&self) -> Option<ActivityToken> {
        None
    }
}

fn out_of_time(failure: &Failure) -> bool {
    failure.kind == FailureKind::Timeout(TimeoutKind::ScheduleToClose)
}

/// The failure of a local activity that asks to be completed by another process.
fn cannot_be_left() -> Failure {
    let message =
        "a local activity cannot be completed from outside: call it as a regular activity";
    Failure { non_retryable: true, ..Failure::server(FailureKind::Application, message) }
}
