//! Updates on the server.
//!
//! | update | input | becomes |
//! |---|---|---|
//! | unknown | requested by a caller | admitted, in memory: the caller repeats after a crash |
//! | admitted | code accepts | accepted (event) |
//! | admitted | code rejects, or does not answer | gone; only the caller is notified |
//! | admitted, caller does not wait for a fix | code does not fit history | gone; the caller gets an error |
//! | accepted | code completes | completed (event), kept for repeats |
//!
//! An outcome that is too large becomes a failure that says so, in history too: replay only
//! compares that the update ended.
//!
//! An update that was carried over from another run is admitted by an event, so its rejection is a
//! note, which is kept for repeats too.

use super::{Admitted, Decision, KnownUpdate, Refusal, Reply, Run, draft::Draft};
use crate::{
    digest::Digest,
    event::{Event, Fact, UpdateAccepted, UpdateCompleted, UpdateOutcome, UpdateRequest},
    failure::{Failure, FailureKind},
    ids::{RunId, UpdateId},
    limits::{Exceeded, InvalidField, Limits},
    note::Note,
    payload::size,
};

/// State of an update.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Code has neither accepted nor rejected it.
    Admitted,
    Accepted,
    Completed(UpdateOutcome),
    /// An earlier run of the chain completed it.
    CompletedIn(RunId),
    /// Carried over from an earlier run, and rejected by code.
    Rejected(Failure),
}

pub(super) fn admit(
    draft: Draft<'_>,
    update: UpdateId,
    request: UpdateRequest,
    wait_while_blocked: bool,
) -> Result<Decision, Refusal> {
    if let Some(stage) = draft.run.asked_before(&update, &request)? {
        if let Some(admitted) = draft.run.volatile.admitted.get_mut(&update) {
            admitted.wait_while_blocked |= wait_while_blocked;
        }
        return Ok(draft.finish(Reply::Update(stage)));
    }
    let (run, limits) = (&*draft.run, draft.context.limits);
    if run.close_refused && run.volatile.turn.is_some() {
        return Err(Refusal::Busy);
    }
    Exceeded::check("updates without outcome", run.pending_updates(), limits.pending_updates)?;
    let updates = run.updates.len() + run.volatile.admitted.len();
    Exceeded::check("updates of the run", updates, limits.updates)?;
    let outcomes = run.outcome_memory();
    Exceeded::check("bytes of the run's update results", outcomes, limits.update_bytes)?;
    draft.room()?;
    // There is room when code has judged those that it has.
    if run.admitted_memory() >= limits.buffered_bytes {
        return Err(Refusal::Busy);
    }
    let order = draft.run.volatile.admissions;
    draft.run.volatile.admissions += 1;
    let admitted = Admitted { order, request, wait_while_blocked };
    draft.run.volatile.admitted.insert(update, admitted);
    Ok(draft.finish(Reply::Update(Stage::Admitted)))
}

/// The caller's own request is written, if it is known: a worker with another encoding key than the
/// caller would write other bytes, and a repeat by the caller would look like another request.
pub(super) fn accept(draft: &mut Draft<'_>, update: UpdateId, request: UpdateRequest) -> Fact {
    let admitted = draft.run.volatile.admitted.remove(&update).map(|admitted| admitted.request);
    let carried = match draft.run.updates.get(&update) {
        Some(KnownUpdate::Admitted(request)) => Some(request.clone()),
        Some(
            KnownUpdate::Accepted { .. }
            | KnownUpdate::Completed { .. }
            | KnownUpdate::Rejected { .. },
        )
        | None => None,
    };
    UpdateAccepted { update, request: admitted.or(carried).unwrap_or(request) }.into()
}

pub(super) fn complete(draft: &Draft<'_>, update: UpdateId, outcome: UpdateOutcome) -> Fact {
    let limits = draft.context.limits;
    let outcome = match outcome {
        UpdateOutcome::Completed(result) => match limits.check_size("its result", size(&result)) {
            Ok(()) => UpdateOutcome::Completed(result),
            Err(problem) => UpdateOutcome::Failed(too_large(&update, &problem)),
        },
        UpdateOutcome::Failed(failure) => UpdateOutcome::Failed(fit(limits, &update, failure)),
    };
    let accepted = match draft.run.updates.get(&update) {
        Some(KnownUpdate::Accepted { number, .. }) => *number,
        Some(
            KnownUpdate::Admitted(_) | KnownUpdate::Completed { .. } | KnownUpdate::Rejected { .. },
        )
        | None => 0,
    };
    UpdateCompleted { update, accepted, outcome }.into()
}

pub(super) fn reject(draft: &mut Draft<'_>, update: UpdateId, failure: Failure) {
    let failure = fit(draft.context.limits, &update, failure);
    draft.run.volatile.admitted.remove(&update);
    if draft.run.updates.contains_key(&update) {
        draft.note(Note::UpdateRejected { update: update.clone(), failure: failure.clone() });
    }
    draft.reject(update, failure);
}

