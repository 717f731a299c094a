//! What schedules do: policies, downtime, backfills, pauses, updates, bounds.

use std::time::Duration;

use super::{
    Backfill, Overlap, Schedule, ScheduleBounds, ScheduleChange, ScheduleChanged, ScheduleState,
    ScheduleStepped, ScheduledOutcome, ScheduledRunEnded, Spec, StepContext, key_of, step,
};
use crate::{
    digest::Digest,
    event::{CancelMode, RunSpec},
    ids::{RunId, WorkflowKey},
    limits::Limits,
    payload::Payload,
    time::Timestamp,
};

const NONE: [u64; 0] = [];

/// A schedule with a clock.
struct Rig {
    state: ScheduleState,
    now: Timestamp,
    bounds: ScheduleBounds,
    key: WorkflowKey,
    last: Option<ScheduleStepped>,
}

fn minutes(count: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_800_000_000_000 + count * 60_000)
}

fn schedule(overlap: Overlap) -> Schedule {
    let run = RunSpec { workflow_type: "t".into(), queue: "q".into(), ..RunSpec::default() };
    Schedule {
        spec: Spec { cron: vec!["* * * * *".into()], ..Spec::default() },
        workflow: "w".into(),
        run,
        overlap: Some(overlap),
        catch_up: None,
        pause_on_failure: false,
        remaining: None,
    }
}

fn of_bytes(count: usize) -> Vec<Payload> {
    vec![Payload { data: vec![0; count].into(), ..Payload::default() }]
}

impl Rig {
    fn new(overlap: Overlap) -> Self {
        Self::of(schedule(overlap))
    }

    fn of(schedule: Schedule) -> Self {
        Self::with(schedule, ScheduleBounds::default(), false)
    }

    fn with(schedule: Schedule, bounds: ScheduleBounds, trigger: bool) -> Self {
        let (key, now) = (key_of("n".into(), "s"), minutes(0));
        let context = StepContext { now, workflow: &key, run: RunId::MIN, bounds: &bounds };
        let state = ScheduleState::begin(schedule, (false, String::new()), trigger, context);
        Self { state, now, bounds, key, last: None }
    }

    /// Lets it act now, and returns the minutes of the starts.
    fn step(&mut self) -> Vec<u64> {
        let context = StepContext {
            now: self.now,
            workflow: &self.key,
            run: RunId::MIN,
            bounds: &self.bounds,
        };
        let done = step(&self.state, context);
        self.state.apply_stepped(&done);
        let minute = |at: Timestamp| at.saturating_since(minutes(0)).as_secs() / 60;
        let started = done.started.iter().map(|run| minute(run.nominal)).collect();
        self.last = Some(done);
        started
    }

    /// Waits for the given minute; it acts only then.
    fn at(&mut self, minute: u64) -> Vec<u64> {
        self.now = minutes(minute);
        self.step()
    }

    /// Lets it act as often as it wants to.
    fn settle(&mut self) -> Vec<u64> {
        let mut started = self.step();
        for _ in 0..10_000 {
            if self.state.wake_at > self.now {
                return started;
            }
            started.extend(self.step());
        }
        panic!("it never rests");
    }

    fn change(&mut self, change: ScheduleChange) -> Vec<u64> {
        let (at, identity, key) = (self.now, String::new(), None);
        let changed = ScheduleChanged { at, identity, key, asked: Digest::UNKNOWN, change };
        self.state.apply_changed(&changed);
        self.step()
    }

    fn ended(&mut self, number: u64, outcome: ScheduledOutcome) -> Vec<u64> {
        self.state.apply_ended(&ScheduledRunEnded { number, outcome });
        self.step()
    }

    fn completed(&mut self, number: u64) -> Vec<u64> {
        self.ended(number, ScheduledOutcome::Completed)
    }

    fn told_to_end(&self) -> Vec<(u64, CancelMode)> {
        let ending = self.last.iter().flat_map(|step| &step.ending);
        ending.map(|told| (told.number, told.mode)).collect()
    }

    fn waiting(&self) -> usize {
        self.state.waiting.len()
    }
}

fn trigger(overlap: Option<Overlap>) -> ScheduleChange {
    ScheduleChange::Triggered { overlap }
}

fn backfill(from: u64, to: u64, overlap: Overlap) -> ScheduleChange {
    let (from, to) = (minutes(from), minutes(to));
    ScheduleChange::Backfilled { from, to, overlap: Some(overlap) }
}

