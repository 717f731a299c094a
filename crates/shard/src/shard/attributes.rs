//! Search attributes in requests: they must be registered in their namespace. What is registered is read
//! from the store when a request needs it, and kept for a while: a node that registers an attribute does
//! not tell the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    codec,
    command::{Ask, Command},
    event::{RunSpec, TaskFailureCause},
    failure::Failure,
    ids::{NamespaceId, RunId},
    limits::{InvalidField, Limits},
    operation::{CallError, RunOperation, Ticket},
    payload::PayloadMap,
    report::{Report, ReportAnswer, TaskToken},
    run::{FailTask, Input},
    schedule::ScheduleChange,
    search::{Definitions, attribute},
    time::Timestamp,
};
use abide_store::rows::RegistryRow;

use super::{Reading, Shard, request::Request};
use crate::message::{Fetch, Notice, Output};

/// How long a shard relies on what it has read: an attribute that is removed may be set for so long.
const TRUSTED_FOR: Duration = Duration::from_secs(10);

/// What is registered, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Registered {
    /// Namespaces that have any attributes.
    known: BTreeMap<NamespaceId, (Arc<Definitions>, Timestamp)>,
}

/// A request with search attributes.
#[derive(Debug)]
pub(super) struct Unread {
    ticket: Ticket,
    request: Request,
    /// Namespaces that were read for it already: what is not registered there is wrong.
    read: BTreeSet<NamespaceId>,
}

impl Registered {
    fn definitions(&self, namespace: &NamespaceId) -> Arc<Definitions> {
        self.known.get(namespace).map(|(known, _)| Arc::clone(known)).unwrap_or_default()
    }

    /// Whether all of these are known to be registered.
    fn cover(&self, namespace: &NamespaceId, attributes: &PayloadMap, now: Timestamp) -> bool {
        self.known.get(namespace).is_some_and(|(known, read_at)| {
            now.saturating_since(*read_at) < TRUSTED_FOR && known.cover(attributes)
        })
    }

    /// Checks the attributes and marks each with its type.
    fn check(
        &self,
        namespace: &NamespaceId,
        attributes: &mut PayloadMap,
        limits: &Limits,
    ) -> Result<(), InvalidField> {
        if attributes.is_empty() {
            return Ok(());
        }
        self.definitions(namespace).check(attributes, limits)
    }

    /// Checks the attributes of a run that is to begin.
    fn check_spec(
        &self,
        namespace: &NamespaceId,
        spec: &mut RunSpec,
        limits: &Limits,
    ) -> Result<(), InvalidField> {
        self.check(namespace, &mut spec.search_attributes, limits)?;
        spec.search_attributes.retain(|_, payload| !payload.data.is_empty());
        attribute::check_entries(&spec.search_attributes, limits)
    }

    fn check_command(
        &self,
        namespace: &NamespaceId,
        ask: &mut Ask,
        limits: &Limits,
    ) -> Result<(), InvalidField> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other commands have no attributes")]
        match ask {
            Ask::UpsertSearchAttributes(changes) => self.check(namespace, changes, limits),
            Ask::StartChild(child) => {
                let namespace = child.workflow.namespace.clone();
                self.check_spec(&namespace, &mut child.spec, limits)
            }
            Ask::ContinueAsNew(next) => self.check_spec(namespace, &mut next.spec, limits),
            _ => Ok(()),
        }
    }
}

/// What the operation starts, now or later.
fn spec_of(operation: &RunOperation) -> Option<&RunSpec> {
    match operation {
        RunOperation::Start(start) => Some(&start.spec),
        RunOperation::CreateSchedule(create) => Some(&create.schedule.run),
        RunOperation::ChangeSchedule(asked) => match &asked.change {
            ScheduleChange::Updated(schedule) => Some(&schedule.run),
            _ => None,
        },
        _ => None,
    }
}

fn spec_mut(operation: &mut RunOperation) -> Option<&mut RunSpec> {
    match operation {
        RunOperation::Start(start) => Some(&mut start.spec),
        RunOperation::CreateSchedule(create) => Some(&mut create.schedule.run),
        RunOperation::ChangeSchedule(asked) => match &mut asked.change {
            ScheduleChange::Updated(schedule) => Some(&mut schedule.run),
            _ => None,
        },
        _ => None,
    }
}

