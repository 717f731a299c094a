//! Requests that end without a decision: deadlines, fallbacks, escalation, late answers, withdrawal.

use abide::{
    Context,
    approval::{Answer, AnswerResult, Approvals, Decision, Effect, Refusal, Request, Status},
    select,
};
use abide_sdk_macros::{activity, workflow};

use crate::{
    approvals::{Expense, Terms, told},
    world::{World, seconds},
};

fn within_a_minute() -> Terms {
    Terms { timeout: Some(seconds(60)), ..Terms::of(&["ada"]) }
}

fn approve() -> Answer {
    Answer::approve("expense", "ada")
}

#[test]
fn the_deadline_ends_a_request_that_nobody_answers() {
    let mut world = World::ask(within_a_minute());
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), "timed out with 0 votes, so None");
    world.check();
}

#[test]
fn a_fallback_holds_when_the_deadline_comes_first() {
    let mut world = World::ask(Terms {
        fallback: Some(Decision::Reject),
        quorum: Some((2, 2)),
        approvers: vec!["ada".into(), "grace".into()],
        ..within_a_minute()
    });
    world.answer_by_update(approve()).unwrap();
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), "timed out with 1 votes, so Some(Reject)");
    world.check();
}

#[test]
fn the_order_in_history_decides_between_answer_and_deadline() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..within_a_minute() });
    // The timer has fired when the signal comes, although no worker has seen it.
    world.fire_unseen(seconds(60));
    world.signal(Expense::DECISION, approve());
    assert_eq!(world.query(Expense::APPROVALS, ()).requests[0].status, Status::TimedOut);
    world.check();
}

#[test]
fn a_late_decision_is_kept_and_reported_by_signal_and_by_update() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..within_a_minute() });
    world.pass(seconds(61));
    world.signal(Expense::DECISION, approve());
    assert_eq!(world.answer_by_update(approve()).unwrap().effect, Effect::Late);
    let standing = &world.query(Expense::APPROVALS, ()).requests[0];
    assert_eq!(standing.status, Status::TimedOut);
    for entry in &standing.entries {
        assert!(matches!(&entry.result, AnswerResult::Taken(told) if told.effect == Effect::Late));
        assert_eq!(entry.at, world.now());
    }
    assert_eq!(standing.entries.len(), 2);
    world.check();
}

#[test]
fn a_decision_after_the_fallback_is_told_what_was_decided_and_is_kept() {
    let fallback = Some(Decision::Reject);
    let terms = Terms { fallback, then: Some(seconds(9)), ..within_a_minute() };
    let mut world = World::ask(terms);
    world.pass(seconds(61));
    let told = world.update(Expense::DECIDE, approve().key("click-1")).unwrap();
    let expected = "already decided: request expense was decided with reject";
    assert_eq!(told.unwrap_err(), expected);
    let again = world.update(Expense::DECIDE, approve().key("click-1")).unwrap();
    assert_eq!(again.unwrap_err(), expected, "a repeat is told the same");
    let standing = &world.query(Expense::APPROVALS, ()).requests[0];
    assert_eq!((standing.status, standing.decision.as_deref()), (Status::TimedOut, Some("reject")));
    let judged = &standing.entries[0].result;
    assert!(
        matches!(judged, AnswerResult::Taken(told) if told.effect == Effect::Late),
        "{judged:?}"
    );
    world.check();
}

#[test]
fn after_the_deadline_strangers_are_refused_and_nothing_can_be_handed_over() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..within_a_minute() });
    world.pass(seconds(60));
    let refusal = world.answer_by_update(Answer::approve("expense", "mallory")).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAllowed { .. }));
    let refusal = world.answer_by_update(Answer::delegate("expense", "ada", "grace")).unwrap_err();
    assert_eq!(refusal.to_string(), "closed: request expense is no longer open");
    world.check();
}

/// Asks the boss, too, when the first deadline has passed.
#[derive(Default)]
struct Escalating {
    approvals: Approvals,
}

#[activity]
async fn tell_the_boss() {}

#[workflow(approvals = approvals)]
impl Escalating {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request =
            Request::new("expense").approver("ada").requested_by("linus").timeout(seconds(60));
        let mut verdict = ctx.approval(request.clone()).await?;
        if verdict.is_timed_out() {
            ctx.activity(tell_the_boss, ()).await?;
            let escalated = request.approver("boss").timeout(seconds(600));
            verdict = ctx.approval(escalated.fallback(Decision::Reject)).await?;
        }
        Ok(told(&verdict))
    }

    #[query]
    fn late(&self) -> usize {
        self.approvals.late("expense").count()
    }
}

fn escalated() -> World<Escalating> {
    let mut world = World::<Escalating>::start(());
    world.pass(seconds(60));
    world
}

#[test]
fn an_escalation_runs_an_activity_and_asks_more_people_with_a_second_deadline() {
    let mut world = escalated();
    world.complete(tell_the_boss, ());
    world.pass(seconds(300));
    world.signal(Escalating::DECISION, Answer::approve("expense", "boss"));
    assert_eq!(world.result().unwrap(), "Approve by boss");
    world.check();
}

#[test]
fn the_second_deadline_has_its_own_fallback() {
    let mut world = escalated();
    world.complete(tell_the_boss, ());
    world.pass(seconds(600));
    assert_eq!(world.result().unwrap(), "timed out with 0 votes, so Some(Reject)");
    world.check();
}

#[test]
fn a_late_decision_counts_when_the_request_is_asked_again() {
    let mut world = escalated();
    // It comes while the activity runs, and leaves no second wait in history.
    world.signal(Escalating::DECISION, approve());
    world.complete(tell_the_boss, ());
    assert_eq!(world.result().unwrap(), "Approve by ada");
    let opened = world.history().iter().filter(|name| **name == "WaitOpened").count();
    assert_eq!(opened, 1);
    world.check();
}

