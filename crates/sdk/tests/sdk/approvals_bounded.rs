//! What people send to a request is bounded and repeated without harm, and attempts can be kept.

use abide::{
    Context,
    approval::{Answer, AnswerChannel, AnswerResult, Approvals, Effect, Refusal, Request, Status},
};
use abide_sdk_macros::workflow;

use crate::{
    approvals::{Expense, Terms},
    world::{World, seconds},
};

fn approve(approver: &str) -> Answer {
    Answer::approve("expense", approver)
}

#[test]
fn texts_that_are_too_long_are_refused() {
    let mut world = World::ask(Terms::default());
    let (name, comment) = ("n".repeat(257), "c".repeat((16 << 10) + 1));
    let cases = [
        (approve(&name), "approver", 257),
        (Answer::delegate("expense", "ada", name), "delegate_to", 257),
        (approve("ada").comment(comment), "comment", (16 << 10) + 1),
    ];
    for (answer, part, bytes) in cases {
        let refusal = world.answer_by_update(answer.clone()).unwrap_err();
        let (request, limit) = ("expense".into(), bytes - 1);
        assert_eq!(refusal, Refusal::TooLong { request, part: part.into(), bytes, limit });
        world.signal(Expense::DECISION, answer);
    }
    let standing = &world.query(Expense::APPROVALS, ()).requests[0];
    for entry in &standing.entries {
        assert!(matches!(entry.result, AnswerResult::Refused(Refusal::TooLong { .. })));
    }
    assert_eq!((standing.status, standing.entries.len()), (Status::Open, 3));
    world.check();
}

#[test]
fn a_request_is_handed_over_a_hundred_times_at_most() {
    let mut world = World::ask(Terms::of(&["p-0"]));
    let person = |number: u32| format!("p-{number}");
    let handover = |from| Answer::delegate("expense", person(from), person(from + 1));
    for from in 0..100 {
        world.signal(Expense::DECISION, handover(from));
    }
    let refusal = world.answer_by_update(handover(100)).unwrap_err();
    assert_eq!(refusal, Refusal::TooManyHandovers { request: "expense".into(), limit: 100 });
    world.answer_by_update(approve("p-100")).unwrap();
    assert_eq!(world.result().unwrap(), "Approve by p-100");
}

#[test]
fn nobody_hands_over_to_himself() {
    for terms in [Terms::default(), Terms { roles: vec!["boss".into()], ..Terms::default() }] {
        let mut world = World::ask(terms);
        let handover = Answer::delegate("expense", "ada", "ada").role("boss");
        let refusal = world.answer_by_update(handover).unwrap_err();
        assert!(matches!(refusal, Refusal::CannotDelegate { .. }));
        world.answer_by_update(approve("ada").role("boss")).unwrap();
        assert_eq!(world.result().unwrap(), "Approve by ada");
        world.check();
    }
}

/// Asks a minute after it began, and keeps every attempt.
#[derive(Default)]
struct Later {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Later {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        ctx.sleep(seconds(60)).await?;
        let request = Request::new("expense").approvers(["ada", "grace"]).quorum(2, 2);
        Ok(ctx.approval(request.record_refusals()).await?.is_approved())
    }
}

#[test]
fn of_answers_that_come_before_the_question_the_newest_hundred_are_kept() {
    let mut world = World::<Later>::start(());
    for number in 0..101 {
        world
            .signal_raw("decision", Later::DECISION.encode(&approve(&number.to_string())).unwrap());
    }
    world.work();
    let early = world.query(Later::APPROVALS, ()).early;
    let (first, last) = (early[0].answer.approver(), early[99].answer.approver());
    assert_eq!((early.len(), first, last), (100, "1", "100"));
}

#[test]
fn repeats_that_come_before_the_question_count_once() {
    let mut world = World::<Later>::start(());
    for _ in 0..2 {
        world.signal(Later::DECISION, approve("ada").key("click-1"));
    }
    world.pass(seconds(60));
    let entries = &world.query(Later::APPROVALS, ()).requests[0].entries;
    let AnswerResult::Taken(first) = &entries[0].result else { panic!("it was taken") };
    assert_eq!(entries[1].result, AnswerResult::Repeated);
    let repeat = world.update(Later::DECIDE, approve("ada").key("click-1"));
    assert_eq!(repeat, Some(Ok(first.clone())));
    world.signal(Later::DECISION, approve("grace"));
    assert_eq!(world.result(), Some(true));
    world.check();
}

#[test]
fn a_request_may_keep_what_it_refuses() {
    let mut world = World::<Later>::start(());
    world.pass(seconds(60));
    let told = world.update(Later::DECIDE, approve("mallory")).unwrap().unwrap_err();
    assert_eq!(told, "not allowed: \"mallory\" may not act on request expense");
    let long = approve("mallory").comment("c".repeat(1 << 20));
    assert_eq!(world.update(Later::DECIDE, long), None, "this is not worth being kept");
    let taken = world.update(Later::DECIDE, approve("ada")).unwrap().unwrap();
    assert_eq!(taken.effect, Effect::Counted);

    let entries = &world.query(Later::APPROVALS, ()).requests[0].entries;
    assert_eq!((entries.len(), entries[0].channel), (2, AnswerChannel::Update));
    assert!(matches!(entries[0].result, AnswerResult::Refused(Refusal::NotAllowed { .. })));
    world.check();
}

/// Asks for a minute, and once more ten seconds later.
#[derive(Default)]
struct Again {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Again {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let request = Request::new("expense").approvers(["ada", "grace"]).quorum(2, 2);
        if ctx.approval(request.clone().timeout(seconds(60))).await?.is_approved() {
            return Ok(true);
        }
        ctx.sleep(seconds(10)).await?;
        Ok(ctx.approval(request).await?.is_approved())
    }
}

#[test]
fn a_repeat_is_told_what_the_first_was_told_although_it_was_asked_again_since() {
    let mut world = World::<Again>::start(());
    world.pass(seconds(60));
    let first = world.update(Again::DECIDE, approve("ada").key("click-1")).unwrap().unwrap();
    assert_eq!(first.effect, Effect::Late);
    world.pass(seconds(10));
    let entries = &world.query(Again::APPROVALS, ()).requests[0].entries;
    let AnswerResult::Taken(now) = &entries[0].result else { panic!("it was taken") };
    assert_eq!(now.effect, Effect::Counted);
    let repeat = world.update(Again::DECIDE, approve("ada").key("click-1"));
    assert_eq!(repeat, Some(Ok(first)));
    world.update(Again::DECIDE, approve("grace")).unwrap().unwrap();
    assert_eq!(world.result(), Some(true));
    world.check();
}