#[test]
fn it_plans_when_it_is_created_and_starts_exactly_then() {
    let mut rig = Rig::new(Overlap::Skip);
    assert_eq!(rig.state.wake_at, minutes(1));
    rig.now = minutes(1) - Duration::from_nanos(1);
    assert_eq!(rig.step(), NONE);
    assert_eq!(rig.at(1), [1]);
    assert_eq!((rig.state.wake_at, rig.state.considered), (minutes(2), minutes(1)));
    let run = &rig.state.running[0];
    assert_eq!(run.workflow.as_str(), "w-2027-01-15T08:01:00Z");
    // A clock that was set back starts nothing again.
    assert_eq!(rig.at(0), NONE);
    assert_eq!(rig.completed(1), NONE);
    assert_eq!(rig.at(1), NONE);
}

#[test]
fn skip_leaves_out_what_overlaps() {
    let mut rig = Rig::new(Overlap::Skip);
    assert_eq!(rig.at(1), [1]);
    assert_eq!(rig.at(2), NONE);
    assert_eq!(rig.at(3), NONE);
    assert_eq!(rig.completed(1), NONE);
    assert_eq!(rig.at(4), [4]);
    assert_eq!((rig.state.skipped, rig.state.starts), (2, 2));
}

#[test]
fn buffer_one_keeps_the_first_that_overlaps() {
    let mut rig = Rig::new(Overlap::BufferOne);
    assert_eq!(rig.at(1), [1]);
    assert_eq!(rig.at(2), NONE);
    assert_eq!(rig.at(3), NONE);
    assert_eq!((rig.waiting(), rig.state.skipped), (1, 1));
    assert_eq!(rig.completed(1), [2]);
    assert_eq!(rig.completed(2), NONE);
}

#[test]
fn buffer_all_starts_one_after_the_other() {
    let mut rig = Rig::new(Overlap::BufferAll);
    assert_eq!(rig.at(4), [1]);
    assert_eq!(rig.waiting(), 3);
    assert_eq!(rig.completed(1), [2]);
    assert_eq!(rig.completed(2), [3]);
    assert_eq!(rig.completed(3), [4]);
    assert_eq!(rig.completed(4), NONE);
}

#[test]
fn allow_all_starts_beside_the_others() {
    let mut rig = Rig::new(Overlap::AllowAll);
    assert_eq!(rig.at(3), [1, 2, 3]);
    assert_eq!(rig.at(4), [4]);
    assert_eq!(rig.state.running.len(), 4);
}

#[test]
fn cancel_other_waits_for_the_end_and_the_newest_wins() {
    let mut rig = Rig::new(Overlap::CancelOther);
    assert_eq!(rig.at(1), [1]);
    assert_eq!(rig.at(2), NONE);
    assert_eq!(rig.told_to_end(), [(1, CancelMode::Request)]);
    assert_eq!(rig.at(3), NONE);
    assert_eq!(rig.told_to_end(), Vec::new(), "it is told once");
    assert_eq!((rig.waiting(), rig.state.skipped), (1, 1));
    assert_eq!(rig.ended(1, ScheduledOutcome::Cancelled), [3]);
}

#[test]
fn terminate_other_ends_also_what_does_not_cancel_itself() {
    let mut rig = Rig::new(Overlap::CancelOther);
    assert_eq!(rig.at(1), [1]);
    rig.at(2);
    assert_eq!(rig.change(trigger(Some(Overlap::TerminateOther))), NONE);
    assert_eq!(rig.told_to_end(), [(1, CancelMode::Terminate)]);
    assert_eq!(rig.ended(1, ScheduledOutcome::Terminated), [2]);
}

#[test]
fn a_start_that_failed_makes_room_for_the_next() {
    let mut rig = Rig::new(Overlap::BufferAll);
    assert_eq!(rig.at(2), [1]);
    let cause = crate::event::DeliveryFailure::AlreadyExists;
    assert_eq!(rig.ended(1, ScheduledOutcome::NotStarted { cause }), [2]);
    assert_eq!(rig.state.recent[0].outcome, Some(ScheduledOutcome::NotStarted { cause }));
}

#[test]
fn after_downtime_times_within_the_window_are_caught_up() {
    let catch_up = Some(Duration::from_secs(180));
    let mut rig = Rig::of(Schedule { catch_up, ..schedule(Overlap::AllowAll) });
    // At minute 10, starts may be three minutes late.
    assert_eq!(rig.at(10), [7, 8, 9, 10]);
    assert_eq!((rig.state.missed, rig.state.considered), (6, minutes(10)));
}

