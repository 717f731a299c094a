//! When a schedule is due, as user code says it.

use std::time::Duration;

use abide_core::{
    limits::InvalidField,
    schedule::{Calendar, Interval, Spec},
    time::Timestamp,
};

use crate::client::ClientError;

/// When a schedule is due: the times of all its rules together, less the exclusions. Without any rule
/// it starts only what is triggered.
///
/// ```
/// # use abide_sdk::{schedule::Times, time::minutes};
/// // Each working day at nine in Berlin, summer and winter, and not at Christmas.
/// let office = Times::cron("0 9 * * MON-FRI").except("month=12 day=24-26").time_zone("Europe/Berlin");
/// // Ten minutes after each full hour.
/// let hourly = Times::every(minutes(60)).offset(minutes(10));
/// // The last day of each month at noon.
/// let monthly = Times::calendar("day=L hour=12");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    spec: Spec,
    problem: Option<ClientError>,
}

impl Times {
    /// The times of a cron expression: five fields, six with seconds, or `@daily`, `@every 90m` and the
    /// like. `CRON_TZ=Europe/Berlin` may stand in front.
    #[must_use]
    pub fn cron(expression: impl Into<String>) -> Self {
        Self::default().and_cron(expression)
    }

    /// The times of a calendar, such as `hour=9 weekday=MON-FRI`. The fields are second, minute, hour,
    /// day, month, year and weekday, each like the field of a cron expression. A second, minute or hour
    /// that is not given is 0.
    #[must_use]
    pub fn calendar(fields: &str) -> Self {
        Self::default().and_calendar(fields)
    }

    /// Times at this distance, in whole seconds. They count from the epoch, so each node and each
    /// update finds the same ones.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self::default().and_every(interval)
    }

    /// The times of a cron expression too.
    #[must_use]
    pub fn and_cron(mut self, expression: impl Into<String>) -> Self {
        self.spec.cron.push(expression.into());
        self
    }

    /// The times of a calendar too.
    #[must_use]
    pub fn and_calendar(mut self, fields: &str) -> Self {
        let calendar = self.read("calendar", fields);
        self.spec.calendars.extend(calendar);
        self
    }

    /// Times at this distance too.
    #[must_use]
    pub fn and_every(mut self, interval: Duration) -> Self {
        self.spec.intervals.push(Interval { every: interval, offset: None });
        self
    }

    /// Moves the times of the last interval by so much.
    #[must_use]
    pub fn offset(mut self, offset: Duration) -> Self {
        match self.spec.intervals.last_mut() {
            Some(interval) => interval.offset = Some(offset),
            None => {
                let problem = "belongs to an interval: call `every` first";
                self.refuse(InvalidField::new("offset", problem));
            }
        }
        self
    }

    /// Not at these times. Here a second, minute or hour that is not given means every one, so
    /// `month=12 day=25` is the whole day.
    #[must_use]
    pub fn except(mut self, fields: &str) -> Self {
        let calendar = self.read("exclusion", fields);
        self.spec.exclusions.extend(calendar);
        self
    }

    /// The time zone of all rules, by its IANA name; by default UTC. A time that the clocks skip comes
    /// at the moment they are put forward, one that they repeat comes once.
    #[must_use]
    pub fn time_zone(mut self, name: impl Into<String>) -> Self {
        self.spec.time_zone = name.into();
        self
    }

    /// Not before this.
    #[must_use]
    pub const fn start_at(mut self, time: Timestamp) -> Self {
        self.spec.start_at = Some(time);
        self
    }

    /// Not after this.
    #[must_use]
    pub const fn end_at(mut self, time: Timestamp) -> Self {
        self.spec.end_at = Some(time);
        self
    }

    /// Delays each start by up to this, so that not everything starts at the full hour. The delay
    /// follows from the schedule and the time: it is the same each time it is computed.
    #[must_use]
    pub const fn jitter(mut self, most: Duration) -> Self {
        self.spec.jitter = Some(most);
        self
    }

    /// The times in short, for people.
    pub fn summary(&self) -> String {
        self.spec.summary()
    }

    pub(super) const fn of(spec: Spec) -> Self {
        Self { spec, problem: None }
    }

    pub(super) fn into_spec(self) -> Result<Spec, ClientError> {
        self.problem.map_or(Ok(self.spec), Err)
    }

    fn read(&mut self, field: &str, fields: &str) -> Option<Calendar> {
        match fields.parse() {
            Ok(calendar) => Some(calendar),
            Err(problem) => {
                self.refuse(InvalidField::new(field, problem));
                None
            }
        }
    }

    /// The first problem is told when the schedule is sent.
    fn refuse(&mut self, invalid: InvalidField) {
        self.problem.get_or_insert_with(|| invalid.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mistake_is_told_when_the_times_are_used() {
        let told = |times: Times| times.into_spec().unwrap_err().to_string();
        assert_eq!(
            told(Times::calendar("hours=9").except("noon")),
            "calendar there is no field \"hours\"; there are second, minute, hour, day, month, year \
             and weekday"
        );
        let offset = Times::cron("@daily").offset(Duration::from_secs(60));
        assert_eq!(told(offset), "offset belongs to an interval: call `every` first");
    }
}
