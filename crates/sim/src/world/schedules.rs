//! Requests about schedules. What a schedule starts has its time in its id, so the times are those
//! seconds whose ids fall on the shards of the world; nothing is triggered, because that may be at
//! any time.

use abide_core::{
    event::RunSpec,
    ids::{Key, WorkflowKey},
    operation::{ChangeSchedule, CreateSchedule, DeleteSchedule, DescribeSchedule, RunOperation},
    schedule::{Calendar, Overlap, Schedule, ScheduleChange, Spec, key_of},
    time::Timestamp,
};

use super::{World, requests::draw_spec};
use crate::names::{NAMESPACES, Names, fits};

/// How many beginnings of ids are tried; the one with the most times is taken.
const BEGINNINGS: u64 = 30;

/// How many seconds from now may be times.
const SECONDS: i64 = 40;

impl World {
    /// Creates a schedule, or does something to one.
    pub(super) fn draw_schedule(&mut self, number: usize, own: Key) -> Option<RunOperation> {
        let id = self.rng.pick(&Names::get().schedules)?;
        let workflow = key_of(NAMESPACES[0].into(), id);
        let identity = String::from("operator");
        let current = self.ledger.current(&workflow).filter(|story| story.run.open());
        let Some(state) = current.and_then(|story| story.run.schedule.clone()) else {
            let schedule = self.draw_definition(number, &workflow);
            let (paused, note) = (self.rng.chance(100), String::new());
            let (trigger, key) = (false, Some(own));
            let create =
                CreateSchedule { workflow, schedule, paused, note, trigger, identity, key };
            return Some(create.into());
        };
        let change = match self.rng.weighted(&[3, 2, 3, 3, 2, 2]) {
            0 => return Some(DescribeSchedule { workflow }.into()),
            1 => {
                return Some(DeleteSchedule { workflow, identity, key: Some(own) }.into());
            }
            2 => ScheduleChange::Paused { note: format!("pause {number}") },
            3 => ScheduleChange::Unpaused { note: String::new() },
            4 => {
                let (from, to) = (state.created_at, self.clock_for(&workflow));
                let overlap = self.draw_overlap();
                ScheduleChange::Backfilled { from: from.min(to), to, overlap }
            }
            _ => {
                let schedule = Schedule { overlap: self.draw_overlap(), ..state.schedule };
                ScheduleChange::Updated(Box::new(schedule))
            }
        };
        let revision = self.rng.chance(200).then_some(state.revision);
        Some(ChangeSchedule { workflow, change, revision, identity, key: Some(own) }.into())
    }

    fn draw_overlap(&mut self) -> Option<Overlap> {
        Some(match self.rng.below(7) {
            0 => Overlap::Skip,
            1 => Overlap::BufferOne,
            2 => Overlap::BufferAll,
            3 => Overlap::AllowAll,
            4 => Overlap::CancelOther,
            5 => Overlap::TerminateOther,
            _ => return None,
        })
    }

    fn draw_definition(&mut self, number: usize, workflow: &WorkflowKey) -> Schedule {
        let now = self.clock_for(workflow);
        let beginnings = (0..BEGINNINGS).map(|index| format!("job{number}x{index}"));
        let with_times = beginnings.map(|beginning| (times(&beginning, now), beginning));
        let (calendars, beginning) =
            with_times.max_by_key(|(times, _)| times.len()).unwrap_or_default();
        let run = RunSpec { cron: None, ..draw_spec(&mut self.rng) };
        Schedule {
            spec: Spec { calendars, ..Spec::default() },
            workflow: beginning.into(),
            run,
            overlap: self.draw_overlap(),
            catch_up: None,
            pause_on_failure: self.rng.chance(150),
            remaining: self.rng.chance(150).then(|| self.rng.between(1, 4)),
        }
    }
}

/// The next seconds whose ids fall on the shards of the world.
fn times(beginning: &str, now: Timestamp) -> Vec<Calendar> {
    let seconds = (1..=SECONDS).filter_map(|after| Timestamp::new(now.seconds() + after, 0));
    let seconds = seconds.filter(|at| fits(&format!("{beginning}-{at}")));
    seconds.filter_map(|at| calendar(&at.to_string())).collect()
}

/// A calendar of one moment.
fn calendar(text: &str) -> Option<Calendar> {
    let part = |range: std::ops::Range<usize>| text.get(range).map(str::to_owned);
    Some(Calendar {
        year: part(0..4)?,
        month: part(5..7)?,
        day: part(8..10)?,
        hour: part(11..13)?,
        minute: part(14..16)?,
        second: part(17..19)?,
        weekday: String::new(),
    })
}
