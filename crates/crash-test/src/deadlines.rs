//! The invariants of deadlines, however they are moved and whatever is killed. For the engine: a
//! timer fires once, and not before the time of its last move. For code: each move gets the reply
//! that its place in history implies, so an acknowledged extension is never lost.

use std::{collections::BTreeMap, time::Duration};

use abide::Timestamp;
use abide_core::{
    event::{Event, Fact, Mover},
    ids::{EventNumber, TimerId},
};

use crate::{
    auction::{Plan, Report, Told},
    check::Finding,
};

/// The timer that closes an auction.
pub(crate) const CLOSING: &str = "timer-1";

/// The timer at which the auction's own code moves its deadline.
const NUDGE: &str = "timer-2";

/// A requested change of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// By a signal: so much later than the current deadline.
    Extend(Duration),
    /// By a signal: to this time.
    Reset(Timestamp),
    /// By a move from outside: to this time.
    FromOutside(Timestamp),
}

/// What happened to deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// How often they were moved.
    pub(crate) moved: usize,
    /// How often a deadline had fired although a move came before it in history, which made the
    /// firing void.
    pub(crate) void: usize,
    /// How often a move was too late.
    pub(crate) too_late: usize,
}

impl Moves {
    pub(crate) fn add(&mut self, other: &Self) {
        self.moved += other.moved;
        self.void += other.void;
        self.too_late += other.too_late;
    }
}

/// Checks that each timer of a run fired once, and not before the due time of its last move.
pub(crate) fn check_timers(id: &str, history: &[Event]) -> Result<(), Finding> {
    let mut timers = Timers { id, known: BTreeMap::new() };
    for event in history {
        timers.follow(event)?;
    }
    let open = timers.known.values().filter(|timer| timer.open && !timer.due.is_never());
    Finding::check(id, "timers that never fired", 0, open.count())
}

/// The timers of a run, as the engine sees them.
struct Timers<'a> {
    id: &'a str,
    known: BTreeMap<&'a TimerId, Timer>,
}

struct Timer {
    started: EventNumber,
    due: Timestamp,
    open: bool,
}

impl<'a> Timers<'a> {
    fn follow(&mut self, event: &'a Event) -> Result<(), Finding> {
        let id = self.id;
        match &event.body.fact {
            Fact::TimerStarted(started) => {
                let timer = Timer { started: event.number, due: started.spec.fire_at, open: true };
                self.known.insert(&started.spec.timer, timer);
            }
            Fact::TimerRescheduled(moved) => {
                let timer = self.find(&moved.timer)?;
                // Code moves it because of an event before the firing, which makes the firing void.
                if !timer.open && moved.by != Mover::Code {
                    return Err(Finding::new(id, format!("{} fired and was moved", moved.timer)));
                }
                (timer.due, timer.open) = (moved.fire_at, true);
            }
            Fact::TimerFired(fired) => {
                let timer = self.find(&fired.timer)?;
                if !timer.open || timer.started != fired.started {
                    return Err(Finding::new(id, format!("{} fired twice", fired.timer)));
                }
                if event.time < timer.due || fired.fire_at < timer.due {
                    let (timer, due, at) = (&fired.timer, timer.due, event.time);
                    let what = format!("{timer} fired at {at}, before it was due at {due}");
                    return Err(Finding::new(id, what));
                }
                timer.open = false;
            }
            Fact::TimerCancelled(cancelled) => self.find(&cancelled.timer)?.open = false,
            _ => {}
        }
        Ok(())
    }

    fn find(&mut self, timer: &TimerId) -> Result<&mut Timer, Finding> {
        let unknown = || Finding::new(self.id, format!("{timer} is in history, but not its start"));
        self.known.get_mut(timer).ok_or_else(unknown)
    }
}

/// Checks an auction: its history holds each acknowledged move, and no other, once and in order;
/// its code got the replies that this order implies; and it closed when the last moved deadline
/// fired.
pub(crate) fn check_auction(
    id: &str,
    plan: Plan,
    asked: &[(String, Asked)],
    report: &Report,
    history: &[Event],
) -> Result<Moves, Finding> {
    let mut closing = Closing {
        id,
        asked: asked.iter(),
        told: report.told.iter(),
        unseen: Vec::new(),
        closes: None,
        over: false,
        moves: Moves::default(),
    };
    for event in history {
        closing.follow(plan, event)?;
    }
    Finding::check(id, "moves that are not in history", None, closing.asked.next())?;
    Finding::check(id, "answers that nothing in history asked for", None, closing.told.next())?;
    let (closed_at, closes) = (report.closed_at, closing.closes);
    if !closing.over {
        let what = format!("closed at {closed_at}, but its deadline {closes:?} never came");
        return Err(Finding::new(id, what));
    }
    if Some(closed_at) < closes {
        let what = format!("closed at {closed_at}, before its deadline {closes:?}");
        return Err(Finding::new(id, what));
    }
    Ok(closing.moves)
}