/// The search attributes in a request, each with their namespace.
fn attributes_of(request: &Request) -> Vec<(&NamespaceId, &PayloadMap)> {
    let found = match request {
        Request::Operation(operation) => {
            let namespace = &operation.workflow().namespace;
            spec_of(operation)
                .map(|spec| (namespace, &spec.search_attributes))
                .into_iter()
                .collect()
        }
        Request::Report(report) => match &**report {
            Report::CompleteTask(token, completion) => {
                let own = &token.workflow.namespace;
                let found = completion.commands.iter().filter_map(|command| {
                    #[expect(clippy::wildcard_enum_match_arm, reason = "others have none")]
                    match &command.ask {
                        Ask::UpsertSearchAttributes(changes) => Some((own, changes)),
                        Ask::StartChild(child) => {
                            Some((&child.workflow.namespace, &child.spec.search_attributes))
                        }
                        Ask::ContinueAsNew(next) => Some((own, &next.spec.search_attributes)),
                        _ => None,
                    }
                });
                found.collect()
            }
            _ => Vec::new(),
        },
    };
    found.into_iter().filter(|(_, attributes)| !attributes.is_empty()).collect()
}

impl Shard {
    /// Serves a request once it is known which of its search attributes are registered.
    pub(super) fn with_attributes(&mut self, ticket: Ticket, request: Request) {
        self.look_up(Unread { ticket, request, read: BTreeSet::new() });
    }

    fn look_up(&mut self, mut asked: Unread) {
        let (now, registered) = (self.now(), &self.memory.registered);
        let unknown = |(namespace, attributes): &(&NamespaceId, &PayloadMap)| {
            !asked.read.contains(*namespace) && !registered.cover(namespace, attributes, now)
        };
        let unknown = attributes_of(&asked.request).into_iter().find(unknown);
        if let Some((namespace, _)) = unknown {
            let namespace = namespace.clone();
            asked.read.insert(namespace.clone());
            let fetch = Fetch::Registered(namespace.clone());
            return self.fetch(Reading::Registered(namespace, Box::new(asked)), fetch);
        }
        let Unread { ticket, mut request, .. } = asked;
        if let Request::Operation(operation) = &mut request
            && let namespace = operation.workflow().namespace.clone()
            && let Some(spec) = spec_mut(operation)
        {
            let (registered, limits) = (&self.memory.registered, &self.limits);
            if let Err(invalid) = registered.check_spec(&namespace, spec, limits) {
                return self.refuse(ticket, invalid.into());
            }
        }
        self.route(ticket, request);
    }

    /// The registry's row of a namespace was read.
    pub(super) fn registered_read(
        &mut self,
        namespace: &NamespaceId,
        asked: Unread,
        row: Option<RegistryRow>,
    ) {
        let read = match row.map(|row| codec::decode_definitions(row.value)).transpose() {
            Ok(read) => read,
            Err(error) => {
                let reason = format!("namespace {namespace}: {error}");
                self.emit(Output::Notice(Notice::UnreadableAttributes(reason.clone())));
                return self.refuse(asked.ticket, CallError::Unavailable(reason));
            }
        };
        match read.filter(|definitions| !definitions.is_empty()) {
            Some(definitions) => {
                let known = (Arc::new(definitions), self.now());
                self.memory.registered.known.insert(namespace.clone(), known);
            }
            // A namespace of this name need not exist, so nothing is kept about it.
            None => drop(self.memory.registered.known.remove(namespace)),
        }
        self.look_up(asked);
    }

    /// Checks the search attributes in commands, and fails the task if some are wrong. Returns whether
    /// the task goes on.
    pub(super) fn check_attributes(
        &mut self,
        run: RunId,
        ticket: Ticket,
        token: &TaskToken,
        commands: &mut [Command],
    ) -> bool {
        let (registered, limits) = (&self.memory.registered, &self.limits);
        let namespace = &token.workflow.namespace;
        let mut checked = commands.iter_mut().enumerate().map(|(index, command)| {
            let checked = registered.check_command(namespace, &mut command.ask, limits);
            checked.map_err(|invalid| format!("command {}: {invalid}", index + 1))
        });
        let Some(message) = checked.find_map(Result::err) else { return true };
        let cause = TaskFailureCause::BadCommand;
        let failure = Failure { message: message.clone(), ..Failure::default() };
        let failed = FailTask { start: token.start, cause, failure, blocked: None };
        let answer = self
            .decide(run, Input::FailTask(Box::new(failed)))
            .map(|_| ReportAnswer::TaskRefused { cause, message });
        self.acknowledge_after(run, ticket, answer);
        false
    }
}
