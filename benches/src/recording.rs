//! Transitions of small workflows as the production machines make them: decided by `core::run`,
//! encoded by the codec and projected to rows as in a shard. A benchmark repeats them with other
//! ids and times.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    codec,
    command::{Ask, Command},
    event::{ActivitySpec, Origin, RunSpec, SignalReceived, TimerSpec},
    ids::{RunId, StartId, WorkflowKey},
    limits::Limits,
    note::Record,
    payload::Payload,
    run::{
        self, CompleteTask, Context, Input, Resolution, ResolveActivity, Run, Signal,
        StartActivity, StartRun, StartTask, Touch,
    },
    time::Timestamp,
};
use abide_shard::rows::{self, Row};
use abide_store::{Write, rows::LogRow};

/// Start of the recorded run; times of its rows are relative to it.
pub const BEGIN: Timestamp = Timestamp::EPOCH;

/// What each transition of a workflow writes.
pub type Recording = Vec<Vec<Write>>;

/// One activity: started, scheduled, completed, closed.
pub fn hello() -> Recording {
    let mut recorder = Recorder::start();
    recorder.run_activity();
    recorder.transitions
}

/// A sleep of an hour that a signal ends, then the same as [`hello`].
pub fn sleep() -> Recording {
    let mut recorder = Recorder::start();
    recorder.complete_task(vec![Ask::StartTimer(TimerSpec {
        timer: "1".into(),
        fire_at: BEGIN.saturating_add(Duration::from_secs(3600)),
        origin: Some(Origin::CreateTimer),
        details: None,
        guards: Default::default(),
    })]);
    let signal = SignalReceived {
        name: "wake".into(),
        input: vec![json("\"now\"")],
        identity: "client@host".into(),
        key: Some("signal-1".into()),
        received_at: BEGIN,
        ..SignalReceived::default()
    };
    recorder.step(vec![Input::Signal(Box::new(Signal { signal, extension: Default::default() }))]);
    recorder.ask_first = vec![Ask::CancelTimer("1".into())];
    recorder.run_activity();
    recorder.transitions
}

struct Recorder {
    run: Run,
    rows: BTreeMap<Touch, Vec<Row>>,
    transitions: Recording,
    limits: Limits,
    starts: u64,
    /// Commands before the next activity.
    ask_first: Vec<Ask>,
}