/// The deadline of an auction, as the order in history implies it.
struct Closing<'a> {
    id: &'a str,
    asked: std::slice::Iter<'a, (String, Asked)>,
    told: std::slice::Iter<'a, Told>,
    /// Moves with their times, from before the code first ran and started the timer.
    unseen: Vec<(Timestamp, Asked)>,
    /// The current deadline, once there is one.
    closes: Option<Timestamp>,
    /// Whether the deadline has fired.
    over: bool,
    moves: Moves,
}

impl Closing<'_> {
    fn follow(&mut self, plan: Plan, event: &Event) -> Result<(), Finding> {
        match &event.body.fact {
            Fact::TimerStarted(started) if started.spec.timer.as_str() == CLOSING => {
                self.closes = Some(started.spec.fire_at);
                for (at, asked) in std::mem::take(&mut self.unseen) {
                    self.answered(at, asked)?;
                }
                Ok(())
            }
            Fact::SignalReceived(signal) if signal.name != "settle" => {
                let asked = self.acknowledged(signal.key.as_ref().map(|key| key.as_str()))?;
                self.answered(signal.received_at, asked)
            }
            Fact::TimerRescheduled(moved) => match &moved.by {
                Mover::Outside { key, .. } => {
                    let asked = self.acknowledged(key.as_ref().map(|key| key.as_str()))?;
                    let expected = Asked::FromOutside(moved.fire_at);
                    Finding::check(self.id, "a move from outside", expected, asked)?;
                    self.move_to(moved.fire_at);
                    Ok(())
                }
                Mover::Code => Ok(()),
            },
            Fact::TimerFired(fired) if fired.timer.as_str() == NUDGE => {
                let nudge = Asked::Extend(Duration::from_millis(plan.nudge_ms));
                self.answered(event.time, nudge)
            }
            Fact::TimerFired(fired) if fired.timer.as_str() == CLOSING => {
                if self.over {
                    return Err(Finding::new(self.id, "the deadline came twice"));
                }
                self.over = self.closes <= Some(fired.fire_at);
                self.moves.void += usize::from(!self.over);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The move that was requested by the call with this key: the next one that was acknowledged.
    fn acknowledged(&mut self, key: Option<&str>) -> Result<Asked, Finding> {
        let next = self.asked.next();
        let expected = next.map(|(key, _)| key.as_str());
        Finding::check(self.id, "the next move in history", expected, key)?;
        next.map(|(_, asked)| *asked)
            .ok_or_else(|| Finding::new(self.id, "a move without a key is in history"))
    }

    /// Code moves the deadline because of what happened at this time, and must have got the reply
    /// that its place in history implies.
    fn answered(&mut self, at: Timestamp, asked: Asked) -> Result<(), Finding> {
        let Some(closes) = self.closes else {
            self.unseen.push((at, asked));
            return Ok(());
        };
        let to = match asked {
            Asked::Extend(by) => closes.saturating_add(by),
            Asked::Reset(at) | Asked::FromOutside(at) => at,
        };
        match self.told.next() {
            Some(Told::TooLate) if self.over => self.moves.too_late += 1,
            Some(Told::Moved(moved)) if !self.over && *moved == to => self.move_to(to),
            Some(Told::Past) if !self.over && to <= closes && to < at => {}
            told => {
                let state = if self.over { "had come" } else { "was open" };
                let what = format!(
                    "code asked {asked:?} and was told {told:?}; by the order in history, the \
                     deadline {closes} {state}"
                );
                return Err(Finding::new(self.id, what));
            }
        }
        Ok(())
    }

    const fn move_to(&mut self, at: Timestamp) {
        self.closes = Some(at);
        self.moves.moved += 1;
    }
}

#[cfg(test)]
mod tests {
    use abide_core::{
        digest::Digest,
        event::{
            Body, Guards, SignalReceived, TimerFired, TimerRescheduled, TimerSpec, TimerStarted,
        },
    };

    use super::*;

    const PLAN: Plan = Plan { closes_ms: 100, nudge_at_ms: 900, nudge_ms: 30 };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(millis)
    }

    fn started() -> Fact {
        let (timer, fire_at, guards) = (CLOSING.into(), at(100), Guards::default());
        let spec = TimerSpec { timer, fire_at, origin: None, details: None, guards };
        TimerStarted { spec, task_completed: 0 }.into()
    }

    fn fired(fire_at: u64) -> Fact {
        TimerFired { timer: CLOSING.into(), started: 1, fire_at: at(fire_at) }.into()
    }

    fn moved(fire_at: u64, by: Mover) -> Fact {
        TimerRescheduled { timer: CLOSING.into(), fire_at: at(fire_at), by }.into()
    }

    fn outside(key: &str) -> Mover {
        let key = Some(key.into());
        Mover::Outside { identity: String::new(), key, received_at: at(0), asked: Digest::UNKNOWN }
    }

    fn signal(key: &str) -> Fact {
        let (name, key) = ("extend".to_owned(), Some(key.into()));
        SignalReceived { name, key, ..SignalReceived::default() }.into()
    }

    /// A history of these facts, with their times in milliseconds.
    fn history(facts: &[(u64, Fact)]) -> Vec<Event> {
        let event = |(number, (time, fact)): (EventNumber, &(u64, Fact))| Event {
            number,
            time: at(*time),
            body: Body::new(fact.clone()),
        };
        (1..).zip(facts).map(event).collect()
    }

    #[test]
    fn a_timer_fires_once_and_not_before_it_was_last_moved_to() {
        let check = |facts: &[(u64, Fact)]| {
            let begun = [(0, started())];
            let found = check_timers("run", &history(&[&begun, facts].concat()));
            found.map_err(|finding| finding.to_string())
        };
        let later = |by| (50, moved(200, by));
        check(&[(100, fired(100))]).unwrap();
        check(&[later(Mover::Code), (200, fired(200))]).unwrap();
        check(&[later(outside("a")), (200, fired(200))]).unwrap();
        check(&[(100, fired(100)), (110, moved(200, Mover::Code)), (200, fired(200))]).unwrap();
        check(&[(50, moved(60, Mover::Code)), (60, fired(60))]).unwrap();
        for (facts, found) in [
            (vec![], "never fired: expected 0, found 1"),
            (vec![later(Mover::Code)], "never fired: expected 0, found 1"),
            (vec![(99, fired(100))], "before it was due"),
            (vec![later(Mover::Code), (100, fired(100))], "before it was due"),
            (vec![later(outside("a")), (199, fired(200))], "before it was due"),
            (vec![later(Mover::Code), (250, fired(100))], "before it was due"),
            (vec![(100, fired(100)), (101, fired(100))], "fired twice"),
            (vec![(100, fired(100)), (110, moved(200, outside("a")))], "fired and was moved"),
        ] {
            let told = check(&facts).unwrap_err();
            assert!(told.contains(found), "{facts:?}: {told}");
        }
    }

    /// An auction with one extension to 150 milliseconds, and the replies to its code.
    fn auction(facts: &[(u64, Fact)], told: &[Told], closed_at: u64) -> Result<Moves, String> {
        let asked = [("a".to_owned(), Asked::Extend(Duration::from_millis(50)))];
        let report = Report { told: told.to_vec(), closed_at: at(closed_at) };
        let found = check_auction("run", PLAN, &asked, &report, &history(facts));
        found.map_err(|finding| finding.to_string())
    }

    #[test]
    fn an_extension_before_the_firing_counts_however_late_the_worker_comes() {
        let extended = [Told::Moved(at(150))];
        let rearmed = [
            (0, started()),
            (10, signal("a")),
            (100, fired(100)),
            (120, moved(150, Mover::Code)),
            (150, fired(150)),
        ];
        let moves = Moves { moved: 1, void: 1, too_late: 0 };
        assert_eq!(auction(&rearmed, &extended, 150), Ok(moves));
        let unseen = [(0, signal("a")), (0, started()), (150, fired(150))];
        let moves = Moves { moved: 1, void: 0, too_late: 0 };
        assert_eq!(auction(&unseen, &extended, 150), Ok(moves));
        let late = [(0, started()), (100, fired(100)), (110, signal("a"))];
        let moves = Moves { moved: 0, void: 0, too_late: 1 };
        assert_eq!(auction(&late, &[Told::TooLate], 100), Ok(moves));
    }

    #[test]
    fn an_extension_that_was_lost_is_found() {
        let lost = [(0, started()), (10, signal("a")), (100, fired(100))];
        let told = auction(&lost, &[Told::TooLate], 100).unwrap_err();
        assert!(told.contains("was told Some(TooLate)") && told.contains("was open"), "{told}");
        let told = auction(&lost, &[Told::Moved(at(150))], 100).unwrap_err();
        assert!(told.contains("never came"), "{told}");
        let told = auction(&lost[..1], &[], 100).unwrap_err();
        assert!(told.contains("moves that are not in history"), "{told}");
        let twice = [&lost[..2], &lost[1..]].concat();
        let told = auction(&twice, &[Told::Moved(at(150))], 100).unwrap_err();
        assert!(told.contains("the next move in history"), "{told}");
        let late = [(0, started()), (100, fired(100)), (110, signal("a"))];
        let told = auction(&late, &[Told::Moved(at(150))], 100).unwrap_err();
        assert!(told.contains("had come"), "{told}");
        let told = auction(&late, &[Told::TooLate], 99).unwrap_err();
        assert!(told.contains("before its deadline"), "{told}");
    }
}
