//! Matches the commands of one turn, in order, with the events that its task recorded. Where
//! history may lack optional timers, the unmatched ones float; everything else must match.

use std::collections::VecDeque;

use super::{
    float::Floats,
    mismatch::{Mismatch, RecordedEvent},
    route::Route,
    shape::Shape,
};
use crate::{
    command::{Ask, Command, SourcePlace},
    event::{BlockedReason, Condition, Event, Fact, Marker, MarkerKind, Origin, TimerSpec},
    ids::EventNumber,
};

/// Number of lines of each side that a mismatch shows.
const LINES_MAX: usize = 3;

pub(super) struct Matching<'a> {
    pub(super) route: &'a mut Route,
    pub(super) floats: &'a mut Floats,
    /// Whether history has all optional timers.
    pub(super) strict: bool,
    pub(super) completed: EventNumber,
    /// Events of its commands.
    pub(super) recorded: &'a [Event],
    /// Commands of its turn.
    pub(super) emitted: VecDeque<Command>,
}

/// Whether a command is the one that became an event.
enum Comparison {
    Same,
    Different,
    OtherCondition { code: Condition, recorded: Condition },
}

impl Matching<'_> {
    /// Matches all commands, or reports where code and history differ.
    pub(super) fn run(mut self) -> Result<(), Box<Mismatch>> {
        for (position, event) in self.recorded.iter().enumerate() {
            if self.omits_marker(&event.body.fact) {
                continue;
            }
            let matched = match self.find_command(event) {
                Ok(command) => command,
                Err(comparison) => return Err(self.mismatch(position, comparison)),
            };
            self.route.record(&matched, event);
        }
        while !self.emitted.is_empty() {
            if !self.set_aside() {
                return Err(self.mismatch(self.recorded.len(), Comparison::Different));
            }
        }
        Ok(())
    }

    /// Whether history has a marker that code may omit, and does omit.
    fn omits_marker(&self, fact: &Fact) -> bool {
        let Fact::MarkerRecorded(recorded) = fact else { return false };
        let asks =
            |command: &Command| matches!(compare(self.route, &command.ask, fact), Comparison::Same);
        recorded.marker.is_optional_on_replay() && !self.emitted.iter().any(asks)
    }

    /// The command that became `event`.
    fn find_command(&mut self, event: &Event) -> Result<Command, Comparison> {
        let timer = self.may_float(&event.body.fact);
        if let Some(float) = timer.and_then(|recorded| self.floats.take_same(recorded)) {
            return Ok(float);
        }
        let different = loop {
            let Some(command) = self.emitted.pop_front() else { break Comparison::Different };
            let comparison = compare(self.route, &command.ask, &event.body.fact);
            if matches!(comparison, Comparison::Same) {
                return Ok(command);
            }
            self.emitted.push_front(command);
            if !self.set_aside() {
                break comparison;
            }
        };
        timer.and_then(|recorded| self.floats.take_named(recorded)).ok_or(different)
    }

    /// The recorded timer, if it may match one that floats.
    fn may_float<'e>(&self, fact: &'e Fact) -> Option<&'e TimerSpec> {
        if let Fact::TimerStarted(started) = fact
            && !self.strict
        {
            return Some(&started.spec);
        }
        None
    }

    fn set_aside(&mut self) -> bool {
        !self.strict && self.floats.set_aside(&mut self.emitted)
    }

    fn mismatch(&self, position: usize, comparison: Comparison) -> Box<Mismatch> {
        let (matched, rest) = self.recorded.split_at(position);
        let show = |event: &Event| RecordedEvent {
            number: event.number,
            text: Shape::of_event(self.route, &event.body.fact).to_string(),
        };
        let mut before =
            vec![RecordedEvent { number: self.completed, text: "TaskCompleted".into() }];
        before.extend(matched.iter().map(show));
        let before = before.split_off(before.len().saturating_sub(LINES_MAX));
        let next = before.last().map_or(self.completed, |event| event.number) + 1;
        let shapes = self.emitted.iter().map(|command| Shape::of_command(self.route, &command.ask));
        let (reason, expected_condition, recorded_condition) = match comparison {
            Comparison::OtherCondition { code, recorded } => {
                (BlockedReason::ConditionDefinition, Some(code), Some(recorded))
            }
            Comparison::Same | Comparison::Different => (BlockedReason::HistoryShape, None, None),
        };
        Box::new(Mismatch {
            reason,
            at: rest.first().map_or(next, |event| event.number),
            expected: shapes.take(LINES_MAX).map(|shape| shape.to_string()).collect(),
            places: self.emitted.iter().take(LINES_MAX).map(|command| command.place).collect(),
            recorded: rest.iter().take(LINES_MAX).map(show).collect(),
            before,
            expected_condition,
            recorded_condition,
            last_place: SourcePlace::default(),
            advice: rest.first().and_then(|event| advice(&event.body.fact)),
        })
    }
}

