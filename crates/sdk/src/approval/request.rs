//! A request as workflow code writes it, before it is asked.

use std::{fmt, marker::PhantomData, time::Duration};

use abide_core::limits::valid_condition_key;

use super::{
    Choice, Decision,
    bounds::SHOWN_BYTES_MAX,
    choice,
    rules::{Quorum, Rules},
};
use crate::{
    Timestamp,
    context::Limit,
    error::{Error, Result},
    payload::{PayloadValue, RawPayload},
};

/// A question to people, asked by [`Context::approval`](crate::Context::approval).
///
/// By default anyone may answer, with `approve` or `reject`, the first answer decides, and there is
/// no deadline.
///
/// ```
/// use abide_sdk::{approval::{Decision, Request}, time::days};
///
/// let request = Request::new("expense")
///     .about("Train tickets to the fair")
///     .data("euros", &420)
///     .approvers(["ada", "grace"])
///     .role("accounting")
///     .timeout(days(3))
///     .fallback(Decision::Reject);
/// ```
#[must_use = "a request is not sent until it is passed to `ctx.approval`"]
pub struct Request<C = Decision> {
    pub(super) rules: Rules,
    pub(super) data: Vec<(String, RawPayload)>,
    pub(super) limit: Option<Limit>,
    pub(super) not_after: Option<Timestamp>,
    pub(super) max_extensions: Option<u32>,
    /// An encoding error, returned when the request is asked.
    wrong: Option<String>,
    choice: PhantomData<fn() -> C>,
}

impl Request {
    /// A request with this id, which is unique within the run: up to 119 letters, digits and
    /// `. _ - :` characters.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            rules: Rules {
                id: id.into(),
                subject: String::new(),
                approvers: Vec::new(),
                roles: Vec::new(),
                requester: None,
                choices: vec!["approve".into(), "reject".into()],
                quorum: None,
                fallback: None,
                record_refusals: false,
                readable: choice::check::<Decision>,
            },
            data: Vec::new(),
            limit: None,
            not_after: None,
            max_extensions: None,
            wrong: None,
            choice: PhantomData,
        }
    }
}

impl<C: Choice> Request<C> {
    /// What is asked, in a few words for people. All that a request shows has at most 32 KiB.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.rules.subject = subject.into();
        self
    }

    /// Adds a named value for the people who decide.
    pub fn data<T: PayloadValue>(mut self, name: impl Into<String>, value: &T) -> Self {
        let name = name.into();
        match value.to_payload() {
            Ok(payload) => self.data.extend(payload.map(|payload| (name, RawPayload(payload)))),
            Err(error) => self.wrong = Some(error.of(format!("data {name}")).to_string()),
        }
        self
    }

    /// Adds a person who may decide. A name has at most 256 bytes.
    pub fn approver(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !self.rules.approvers.contains(&name) {
            self.rules.approvers.push(name);
        }
        self
    }

    /// Adds several people who may decide.
    pub fn approvers<A: Into<String>>(self, names: impl IntoIterator<Item = A>) -> Self {
        names.into_iter().fold(self, Self::approver)
    }

    /// Adds a role; everyone who has it may decide.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.rules.roles.push(role.into());
        self
    }

    /// Sets the requester, who may withdraw the request.
    pub fn requested_by(mut self, requester: impl Into<String>) -> Self {
        self.rules.requester = Some(requester.into());
        self
    }

    /// Sets the choices, instead of `approve` and `reject`. Of a variant that holds data only the
    /// name counts here. With a [`quorum`](Self::quorum), the first choice is the one that needs
    /// it.
    pub fn choices<D: Choice>(self, choices: impl IntoIterator<Item = D>) -> Request<D> {
        let Self { mut rules, data, limit, not_after, max_extensions, mut wrong, .. } = self;
        rules.choices = Vec::new();
        rules.readable = choice::check::<D>;
        for offered in choices {
            match choice::written(&offered) {
                Ok(value) => rules.choices.extend(choice::name(&value).map(str::to_owned)),
                Err(error) => wrong = Some(error),
            }
        }
        let choice = PhantomData;
        Request { rules, data, limit, not_after, max_extensions, wrong, choice }
    }

    /// Sets how many votes, of at most `of`, the first choice needs: `quorum(2, 3)` is two of
    /// three. As soon as it cannot be reached any more, the other choice with the most votes is
    /// decided.
    pub const fn quorum(mut self, needed: usize, of: usize) -> Self {
        self.rules.quorum = Some(Quorum { needed, of });
        self
    }

    /// Sets the deadline to this long after the request is asked.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.limit = Some(Limit::After(timeout));
        self
    }

    /// Sets the deadline to this time.
    pub const fn until(mut self, deadline: Timestamp) -> Self {
        self.limit = Some(Limit::At(deadline));
        self
    }

    /// Sets the choice that applies if the deadline comes before a decision.
    pub fn fallback(mut self, fallback: C) -> Self {
        match choice::written(&fallback) {
            Ok(value) => self.rules.fallback = Some(value),
            Err(error) => self.wrong = Some(error),
        }
        self
    }

    /// Clients and operators cannot move the deadline past this time; code can.
    pub const fn not_after(mut self, at: Timestamp) -> Self {
        self.not_after = Some(at);
        self
    }

    /// How often clients and operators can move the deadline; code has no limit.
    pub const fn max_extensions(mut self, count: u32) -> Self {
        self.max_extensions = Some(count);
        self
    }

    /// Records refused answers: the update accepts every answer, and its outcome says why an answer
    /// does not count. So all attempts are in history and in the query, for a few events each.
    /// Without it a refused update leaves no trace.
    pub const fn record_refusals(mut self) -> Self {
        self.rules.record_refusals = true;
        self
    }

    /// The id of the request, unique within the run.
    pub fn id(&self) -> &str {
        &self.rules.id
    }

    /// The key of the condition that the run waits for.
    pub(super) fn key(&self) -> String {
        format!("approval:{}", self.rules.id)
    }

    /// Checks that the request can be asked.
    pub(super) fn check(&self) -> Result<()> {
        let id = &self.rules.id;
        if id.is_empty() || !valid_condition_key(&self.key()) {
            return Err(Error::new(format!(
                "{id:?} is not a valid request id: use 1 to 119 letters, digits and . _ - : characters"
            )));
        }
        if let Some(wrong) = &self.wrong {
            return Err(Error::new(format!("request {id}: {wrong}")));
        }
        if self.rules.fallback.is_some() && self.limit.is_none() {
            let message = format!("request {id} has a fallback and no deadline: give it a timeout");
            return Err(Error::new(message));
        }
        let shown = self.shown_bytes();
        if shown > SHOWN_BYTES_MAX {
            return Err(Error::new(format!(
                "request {id} shows {shown} bytes of at most {SHOWN_BYTES_MAX}: show a link instead"
            )));
        }
        self.rules.check().map_err(Error::new)
    }

    /// How many bytes the details of the wait take.
    fn shown_bytes(&self) -> usize {
        let Rules { subject, approvers, roles, .. } = &self.rules;
        let actors: usize = approvers.iter().chain(roles).map(String::len).sum();
        let data: usize = self.data.iter().map(|(name, it)| name.len() + it.0.size().bytes).sum();
        subject.len() + actors + data
    }
}

impl<C> Clone for Request<C> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            data: self.data.clone(),
            limit: self.limit,
            not_after: self.not_after,
            max_extensions: self.max_extensions,
            wrong: self.wrong.clone(),
            choice: PhantomData,
        }
    }
}

impl<C> fmt::Debug for Request<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {}", self.rules.id)
    }
}
