//! The rules of a request: who may decide what, and how many votes are enough.

use serde_json::Value;

use super::{bounds::NAME_BYTES_MAX, choice};

/// The part of a request that answers are judged by.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) approvers: Vec<String>,
    pub(super) roles: Vec<String>,
    pub(super) requester: Option<String>,
    /// The names of the choices; the first one needs the quorum.
    pub(super) choices: Vec<String>,
    pub(super) quorum: Option<Quorum>,
    pub(super) fallback: Option<Value>,
    /// The update also accepts answers that are refused, so that history records them.
    pub(super) record_refusals: bool,
    /// Checks that a choice can be decoded as the type that the code expects.
    pub(super) readable: fn(&Value) -> Result<(), String>,
}

/// The votes needed, of the largest number of votes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quorum {
    pub(super) needed: usize,
    pub(super) of: usize,
}

impl Rules {
    /// Checks that the rules are consistent.
    pub(super) fn check(&self) -> Result<(), String> {
        let id = &self.id;
        if let Some(twice) =
            (1..self.choices.len()).find(|&n| self.choices[..n].contains(&self.choices[n]))
        {
            return Err(format!("request {id} offers {} twice", self.choices[twice]));
        }
        if self.choices.is_empty() {
            return Err(format!("request {id} offers no choices"));
        }
        if self.approvers.iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!(
                "request {id} has an approver of more than {NAME_BYTES_MAX} bytes"
            ));
        }
        self.check_fallback()?;
        match self.quorum {
            Some(Quorum { needed, of }) if needed == 0 || needed > of => {
                Err(format!("request {id} cannot have {needed} votes of {of}"))
            }
            Some(Quorum { of, .. }) if self.roles.is_empty() && !self.approvers.is_empty() => {
                let named = self.approvers.len();
                let enough = of <= named;
                enough.then_some(()).ok_or_else(|| {
                    format!("request {id} counts {of} votes, but only {named} may vote")
                })
            }
            _ => Ok(()),
        }
    }

    /// An invalid fallback is an error when the request is asked, not at the deadline.
    fn check_fallback(&self) -> Result<(), String> {
        let Some(fallback) = &self.fallback else { return Ok(()) };
        let (id, name) = (&self.id, choice::name(fallback).unwrap_or_default());
        if !self.choices.iter().any(|choice| choice == name) {
            return Err(format!("request {id} falls back to {name}, which it does not offer"));
        }
        (self.readable)(fallback).map_err(|problem| {
            format!("request {id} falls back to {name}, which cannot be read: {problem}")
        })
    }

    pub(super) const fn open_to_all(&self) -> bool {
        self.approvers.is_empty() && self.roles.is_empty()
    }

    /// What these votes decide, if they are enough.
    ///
    /// Without a quorum the first vote decides. With one, the first choice needs it; as soon as it
    /// cannot be reached any more, the other choice with the most votes wins, the earlier one on a
    /// tie.
    pub(super) fn outcome<'a>(&self, votes: &[&'a Value]) -> Option<&'a Value> {
        let Some(Quorum { needed, of }) = self.quorum else { return votes.first().copied() };
        let wanted = |vote: &&Value| choice::name(vote) == self.choices.first().map(String::as_str);
        let (favour, against): (Vec<&Value>, Vec<&Value>) = votes.iter().copied().partition(wanted);
        if favour.len() >= needed {
            return favour.first().copied();
        }
        if against.len() <= of.saturating_sub(needed) {
            return None;
        }
        let count = |vote: &Value| {
            against.iter().filter(|other| choice::name(other) == choice::name(vote)).count()
        };
        against
            .iter()
            .copied()
            .reduce(|best, vote| if count(vote) > count(best) { vote } else { best })
    }
}