/// Advice about an event that code did not request.
fn advice(recorded: &Fact) -> Option<String> {
    let Fact::MarkerRecorded(recorded) = recorded else { return None };
    let Marker { kind: MarkerKind::Version, id, .. } = &recorded.marker else { return None };
    Some(format!(
        "the run follows the patch \"{id}\", and the code has no call for it at this place: keep `patched` \
         or `deprecate_patch` there until the run has closed"
    ))
}

fn compare(route: &Route, ask: &Ask, fact: &Fact) -> Comparison {
    match (ask, fact) {
        (Ask::StartTimer(code), Fact::TimerStarted(recorded)) => {
            compare_timers(code, &recorded.spec)
        }
        (Ask::OpenWait(code), Fact::WaitOpened(recorded)) if code.wait == recorded.spec.wait => {
            compare_conditions(&code.condition, &recorded.spec.condition)
        }
        (Ask::SatisfyWait(wait), Fact::WaitSatisfied(recorded)) if *wait == recorded.wait => {
            let code = route.condition(wait).unwrap_or(&recorded.condition);
            compare_conditions(code, &recorded.condition)
        }
        (Ask::TimeOutWait(wait), Fact::WaitTimedOut(recorded)) if *wait == recorded.wait => {
            let code = route.condition(wait).unwrap_or(&recorded.condition);
            compare_conditions(code, &recorded.condition)
        }
        _ => same_if(Shape::of_command(route, ask) == Shape::of_event(route, fact)),
    }
}

/// Compares id and origin. Due times drift with the code that computes them, and older code
/// recorded no origin. Whether the timer is optional always counts.
fn compare_timers(code: &TimerSpec, recorded: &TimerSpec) -> Comparison {
    if code.timer != recorded.timer || code.optional() != recorded.optional() {
        return Comparison::Different;
    }
    match (&code.origin, &recorded.origin) {
        (
            Some(Origin::Condition { key, fingerprint }),
            Some(Origin::Condition { key: recorded_key, fingerprint: recorded_fingerprint }),
        ) => compare_conditions(
            &Condition { key: key.clone(), fingerprint: fingerprint.clone() },
            &Condition { key: recorded_key.clone(), fingerprint: recorded_fingerprint.clone() },
        ),
        (
            Some(Origin::ExternalEvent { name }),
            Some(Origin::ExternalEvent { name: recorded_name }),
        ) => same_if(name == recorded_name),
        (Some(code), Some(recorded)) => {
            same_if(std::mem::discriminant(code) == std::mem::discriminant(recorded))
        }
        (None, _) | (_, None) => Comparison::Same,
    }
}

/// Compares the key always, and the fingerprint if history has one.
fn compare_conditions(code: &Condition, recorded: &Condition) -> Comparison {
    let same_predicate = recorded.fingerprint.as_deref().is_none_or(|recorded| {
        code.fingerprint.as_deref().is_some_and(|code| same_fingerprint(code, recorded))
    });
    if recorded.key != code.key || !same_predicate {
        return Comparison::OtherCondition { code: code.clone(), recorded: recorded.clone() };
    }
    Comparison::Same
}

/// The second part of a fingerprint is its older form, which is all that older code and older histories
/// have.
fn same_fingerprint(code: &str, recorded: &str) -> bool {
    match (two_forms(code), two_forms(recorded)) {
        (Some((code, _)), Some((recorded, _))) => code == recorded,
        (Some((_, older)), None) => older == recorded,
        (None, Some((_, older))) => code == older,
        (None, None) => code == recorded,
    }
}

/// Length of one form, in hexadecimal digits.
const FORM_DIGITS: usize = 32;

/// Both forms of a fingerprint that our macro made. Another SDK may use any text, also one with a hyphen.
fn two_forms(fingerprint: &str) -> Option<(&str, &str)> {
    let form = |text: &str| {
        text.len() == FORM_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    fingerprint.split_once('-').filter(|(first, second)| form(first) && form(second))
}

const fn same_if(same: bool) -> Comparison {
    if same { Comparison::Same } else { Comparison::Different }
}
