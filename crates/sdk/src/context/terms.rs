//! Options of a wait: how long, what people are shown, and the limits on moving its deadline.

use std::time::Duration;

use abide_core::{
    event::{Approval, WaitDetails},
    time::Timestamp,
};

use crate::{
    error::Error,
    executor::Terms,
    payload::{PayloadError, PayloadValue},
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// This long after the wait starts.
    After(Duration),
    At(Timestamp),
}

impl Limit {
    /// The time at which a wait that starts now ends. It is finite, however far away: "never" is
    /// for waits without a deadline.
    pub(crate) fn from(self, now: Timestamp) -> Timestamp {
        let end = match self {
            Self::After(duration) => now.saturating_add(duration),
            Self::At(at) => at,
        };
        end.min(Timestamp::LATEST)
    }
}

/// The options of a wait that has not started.
#[derive(Clone, Debug, Default)]
pub(super) struct StatedTerms {
    terms: Terms,
    unsendable: Option<PayloadError>,
}

impl StatedTerms {
    pub(super) fn about(&mut self, subject: String) {
        self.details().subject = subject;
    }

    pub(super) fn actors(&mut self, actors: Vec<String>) {
        self.details().actors = actors;
    }

    pub(super) fn data<T: PayloadValue>(&mut self, name: String, value: &T) {
        match value.to_payload() {
            Ok(payload) => {
                let entry = payload.map(|payload| (name, payload));
                self.details().data.extend(entry);
            }
            Err(error) => self.unsendable = Some(error.of(format!("data {name} of the wait"))),
        }
    }

    pub(super) fn approval(&mut self, approval: Approval) {
        self.details().approval = Some(approval);
    }

    pub(super) const fn not_after(&mut self, at: Timestamp) {
        self.terms.guards.not_after = Some(at);
    }

    pub(super) const fn max_extensions(&mut self, count: u32) {
        self.terms.guards.max_extensions = Some(count);
    }

    /// The details after the listed actors have changed.
    pub(super) fn changed_actors(&mut self, actors: Vec<String>) -> WaitDetails {
        self.actors(actors);
        self.details().clone()
    }

    /// All options, or an error if a value cannot be encoded.
    pub(super) fn terms(&mut self) -> Result<Terms, Error> {
        match self.unsendable.take() {
            Some(error) => Err(error.into()),
            None => Ok(self.terms.clone()),
        }
    }

    fn details(&mut self) -> &mut WaitDetails {
        self.terms.details.get_or_insert_default()
    }
}

/// Adds methods that describe a wait to people. The wait has a `said`.
macro_rules! described {
    ([$($parameter:ident $(: $bound:tt)?),*] $name:ty, $($said:ident).+) => {
        impl<$($parameter $(: $bound)?),*> $name {
            /// The subject of the wait, shown to people who list waits.
            pub fn about(mut self, subject: impl Into<String>) -> Self {
                self.$($said).+.about(subject.into());
                self
            }

            /// The people and roles that may act, shown to people who list waits.
            pub fn actors<A: Into<String>>(mut self, actors: impl IntoIterator<Item = A>) -> Self {
                self.$($said).+.actors(actors.into_iter().map(Into::into).collect());
                self
            }

            /// Adds a named value, shown to people who list waits.
            pub fn data<T: $crate::payload::PayloadValue>(
                mut self,
                name: impl Into<String>,
                value: &T,
            ) -> Self {
                self.$($said).+.data(name.into(), value);
                self
            }
        }
    };
}
pub(super) use described;

/// Adds methods that limit how clients and operators move the deadline. The wait has a `said`.
macro_rules! guarded {
    ([$($parameter:ident $(: $bound:tt)?),*] $name:ty, $($said:ident).+) => {
        impl<$($parameter $(: $bound)?),*> $name {
            /// Clients and operators cannot move the deadline past this time; code can.
            pub fn not_after(mut self, at: $crate::Timestamp) -> Self {
                self.$($said).+.not_after(at);
                self
            }

            /// How often clients and operators can move the deadline; code has no limit.
            pub fn max_extensions(mut self, count: u32) -> Self {
                self.$($said).+.max_extensions(count);
                self
            }
        }

        impl<$($parameter $(: $bound)?),*> $crate::context::Pending<$name> {
            /// The deadline. It can be read and moved while the wait is pending.
            pub fn deadline(&self) -> $crate::context::Deadline {
                self.wait().map_or_else($crate::context::Deadline::default, |wait| {
                    $crate::context::Deadline::of(wait)
                })
            }
        }
    };
}
pub(super) use guarded;
