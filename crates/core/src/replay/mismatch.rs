//! Mismatch between code and history, as data and as a small diff for people.

use std::fmt;

use crate::{
    command::SourcePlace,
    event::{Blocked, BlockedReason, Condition},
    ids::EventNumber,
};

/// Code does not fit the recorded history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub reason: BlockedReason,
    /// Number of the first event that does not match; the next number if history has nothing there.
    pub at: EventNumber,
    /// What the code does from there on: the next few commands, as the events that they would
    /// become.
    pub expected: Vec<String>,
    /// Where code issued these commands.
    #[doc(hidden)]
    pub places: Vec<SourcePlace>,
    /// What history has from there on: the next few events of the task's commands.
    #[doc(hidden)]
    pub recorded: Vec<RecordedEvent>,
    /// The last few events of the same task that matched.
    #[doc(hidden)]
    pub before: Vec<RecordedEvent>,
    /// Condition in the code, if the mismatch is about one.
    #[doc(hidden)]
    pub expected_condition: Option<Condition>,
    /// Condition in history, if the mismatch is about one.
    #[doc(hidden)]
    pub recorded_condition: Option<Condition>,
    /// Where code made its last durable call.
    #[doc(hidden)]
    pub last_place: SourcePlace,
    /// Advice for a person, if there is any.
    pub advice: Option<String>,
}

/// An event as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    pub number: EventNumber,
    pub text: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.reason {
            BlockedReason::HistoryShape => {
                write!(f, "the code takes a different step than the history at event {at}")?;
            }
            BlockedReason::ConditionDefinition => {
                write!(
                    f,
                    "the code waits for a different condition than the history at event {at}"
                )?;
            }
            BlockedReason::FailureResolution => {
                write!(f, "the code cannot read the failure in the history at event {at}")?;
            }
        }
        for event in &self.before {
            write!(f, "\n           {:>5} {}", event.number, event.text)?;
        }
        for event in &self.recorded {
            write!(f, "\n- recorded {:>5} {}", event.number, event.text)?;
        }
        if self.recorded.is_empty() {
            write!(f, "\n- recorded {at:>5} nothing more in this task")?;
        }
        let places = self.places.iter().map(|place| place.0).chain(std::iter::repeat(None));
        for (command, place) in self.expected.iter().zip(places) {
            write!(f, "\n+ code           {command}")?;
            if let Some(place) = place {
                write!(f, ", at {place}")?;
            }
        }
        if self.expected.is_empty() {
            write!(f, "\n+ code           nothing more in this task")?;
        }
        if let Some(place) = self.last_place.0.filter(|_| self.unplaced()) {
            write!(f, "\n  the last durable call of the code is at {place}")?;
        }
        write_conditions(f, self.recorded_condition.as_ref(), self.expected_condition.as_ref())?;
        match &self.advice {
            Some(advice) => write!(f, "\n  {advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Mismatch {}

impl Mismatch {
    /// The text without lines of code, for history: these are no facts about the run.
    pub fn recorded_text(&self) -> String {
        let (places, last_place) = (Vec::new(), SourcePlace::default());
        Self { places, last_place, ..self.clone() }.to_string()
    }

    /// Whether it is not known where the first step of the code comes from that differs.
    fn unplaced(&self) -> bool {
        self.places.first().is_none_or(|place| place.0.is_none())
    }
}

fn write_conditions(
    f: &mut fmt::Formatter<'_>,
    recorded: Option<&Condition>,
    expected: Option<&Condition>,
) -> fmt::Result {
    let (Some(recorded), Some(expected)) = (recorded, expected) else { return Ok(()) };
    let show = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
    if recorded.key != expected.key {
        write!(f, "\n  key: recorded {}, code {}", show(&recorded.key), show(&expected.key))?;
    }
    if recorded.fingerprint.is_some() && recorded.fingerprint != expected.fingerprint {
        let (recorded, expected) = (show(&recorded.fingerprint), show(&expected.fingerprint));
        write!(f, "\n  fingerprint: recorded {recorded}, code {expected}")?;
    }
    Ok(())
}

impl From<&Mismatch> for Blocked {
    fn from(mismatch: &Mismatch) -> Self {
        let expected = mismatch.expected_condition.clone().unwrap_or_default();
        let recorded = mismatch.recorded_condition.clone().unwrap_or_default();
        Self {
            reason: mismatch.reason,
            expected: mismatch.expected.join("; "),
            recorded: mismatch.recorded.iter().map(|event| event.text.clone()).collect(),
            at: mismatch.at,
            expected_key: expected.key,
            recorded_key: recorded.key,
            expected_fingerprint: expected.fingerprint,
            recorded_fingerprint: recorded.fingerprint,
        }
    }
}