#[test]
fn whoever_could_not_have_decided_in_time_cannot_decide_late() {
    let mut world = escalated();
    // The boss may act when asked, and has not been asked.
    for stranger in ["mallory", "boss"] {
        world.signal(Escalating::DECISION, Answer::reject("expense", stranger));
    }
    assert_eq!(world.query(Escalating::LATE, ()), 0);
    let entries = &world.query(Escalating::APPROVALS, ()).requests[0].entries;
    for entry in entries {
        assert!(matches!(entry.result, AnswerResult::Refused(Refusal::NotAllowed { .. })));
    }
    assert_eq!(entries.len(), 2);
    world.complete(tell_the_boss, ());
    assert_eq!(world.result(), None);
    world.signal(Escalating::DECISION, Answer::approve("expense", "boss"));
    assert_eq!(world.result().unwrap(), "Approve by boss");
    world.check();
}

#[test]
fn a_late_handover_or_withdrawal_by_signal_has_no_effect_when_it_is_asked_again() {
    let mut world = escalated();
    world.signal(Escalating::DECISION, Answer::delegate("expense", "ada", "grace"));
    world.signal(Escalating::DECISION, Answer::withdraw("expense", "linus"));
    let entries = &world.query(Escalating::APPROVALS, ()).requests[0].entries;
    for entry in entries {
        assert!(matches!(entry.result, AnswerResult::Refused(Refusal::Closed { .. })));
    }
    world.complete(tell_the_boss, ());
    let standing = &world.query(Escalating::APPROVALS, ()).requests[0];
    assert_eq!(
        (standing.status, &*standing.approvers),
        (Status::Open, &["ada", "boss"].map(String::from)[..])
    );
    world.signal(Escalating::DECISION, approve());
    assert_eq!(world.result().unwrap(), "Approve by ada");
    world.check();
}

#[test]
fn whoever_asked_can_withdraw_and_nobody_else() {
    let mut world = World::ask(Terms {
        requester: Some("linus".into()),
        then: Some(seconds(9)),
        ..within_a_minute()
    });
    let refusal = world.answer_by_update(Answer::withdraw("expense", "ada")).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAllowed { .. }));
    let withdrawal = Answer::withdraw("expense", "linus").comment("bought it myself");
    assert_eq!(world.answer_by_update(withdrawal).unwrap().effect, Effect::Withdrawn);
    let refusal = world.answer_by_update(approve()).unwrap_err();
    assert_eq!(refusal.to_string(), "closed: request expense is no longer open");
    world.pass(seconds(9));
    assert_eq!(world.result().unwrap(), "withdrawn by Some(\"linus\"): Some(\"bought it myself\")");
    world.check();
}

#[test]
fn a_request_is_withdrawn_when_the_run_is_cancelled() {
    /// Cleans up for a while after it was cancelled.
    #[derive(Default)]
    struct Careful {
        approvals: Approvals,
    }

    #[workflow(approvals = approvals)]
    impl Careful {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            let asked = ctx.approval(Request::new("expense").timeout(seconds(60))).await;
            ctx.sleep(seconds(9)).await?;
            asked.map(|_| ())
        }
    }

    let mut world = World::<Careful>::start(());
    world.cancel();
    assert_eq!(world.query(Careful::APPROVALS, ()).requests[0].status, Status::Withdrawn);
    assert_eq!(world.update(Careful::DECIDE, approve()), None);
    assert!(matches!(Refusal::of(&world.rejected[0].clone().into()), Some(Refusal::Closed { .. })));
    world.pass(seconds(9));
    assert_eq!(world.history().last(), Some(&"RunCancelled"));
    world.check();
}

/// Gives up asking when there is something better to do.
#[derive(Default)]
struct Impatient {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Impatient {
    #[run]
    async fn run(ctx: &Context<Self>, explain: bool) -> abide::Result<String> {
        if explain {
            let asked = ctx.approval(Request::new("expense")).start();
            let cancel = ctx.clone();
            ctx.spawn(async move {
                if cancel.receive(Self::BOUGHT).await.is_ok() {
                    let _ = cancel.withdraw_approval("expense", "bought by another");
                }
            });
            return Ok(told(&asked.await?));
        }
        select! {
            verdict = ctx.approval(Request::new("expense")) => return Ok(told(&verdict?)),
            bought = ctx.receive(Self::BOUGHT) => bought?,
        }
        ctx.sleep(seconds(9)).await?;
        Ok("bought".into())
    }

    #[signal]
    fn bought();
}

#[test]
fn a_request_is_withdrawn_when_its_future_is_dropped() {
    let mut world = World::<Impatient>::start(false);
    world.signal(Impatient::BOUGHT, ());
    let standing = &world.query(Impatient::APPROVALS, ()).requests[0];
    assert_eq!((standing.status, standing.ended_at), (Status::Withdrawn, Some(world.now())));
    assert_eq!(world.update(Impatient::DECIDE, approve()), None);
    assert!(matches!(Refusal::of(&world.rejected[0].clone().into()), Some(Refusal::Closed { .. })));
    assert!(world.history().contains(&"WaitCancelled"));
    world.check();
}

#[test]
fn code_withdraws_a_request_and_says_why() {
    let mut world = World::<Impatient>::start(true);
    world.signal(Impatient::BOUGHT, ());
    assert_eq!(world.result().unwrap(), "withdrawn by None: Some(\"bought by another\")");
    world.check();
}
