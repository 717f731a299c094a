//! A worker of an older SDK in miniature: it says itself what each task asks for, and knows nothing of
//! optional timers.

use std::time::Duration;

use abide_core::{
    command::{Ask, Command},
    dispatch::{Dispatch, QueueKey, WorkKind, Worker},
    event::{ActivitySpec, ChildSpec, Delivery, Origin, RunSpec, TimerSpec},
    payload::PayloadMap,
    report::{Report, ReportAnswer, TaskCompletion},
};
use abide_embedded::Embedded;
use abide_engine::{Given, Session};

use crate::site::key;

/// An older SDK's worker, connected for workflow tasks of the queue `default`.
pub(crate) struct OldWorker<'a> {
    engine: &'a Embedded,
    session: Session,
}

impl<'a> OldWorker<'a> {
    pub(crate) fn connect(engine: &'a Embedded) -> Self {
        let worker =
            Worker { session: "old".into(), identity: "old".into(), build: Some("old".into()) };
        let session = engine.engine().connect(worker, None);
        let queue = QueueKey {
            namespace: "default".into(),
            queue: "default".into(),
            kind: WorkKind::Workflow,
        };
        session.credit(queue, 100);
        Self { engine, session }
    }

    /// Takes the next workflow task and answers it with these commands and no flag.
    pub(crate) async fn task(&mut self, asks: impl IntoIterator<Item = Ask>) {
        let token = loop {
            match self.session.next().await.expect("the stream goes on") {
                Given::Work(Dispatch::Workflow { token, .. }) => break token,
                Given::Work(other) => panic!("not asked for: {other:?}"),
                Given::PresentAttempts(_) => {}
            }
        };
        let commands = asks.into_iter().map(Command::from).collect();
        let completion = TaskCompletion { commands, ..TaskCompletion::default() };
        let report = Report::CompleteTask(token, Box::new(completion));
        let reply = self.engine.engine().report(report).await;
        assert!(matches!(reply, Ok(ReportAnswer::TaskTaken { .. })), "{reply:?}");
    }
}

/// An activity without arguments.
pub(crate) fn activity(id: &str, activity_type: &str) -> Ask {
    Ask::ScheduleActivity(ActivitySpec {
        activity: id.into(),
        activity_type: activity_type.into(),
        queue: "default".into(),
        input: Vec::new(),
        header: PayloadMap::new(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: Some(Duration::from_secs(60)),
        heartbeat: None,
        retry: None,
        delivery: Delivery::AtLeastOnce,
        retry_of: None,
        attempt: 0,
    })
}

/// A child without arguments.
pub(crate) fn child(id: &str, workflow_type: &str) -> Ask {
    let spec = RunSpec {
        workflow_type: workflow_type.into(),
        queue: "default".into(),
        ..RunSpec::default()
    };
    Ask::StartChild(Box::new(ChildSpec {
        workflow: key(id),
        spec,
        parent_close: Default::default(),
        reuse: Default::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }))
}

/// A timer, of an SDK that may not say why it exists.
pub(crate) fn timer(id: &str, fire_at: abide::Timestamp, origin: Option<Origin>) -> Ask {
    Ask::StartTimer(TimerSpec {
        timer: id.into(),
        fire_at,
        origin,
        details: None,
        guards: Default::default(),
    })
}
