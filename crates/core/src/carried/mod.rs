//! Finds the user data in what crosses the border between SDK and engine: every payload of events,
//! commands, operations, reports, dispatched work and answers. Codecs use it to encode all data on
//! its way out and to decode all data on its way in.
//!
//! The tables name every field of every type, those with user data first, so a new field does not
//! compile until it has its place. Some data stays readable, because the engine, lists or people
//! without keys read it: search attributes, and the details of waits and approvals. Names, types,
//! reasons, identities and ids are no payloads.

mod border;
mod fact;

use std::collections::BTreeMap;

use crate::{
    failure::Failure,
    payload::{Extension, Payload},
};

/// User data that was found in a value, in the order of its fields.
#[derive(Debug, Default)]
pub struct Carried<'a> {
    pub payloads: Vec<&'a mut Payload>,
    pub failures: Vec<FailureTexts<'a>>,
}

/// The texts of a failure, which may quote user data.
#[derive(Debug)]
pub struct FailureTexts<'a> {
    pub message: &'a mut String,
    pub stack: &'a mut String,
    /// A codec that hides the texts keeps them here.
    pub extension: &'a mut Extension,
}

/// A value that carries user data.
pub trait Carrier {
    /// Adds all user data of the value.
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>);

    /// All user data of the value.
    fn carried(&mut self) -> Carried<'_> {
        let mut carried = Carried::default();
        self.collect(&mut carried);
        carried
    }
}

impl Carrier for Payload {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        carried.payloads.push(self);
    }
}

impl<T: Carrier> Carrier for Vec<T> {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        self.iter_mut().for_each(|item| item.collect(carried));
    }
}

impl<T: Carrier> Carrier for BTreeMap<String, T> {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        self.values_mut().for_each(|item| item.collect(carried));
    }
}

impl<T: Carrier> Carrier for Option<T> {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        self.iter_mut().for_each(|item| item.collect(carried));
    }
}

impl<T: Carrier> Carrier for Box<T> {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        (**self).collect(carried);
    }
}

impl<T: Carrier, E: Carrier> Carrier for Result<T, E> {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        match self {
            Ok(item) => item.collect(carried),
            Err(error) => error.collect(carried),
        }
    }
}

impl Carrier for Failure {
    fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
        let Self {
            message,
            stack,
            extension,
            details,
            causes,
            error_type: _,
            kind: _,
            non_retryable: _,
            next_retry_delay: _,
        } = self;
        carried.failures.push(FailureTexts { message, stack, extension });
        details.collect(carried);
        causes.iter_mut().for_each(|cause| cause.collect(carried));
    }
}

/// Says for each struct which fields carry user data and, after the semicolon, which do not.
macro_rules! carriers {
    ($($name:ident { $($data:ident),* ; $($plain:ident),* $(,)? })*) => { $(
        impl $crate::carried::Carrier for $name {
            fn collect<'a>(&'a mut self, carried: &mut $crate::carried::Carried<'a>) {
                let Self { $($data,)* $($plain: _,)* } = self;
                $($crate::carried::Carrier::collect($data, carried);)*
                // A struct without user data adds nothing.
                let _ = carried;
            }
        }
    )* };
}
use carriers;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::arbitrary::{Cases, Source},
        event::Fact,
    };

    /// Facts with payloads that stay readable, and why.
    const READABLE: &[(&str, &str)] = &[
        ("RunStarted", "search attributes"),
        ("RunContinuedAsNew", "search attributes"),
        ("ChildInitiated", "search attributes"),
        ("SearchAttributesUpserted", "search attributes"),
        ("TimerStarted", "details of a wait"),
        ("WaitOpened", "details of a wait"),
        ("WaitDescribed", "details of a wait"),
    ];

    /// How many payloads the readable form of a value shows whose bytes are not encoded.
    fn readable(fact: &Fact) -> usize {
        let text = format!("{fact:?}");
        text.matches("Payload {").count() - text.matches("data: b\"encoded\"").count()
    }

    #[test]
    fn no_payload_of_any_event_is_forgotten() {
        for (name, draw) in Fact::cases() {
            let mut fact: Fact = draw(&mut Source::full());
            let before = readable(&fact);
            let carried = fact.carried().payloads;
            let found = carried.len();
            carried.into_iter().for_each(|payload| *payload = Payload::new("encoded"));
            assert_eq!(readable(&fact), before - found, "{name}: each is found once");
            let stays = READABLE.iter().any(|(readable, _)| *readable == name);
            assert_eq!(readable(&fact) > 0, stays, "{name}: {fact:?}");
        }
    }

    #[test]
    fn every_failure_of_every_event_is_found_with_its_causes() {
        for (name, draw) in Fact::cases() {
            let mut fact: Fact = draw(&mut Source::full());
            let expected = format!("{fact:?}").matches("Failure {").count();
            assert_eq!(fact.carried().failures.len(), expected, "{name}");
        }
    }
}
