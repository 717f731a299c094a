//! What a request says about who may decide what, and when that is enough.

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
    /// Names, the one that needs the quorum first.
    pub(super) choices: Vec<String>,
    pub(super) quorum: Option<Quorum>,
    pub(super) fallback: Option<Value>,
    /// The update takes what must be refused, too, so that it stands in history.
    pub(super) record_refusals: bool,
    /// Whether a choice can be read as the type that the code expects.
    pub(super) readable: fn(&Value) -> Result<(), String>,
}

/// So many votes of so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quorum {
    pub(super) needed: usize,
    pub(super) of: usize,
}

impl Rules {
    /// What is wrong with the request, if anything.
    pub(super) fn check(&self) -> Result<(), String> {
        let id = &self.id;
        if let Some(twice) =
            (1..self.choices.len()).find(|&n| self.choices[..n].contains(&self.choices[n]))
        {
            return Err(format!("request {id} offers {} twice", self.choices[twice]));
        }
        if self.choices.is_empty() {
            return Err(format!("request {id} offers nothing to choose from"));
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

    /// A fallback that cannot hold is told now, not at the deadline.
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

    /// Anyone may act.
    pub(super) const fn open_to_all(&self) -> bool {
        self.approvers.is_empty() && self.roles.is_empty()
    }

    /// What these votes decide, if they are enough.
    ///
    /// Without a quorum the first vote decides. With one, the first choice needs it; as soon as it
    /// cannot be reached any more, the other choice with most votes holds, the earlier one if there are
    /// two of these.
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