#[test]
fn a_very_long_downtime_is_passed_in_one_step() {
    let catch_up = Some(Duration::from_secs(60));
    let mut rig = Rig::of(Schedule { catch_up, ..schedule(Overlap::AllowAll) });
    let year = 365 * 24 * 60;
    assert_eq!(rig.at(year), [year - 1, year]);
    assert_eq!(rig.state.missed, 1_000, "not all are counted");
}

#[test]
fn what_bounds_leave_no_room_for_comes_later() {
    let bounds =
        ScheduleBounds { running: 5, starts: 2, waiting: 3, times: 4, ..Default::default() };
    let mut rig = Rig::with(schedule(Overlap::AllowAll), bounds.clone(), false);
    rig.now = minutes(8);
    assert_eq!(rig.step(), [1, 2]);
    assert_eq!(rig.state.wake_at, rig.now, "it goes on at once");
    assert_eq!(rig.settle(), [3, 4, 5]);
    assert_eq!(rig.state.wake_at, Timestamp::NEVER, "it waits for room");
    assert_eq!(rig.completed(2), [6]);
    rig.completed(1);
    rig.completed(3);
    assert_eq!(rig.state.starts, 8, "none is lost");

    let mut rig = Rig::with(schedule(Overlap::BufferAll), bounds, false);
    rig.now = minutes(9);
    assert_eq!(rig.settle(), [1]);
    assert_eq!((rig.waiting(), rig.state.considered), (3, minutes(4)));
    let all: Vec<_> = (1..9).flat_map(|number| rig.completed(number)).collect();
    assert_eq!(all, [2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!((rig.state.skipped, rig.state.missed), (0, 0));
}

#[test]
fn starts_are_bounded_by_their_bytes() {
    let mut large = schedule(Overlap::AllowAll);
    large.run.input = of_bytes(1000);
    let bounds =
        ScheduleBounds { start_bytes: 2500, running_bytes: 5500, ..ScheduleBounds::default() };
    let mut rig = Rig::with(large.clone(), bounds.clone(), false);
    rig.now = minutes(8);
    assert_eq!(rig.step(), [1, 2]);
    assert_eq!(rig.settle().len(), 3, "five are open");
    assert_eq!(rig.completed(1), [6]);

    // One always starts.
    let bounds = ScheduleBounds { start_bytes: 1, running_bytes: 1, ..bounds };
    let mut rig = Rig::with(large, bounds, false);
    rig.now = minutes(2);
    assert_eq!(rig.settle(), [1]);
    assert_eq!(rig.completed(1), [2]);
}

#[test]
fn what_waits_starts_in_steps_once_it_may_overlap() {
    let bounds = ScheduleBounds { starts: 2, ..ScheduleBounds::default() };
    let mut rig = Rig::with(schedule(Overlap::BufferAll), bounds, false);
    rig.now = minutes(6);
    assert_eq!(rig.settle(), [1]);
    let update = ScheduleChange::Updated(Box::new(schedule(Overlap::AllowAll)));
    assert_eq!(rig.change(update), [2, 3]);
    assert_eq!(rig.settle(), [4, 5, 6]);
}

#[test]
fn searches_of_one_step_are_bounded_and_the_next_goes_on() {
    let bounds = ScheduleBounds { search_steps: 30, ..ScheduleBounds::default() };
    let mut rig = Rig::with(schedule(Overlap::AllowAll), bounds, false);
    rig.now = minutes(5);
    assert_eq!(rig.step(), [1, 2]);
    assert_eq!(rig.state.wake_at, rig.now);
    assert_eq!(rig.settle(), [3, 4, 5]);
    assert_eq!(rig.change(backfill(0, 3, Overlap::AllowAll)), [0, 1]);
    assert_eq!(rig.settle(), [2, 3]);
    assert_eq!((rig.state.wake_at, rig.state.backfills.len()), (minutes(6), 0));
}

#[test]
fn a_trigger_starts_now_also_while_paused() {
    let mut rig = Rig::with(schedule(Overlap::Skip), ScheduleBounds::default(), true);
    assert_eq!(rig.state.wake_at, rig.now);
    assert_eq!(rig.settle(), [0]);
    rig.completed(1);
    rig.change(ScheduleChange::Paused { note: "holiday".into() });
    assert_eq!((rig.state.wake_at, rig.state.note.as_str()), (Timestamp::NEVER, "holiday"));
    rig.now = minutes(5);
    assert_eq!(rig.change(trigger(None)), [5]);
    assert_eq!(rig.change(trigger(None)), NONE, "by its own policy it overlaps");
    assert_eq!(rig.change(trigger(Some(Overlap::AllowAll))), [5]);
    let unpaused = ScheduleChange::Unpaused { note: "back".into() };
    assert_eq!(rig.change(unpaused), NONE, "times during the pause are over");
    assert_eq!((rig.state.wake_at, rig.state.missed), (minutes(6), 0));
}

#[test]
fn what_waits_when_it_is_paused_waits_for_the_end_of_the_pause() {
    let mut rig = Rig::new(Overlap::BufferAll);
    assert_eq!(rig.at(3), [1]);
    rig.change(ScheduleChange::Paused { note: String::new() });
    assert_eq!(rig.completed(1), NONE);
    assert_eq!(rig.change(trigger(None)), [3], "a trigger does not queue behind the pause");
    rig.completed(2);
    let started = rig.change(ScheduleChange::Unpaused { note: String::new() });
    assert_eq!(started, [2]);
    assert_eq!(rig.completed(3), [3]);
}

#[test]
fn it_pauses_itself_when_a_run_fails() {
    let mut rig = Rig::of(Schedule { pause_on_failure: true, ..schedule(Overlap::Skip) });
    rig.at(1);
    rig.ended(1, ScheduledOutcome::Cancelled);
    assert!(!rig.state.paused);
    rig.at(2);
    rig.ended(2, ScheduledOutcome::Failed { message: "no disk".into() });
    assert!(rig.state.paused);
    assert_eq!(rig.state.note, "paused because a run failed: no disk");
    assert_eq!(rig.at(3), NONE);
}

#[test]
fn remaining_starts_count_down_and_then_it_is_over() {
    let mut rig = Rig::of(Schedule { remaining: Some(2), ..schedule(Overlap::Skip) });
    assert_eq!(rig.at(1), [1]);
    assert_eq!(rig.at(2), NONE);
    assert_eq!(rig.state.schedule.remaining, Some(1), "what is left out does not count");
    rig.completed(1);
    rig.change(trigger(None));
    assert_eq!(rig.state.schedule.remaining, Some(1), "a trigger does not count");
    rig.completed(2);
    assert_eq!(rig.at(3), [3]);
    assert_eq!(rig.state.wake_at, Timestamp::NEVER);
    rig.completed(3);
    let kept_until = rig.now + Duration::from_secs(7 * 24 * 3600);
    assert_eq!(rig.state.wake_at, kept_until);
    assert!(!rig.state.may_close(rig.now) && rig.state.may_close(kept_until));
    assert!(rig.state.next_times(rig.now, 5).is_empty());
}

#[test]
fn a_time_zone_that_this_version_does_not_know_delays_and_ends_nothing() {
    let mut rig = Rig::new(Overlap::Skip);
    let known = rig.state.clone();
    let left = Backfill { after: minutes(0), until: minutes(0), overlap: None };
    rig.state.schedule.spec.time_zone = "Mars/Olympus".into();
    rig.state.backfills = vec![left];
    assert_eq!(rig.at(3), NONE);
    assert_eq!(rig.state.wake_at, minutes(63), "it looks again");
    assert_eq!((rig.state.next, rig.state.considered), (known.next, known.considered));
    assert_eq!(rig.state.backfills, [left]);
    rig.state.backfills.clear();
    rig.state.next = None;
    assert!(!rig.state.may_close(minutes(100_000)));
    // A version that knows it catches up.
    rig.state.schedule = known.schedule;
    assert_eq!(rig.at(4), [1]);
}

#[test]
fn backfills_follow_their_own_policy_and_are_bounded() {
    let bounds = ScheduleBounds { waiting: 2, ..ScheduleBounds::default() };
    let mut rig = Rig::with(schedule(Overlap::Skip), bounds, false);
    rig.now = minutes(100) + Duration::from_secs(1);
    rig.state.considered = minutes(100);
    assert_eq!(rig.change(backfill(10, 14, Overlap::BufferAll)), [10]);
    assert_eq!(rig.waiting(), 2, "more wait outside of the buffer");
    let left =
        Backfill { after: minutes(12), until: minutes(14), overlap: Some(Overlap::BufferAll) };
    assert_eq!(rig.state.backfills, [left]);
    assert_eq!(rig.completed(1), [11]);
    assert_eq!(rig.completed(2), [12]);
    assert_eq!(rig.completed(3), [13]);
    assert_eq!(rig.completed(4), [14]);
    assert_eq!((rig.completed(5), rig.state.backfills.len()), (vec![], 0));
    assert_eq!(rig.change(backfill(20, 22, Overlap::AllowAll)), [20, 21, 22]);
}

#[test]
fn a_backfill_is_counted_also_beyond_what_is_excluded() {
    let mut excluded = schedule(Overlap::Skip);
    let bounds = ScheduleBounds { backfill_times: 5, ..ScheduleBounds::default() };
    let allowed = |schedule: &Schedule, bounds: &ScheduleBounds, to| {
        Rig::of(schedule.clone()).state.can_backfill(minutes(10), minutes(to), bounds)
    };
    assert!(allowed(&excluded, &bounds, 14));
    assert!(!allowed(&excluded, &bounds, 15));
    // One search does not pass these hours, in which each second is excluded.
    excluded.spec.cron = vec!["* * * * * *".into()];
    excluded.spec.exclusions = vec!["hour=8-11".parse().unwrap()];
    assert!(allowed(&excluded, &bounds, 4 * 60 - 1), "08:10 to 11:59 has none");
    assert!(!allowed(&excluded, &bounds, 4 * 60 + 1), "the minute from 12:00 has 60");
    let few = ScheduleBounds { search_steps: 100_000, ..bounds };
    assert!(!allowed(&excluded, &few, 4 * 60 - 1), "it is searched for too long");
}

#[test]
fn an_update_keeps_what_waits_and_uses_the_new_times() {
    let mut rig = Rig::new(Overlap::BufferAll);
    assert_eq!(rig.at(3), [1]);
    let mut new = Schedule { workflow: "other".into(), ..schedule(Overlap::BufferAll) };
    new.spec.cron = vec!["*/10 * * * *".into()];
    assert_eq!(rig.change(ScheduleChange::Updated(Box::new(new))), NONE);
    assert_eq!((rig.waiting(), rig.state.revision), (2, 2));
    assert_eq!(rig.state.wake_at, minutes(10));
    assert_eq!(rig.completed(1), [2]);
    assert_eq!(rig.state.running[0].workflow.as_str(), "other-2027-01-15T08:02:00Z");
}

#[test]
fn an_update_does_not_lose_a_start_that_jitter_delays() {
    let mut delayed = schedule(Overlap::AllowAll);
    delayed.spec.jitter = Some(Duration::from_secs(59));
    let mut rig = Rig::of(delayed.clone());
    let planned = rig.state.next.unwrap();
    assert!(planned.at > planned.nominal, "this time has a delay");
    rig.now = planned.nominal;
    assert_eq!(rig.step(), NONE);
    rig.change(ScheduleChange::Updated(Box::new(delayed)));
    assert_eq!(rig.state.next, Some(planned));
    rig.now = planned.at;
    assert_eq!(rig.step(), [1]);
}

#[test]
fn recent_runs_are_the_last_ten() {
    let mut rig = Rig::new(Overlap::AllowAll);
    rig.at(15);
    rig.completed(15);
    let recent: Vec<_> = rig.state.recent.iter().map(|run| run.number).collect();
    assert_eq!(recent, (6..=15).collect::<Vec<_>>());
    assert_eq!(rig.state.recent[9].outcome, Some(ScheduledOutcome::Completed));
}

#[test]
fn bad_schedules_are_refused_with_field_and_bound() {
    let refused = |change: fn(&mut Schedule)| {
        let mut bad = schedule(Overlap::Skip);
        change(&mut bad);
        bad.check(&Limits::default(), minutes(0)).unwrap_err().to_string()
    };
    assert_eq!(schedule(Overlap::Skip).check(&Limits::default(), minutes(0)), Ok(()));
    assert_eq!(refused(|bad| bad.workflow = "".into()), "workflow id is empty");
    let long = refused(|bad| bad.workflow = "x".repeat(990).into());
    assert_eq!(long, "workflow id with its time has 1021 bytes, the limit is 1000");
    let reserved = refused(|bad| bad.workflow = "abide.schedule:x".into());
    assert!(reserved.starts_with("workflow id begins with abide.schedule:"), "{reserved}");
    assert_eq!(refused(|bad| bad.run.workflow_type.clear()), "workflow type is empty");
    assert_eq!(refused(|bad| bad.run.queue.clear()), "queue is empty");
    let cron = refused(|bad| bad.run.cron = Some("@daily".into()));
    assert!(cron.starts_with("cron of the workflow does not go with a schedule"), "{cron}");
    let large = refused(|bad| bad.run.input = of_bytes(300_000));
    assert!(large.starts_with("workflow of the schedule takes 300"), "{large}");
    assert!(large.contains("the limit is 262144") && large.contains("pass a reference"), "{large}");
    let window = refused(|bad| bad.catch_up = Some(Duration::from_secs(9)));
    assert_eq!(window, "catch-up window is 9s, not in 10s to 315360000s");
    let none = refused(|bad| bad.remaining = Some(0));
    assert_eq!(none, "remaining is 0; leave it out for any number");
}