/// The failure, or one that says that it is too large: a caller that waits for an outcome must get
/// one.
fn fit(limits: &Limits, update: &UpdateId, failure: Failure) -> Failure {
    match limits.check_failure(&failure) {
        Ok(()) => failure,
        Err(problem) => too_large(update, &problem),
    }
}

fn too_large(update: &UpdateId, problem: &InvalidField) -> Failure {
    let message = format!("update {update} has ended, but {problem}");
    Failure::server(FailureKind::Application, message)
}

/// Rejects updates that code did not handle, so that their callers do not wait forever. Besides the
/// updates that were sent with the task, code has seen all that are in history.
pub(super) fn reject_unanswered(draft: &mut Draft<'_>, sent: &[UpdateId]) {
    let run = &*draft.run;
    let in_memory = sent.iter().filter(|update| run.volatile.admitted.contains_key(update));
    let carried = run.updates.iter().filter(|(_, stage)| matches!(stage, KnownUpdate::Admitted(_)));
    let rejected = draft.rejected_updates();
    let unanswered: Vec<_> = in_memory
        .chain(carried.map(|(update, _)| update))
        .filter(|update| !rejected.contains(update))
        .cloned()
        .collect();
    for update in unanswered {
        let message = "the workflow's code did not answer the update";
        reject(draft, update, Failure::server(FailureKind::Server, message));
    }
}

impl Run {
    /// Drops updates while code is blocked and cannot handle them, unless their callers wait for a
    /// fix.
    pub(super) fn withdraw_updates(&mut self) {
        self.volatile.admitted.retain(|_, admitted| admitted.wait_while_blocked);
    }

    /// State of an update, if it is known.
    pub fn update_stage(&self, update: &UpdateId) -> Option<Stage> {
        let carried = || self.carried_updates.iter().find(|carried| carried.update == *update);
        match self.updates.get(update) {
            Some(KnownUpdate::Admitted(_)) => Some(Stage::Admitted),
            Some(KnownUpdate::Accepted { .. }) => Some(Stage::Accepted),
            Some(KnownUpdate::Completed { outcome, .. }) => Some(Stage::Completed(outcome.clone())),
            Some(KnownUpdate::Rejected { failure, .. }) => Some(Stage::Rejected(failure.clone())),
            None if self.volatile.admitted.contains_key(update) => Some(Stage::Admitted),
            None => carried().map(|carried| Stage::CompletedIn(carried.run)),
        }
    }

    /// State of an update that was requested before; its id cannot be used for another request.
    pub(super) fn asked_before(
        &self,
        update: &UpdateId,
        request: &UpdateRequest,
    ) -> Result<Option<Stage>, Refusal> {
        let carried = || self.carried_updates.iter().find(|carried| carried.update == *update);
        let asked = match (self.updates.get(update), self.volatile.admitted.get(update)) {
            (Some(known), _) => known.asked(),
            (None, Some(admitted)) => admitted.request.digest(),
            (None, None) => carried().map(|carried| carried.asked).unwrap_or_default(),
        };
        if asked.differs(request.digest()) {
            return Err(Refusal::KeyReused(update.as_str().into()));
        }
        Ok(self.update_stage(update))
    }

    pub(super) fn admitted_in_order(&self) -> Vec<(UpdateId, UpdateRequest)> {
        let mut admitted: Vec<_> = self.volatile.admitted.iter().collect();
        admitted.sort_by_key(|(_, admitted)| admitted.order);
        admitted.into_iter().map(|(id, admitted)| (id.clone(), admitted.request.clone())).collect()
    }

    pub(super) fn apply_update(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for updates only")]
        match &event.body.fact {
            Fact::UpdateAdmitted(admitted) => {
                let request = admitted.request.clone();
                self.updates.insert(admitted.update.clone(), KnownUpdate::Admitted(request));
            }
            Fact::UpdateAccepted(accepted) => {
                let asked = accepted.request.digest();
                let update = KnownUpdate::Accepted { number: event.number, asked };
                self.updates.insert(accepted.update.clone(), update);
            }
            Fact::UpdateCompleted(completed) => {
                let asked = self.asked_for(&completed.update);
                let update = KnownUpdate::Completed { outcome: completed.outcome.clone(), asked };
                self.updates.insert(completed.update.clone(), update);
            }
            _ => {}
        }
    }

    pub(super) fn apply_rejected(&mut self, update: &UpdateId, failure: &Failure) {
        let (failure, asked) = (failure.clone(), self.asked_for(update));
        self.updates.insert(update.clone(), KnownUpdate::Rejected { failure, asked });
    }

    /// Digest of the request of an update that has an event.
    fn asked_for(&self, update: &UpdateId) -> Digest {
        self.updates.get(update).map(KnownUpdate::asked).unwrap_or_default()
    }
}