impl Recorder {
    fn start() -> Self {
        let limits = Limits::default();
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "hello-1".into() };
        let spec = RunSpec {
            workflow_type: "Hello".into(),
            queue: "default".into(),
            input: vec![json("\"world\"")],
            ..RunSpec::default()
        };
        let start = StartRun {
            identity: "client@host".into(),
            key: Some("start-1".into()),
            ..StartRun::new(workflow, RunId::from_parts(BEGIN, 1), spec)
        };
        let (run, decision) = run::start(&context(&limits), start);
        let rows = BTreeMap::new();
        let (transitions, ask_first) = (Vec::new(), Vec::new());
        let mut recorder = Self { run, rows, transitions, limits, starts: 0, ask_first };
        recorder.record(&decision.records);
        recorder
    }

    /// Schedules an activity that the same worker takes immediately, completes it, and closes the
    /// run.
    fn run_activity(&mut self) {
        let mut asks = std::mem::take(&mut self.ask_first);
        asks.push(Ask::ScheduleActivity(ActivitySpec {
            activity: "1".into(),
            activity_type: "greet".into(),
            queue: String::new(),
            input: vec![json("\"world\"")],
            header: Default::default(),
            schedule_to_close: None,
            schedule_to_start: None,
            start_to_close: Some(Duration::from_secs(10)),
            heartbeat: None,
            retry: Some(Default::default()),
            delivery: Default::default(),
            retry_of: None,
            attempt: 0,
        }));
        let scheduled = self.run.last_event + 2 + u64::try_from(asks.len()).unwrap_or_default();
        let take = StartActivity {
            scheduled,
            session: "session-1".into(),
            identity: "worker@host".into(),
        };
        let complete = self.completion(asks);
        self.step(vec![complete, Input::StartActivity(take)]);
        let resolution = Resolution::Completed(vec![json("\"Hello, world!\"")]);
        self.step(vec![Input::ResolveActivity(ResolveActivity {
            scheduled,
            start: 1,
            resolution,
        })]);
        self.complete_task(vec![Ask::CompleteRun(vec![json("\"Hello, world!\"")])]);
    }

    fn complete_task(&mut self, asks: Vec<Ask>) {
        let complete = self.completion(asks);
        self.step(vec![complete]);
    }

    /// Starts and completes the workflow task. The start itself writes nothing.
    fn completion(&mut self, asks: Vec<Ask>) -> Input {
        self.starts += 1;
        let start = StartId { incarnation: 1, counter: self.starts };
        let task = StartTask {
            start,
            session: "session-1".into(),
            identity: "worker@host".into(),
            build: Some("0123456789abcdef".into()),
        };
        run::decide(&mut self.run, &context(&self.limits), Input::StartTask(task))
            .expect("the task can be started");
        Input::CompleteTask(Box::new(CompleteTask {
            start,
            commands: asks.into_iter().map(Command::from).collect(),
            flags: Default::default(),
            sdk_metadata: Default::default(),
            force_next: false,
            carried: Vec::new(),
        }))
    }

    /// Decides the inputs of one transition.
    fn step(&mut self, inputs: Vec<Input>) {
        let mut records = Vec::new();
        for input in inputs {
            let decision = run::decide(&mut self.run, &context(&self.limits), input);
            records.extend(decision.expect("the input applies").records);
        }
        self.record(&records);
    }

    fn record(&mut self, records: &[Record]) {
        let first_event = records.iter().find_map(|record| match record {
            Record::Event(event) => Some(event.number),
            Record::Note(_) => None,
        });
        let row = codec::encode_row(records);
        self.run.logged(row.events.len());
        let mut writes = vec![Write::AppendLog(LogRow {
            run: self.run.id,
            sequence: self.run.log_rows,
            first_event: first_event.unwrap_or(self.run.last_event + 1),
            events: row.events,
            notes: row.notes,
        })];
        for part in self.run.take_touched() {
            let after = rows::project(&self.run, &part);
            let before = self.rows.insert(part, after.clone()).unwrap_or_default();
            writes.extend(rows::changes(&before, &after));
        }
        self.transitions.push(writes);
    }
}

fn context(limits: &Limits) -> Context<'_> {
    Context { now: BEGIN, next_run: RunId::MAX, limits }
}

fn json(text: &'static str) -> Payload {
    let mut payload = Payload::new(text);
    payload.metadata.insert("encoding".into(), "json/plain".into());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(recording: &Recording) -> Vec<Vec<&'static str>> {
        let name = |write: &Write| match write {
            Write::AppendLog(_) => "log",
            Write::PutRun(_) => "run",
            Write::PutTask(_) => "+task",
            Write::DeleteTask(_) => "-task",
            Write::PutDue(_) => "+due",
            Write::DeleteDue(_) => "-due",
            Write::PutWait(_) => "+wait",
            Write::DeleteWait { .. } => "-wait",
            _ => "other",
        };
        let names = |writes: &Vec<Write>| {
            let mut names: Vec<_> = writes.iter().map(name).collect();
            names.sort_unstable();
            names
        };
        recording.iter().map(names).collect()
    }

    #[test]
    fn a_hello_is_four_commits() {
        assert_eq!(
            names(&hello()),
            [
                vec!["+task", "log", "run"],
                vec!["+due", "+task", "-task", "log"],
                vec!["+task", "-due", "-task", "log"],
                vec!["-task", "log", "run"],
            ]
        );
    }

    #[test]
    fn a_sleep_is_a_wait_and_a_due_entry() {
        let sleep = names(&sleep());
        assert_eq!(sleep.len(), 6);
        assert_eq!(sleep[1], ["+due", "+wait", "-task", "log"]);
        assert_eq!(sleep[3], ["+due", "+task", "-due", "-task", "-wait", "log"]);
    }
}
