//! Requests that are asked and decided: by update, by signal, with typed choices, in several levels.

use abide::{
    Context, Timestamp,
    approval::{
        Answer, AnswerChannel, AnswerResult, Approvals, Effect, Refusal, Request, Status, Verdict,
    },
};
use abide_core::payload::Payload;
use abide_sdk_macros::workflow;
use serde::{Deserialize, Serialize};

use crate::{
    approvals::{Expense, Terms},
    world::{World, seconds},
};

#[test]
fn a_decision_by_update_ends_the_wait_and_answers_at_once() {
    let mut world = World::ask(Terms::of(&["ada"]));
    let receipt = world.answer_by_update(Answer::approve("expense", "ada")).unwrap();
    assert_eq!((receipt.request.as_str(), receipt.effect), ("expense", Effect::Decided));
    assert_eq!(receipt.at, world.now());
    assert_eq!(world.result().unwrap(), "Approve by ada");
    world.check();
}

#[test]
fn a_decision_by_signal_ends_the_wait() {
    let mut world = World::ask(Terms::of(&["ada"]));
    world.signal(Expense::DECISION, Answer::reject("expense", "ada"));
    assert_eq!(world.result().unwrap(), "Reject by ada");
    world.check();
}

/// What the command line sends.
#[test]
fn a_decision_as_plain_json_is_understood() {
    let mut world = World::ask(Terms { roles: vec!["boss".into()], ..Terms::default() });
    let json = r#"{"request": "expense", "decision": "approve", "approver": "ada",
        "roles": ["boss"], "comment": "fine", "key": null}"#;
    world.update_raw("decide", vec![Payload::new(json)]);
    assert_eq!(world.result().unwrap(), "Approve by ada");
    world.check();
}

#[test]
fn every_kind_of_answer_survives_json() {
    for answer in [
        Answer::approve("a", "ada").role("boss").comment("fine").key("k"),
        Answer::delegate("a", "ada", "grace"),
        Answer::withdraw("a", "linus"),
    ] {
        let json = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer, "{json}");
    }
}

#[test]
fn a_decision_carries_approver_comment_and_the_time_of_the_run() {
    let mut world = World::ask(Terms { then: Some(seconds(1)), ..Terms::of(&["ada"]) });
    world.pass(seconds(30));
    world.answer_by_update(Answer::approve("expense", "ada").comment("fine")).unwrap();
    let report = world.query(Expense::APPROVALS, ());
    let entry = &report.requests[0].entries[0];
    assert_eq!((entry.at, entry.channel), (world.now(), AnswerChannel::Update));
    assert_eq!(entry.answer.approver(), "ada");
    assert_eq!(entry.answer.reason(), Some("fine"));
    assert_eq!(entry.answer.decision(), Some("approve"));
    assert_eq!(report.requests[0].status, Status::Decided);
    assert_eq!(report.requests[0].decision.as_deref(), Some("approve"));
    world.check();
}

#[test]
fn escalate_is_a_decision_where_it_is_offered() {
    let answer = || Answer::decide("expense", "ada", abide::approval::Decision::Escalate);
    let mut world = World::ask(Terms { escalates: true, ..Terms::of(&["ada"]) });
    world.answer_by_update(answer()).unwrap();
    assert_eq!(world.result().unwrap(), "Escalate by ada");
    world.check();

    let mut world = World::ask(Terms::of(&["ada"]));
    let refusal = world.answer_by_update(answer()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "no such decision: request expense accepts approve, reject, not escalate"
    );
}

/// Choices of the user's own, one with data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Review {
    Accept,
    Shorten { to: u32 },
}

#[derive(Default)]
struct Article {
    reviews: Approvals,
}

#[workflow(approvals = reviews)]
impl Article {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Review> {
        let choices = [Review::Accept, Review::Shorten { to: 0 }];
        let verdict = ctx.approval(Request::new("review").choices(choices)).await?;
        verdict.choice().cloned().ok_or_else(|| abide::Error::new("nobody decided"))
    }
}

#[test]
fn choices_of_the_users_own_are_typed_and_may_hold_data() {
    let mut world = World::<Article>::start(());
    let shorten = Answer::choose("review", "ada", &Review::Shorten { to: 900 }).unwrap();
    assert_eq!(shorten.decision(), Some("shorten"));
    assert_eq!(world.update(Article::DECIDE, shorten).unwrap().unwrap().effect, Effect::Decided);
    assert_eq!(world.result(), Some(Review::Shorten { to: 900 }));
    world.check();
}

#[test]
fn a_choice_that_cannot_be_read_is_refused_and_says_why() {
    let mut world = World::<Article>::start(());
    for decision in [r#"{"shorten": {"to": "x"}}"#, r#""shorten""#, "7"] {
        let json = format!(r#"{{"request": "review", "decision": {decision}, "approver": "ada"}}"#);
        world.update_raw("decide", vec![Payload::new(json)]);
    }
    let refusals: Vec<_> = world
        .rejected
        .iter()
        .map(|failure| Refusal::of(&failure.clone().into()).unwrap().to_string())
        .collect();
    assert!(refusals[0].starts_with("no such decision: shorten of request review cannot be read"));
    assert!(refusals[1].starts_with("no such decision: shorten of request review cannot be read"));
    assert_eq!(refusals[2], "no such decision: request review accepts accept, shorten, not 7");
    assert_eq!(world.result(), None);
    world.check();
}

/// Levels in order: a loop.
#[derive(Default)]
struct Levels {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Levels {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        for level in ["lead", "head", "board"] {
            let request = Request::new(level).approver(level).timeout(seconds(60));
            if !ctx.approval(request).await?.is_approved() {
                return Ok(format!("stopped at {level}"));
            }
        }
        Ok("approved by all".into())
    }
}

#[test]
fn several_levels_decide_in_order() {
    let mut world = World::<Levels>::start(());
    for level in ["lead", "head", "board"] {
        world.update(Levels::DECIDE, Answer::approve(level, level)).unwrap().unwrap();
    }
    assert_eq!(world.result().unwrap(), "approved by all");
    world.check();
}

#[test]
fn a_level_that_rejects_or_stays_silent_ends_the_order() {
    let mut world = World::<Levels>::start(());
    world.signal(Levels::DECISION, Answer::approve("lead", "lead"));
    world.signal(Levels::DECISION, Answer::reject("head", "head"));
    assert_eq!(world.result().unwrap(), "stopped at head");
    world.check();

    let mut world = World::<Levels>::start(());
    world.pass(seconds(60));
    assert_eq!(world.result().unwrap(), "stopped at lead");
    world.check();
}

#[test]
fn an_update_to_a_level_that_was_not_asked_is_no_such_request() {
    let mut world = World::<Levels>::start(());
    assert_eq!(world.update(Levels::DECIDE, Answer::approve("board", "board")), None);
    let refusal = Refusal::of(&world.rejected[0].clone().into()).unwrap();
    assert_eq!(refusal.to_string(), "no such request: board; open: lead");
    assert_eq!(
        refusal,
        Refusal::NoSuchRequest { request: "board".into(), open: vec!["lead".into()] }
    );
    world.check();
}

#[test]
fn a_signal_that_comes_before_its_request_is_kept_and_judged_then() {
    let mut world = World::<Levels>::start(());
    world.signal(Levels::DECISION, Answer::approve("head", "mallory"));
    world.signal(Levels::DECISION, Answer::approve("head", "head"));
    let report = world.query(Levels::APPROVALS, ());
    assert_eq!(report.early.len(), 2);
    assert_eq!(report.early[0].result, AnswerResult::Early);
    world.signal(Levels::DECISION, Answer::approve("lead", "lead"));
    let report = world.query(Levels::APPROVALS, ());
    assert_eq!(report.early, []);
    assert_eq!(report.requests[1].status, Status::Decided);
    let judged: Vec<_> = report.requests[1].entries.iter().map(|it| &it.result).collect();
    assert!(matches!(judged[0], AnswerResult::Refused(Refusal::NotAllowed { .. })));
    assert!(matches!(judged[1], AnswerResult::Taken(_)));
    assert_eq!(report.requests[2].status, Status::Open);
    world.check();
}

/// Two requests at a time.
#[derive(Default)]
struct Both {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Both {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(bool, bool)> {
        let legal = ctx.approval(Request::new("legal")).start();
        let finance = ctx.approval(Request::new("finance")).start();
        Ok((finance.await?.is_approved(), legal.await?.is_approved()))
    }
}

#[test]
fn several_requests_are_open_at_a_time() {
    let mut world = World::<Both>::start(());
    world.signal(Both::DECISION, Answer::approve("legal", "ada"));
    world.evict();
    world.signal(Both::DECISION, Answer::reject("finance", "ada"));
    assert_eq!(world.result(), Some((false, true)));
    world.check();
}

/// A choice that can be written and not read.
#[derive(Clone, Serialize, Deserialize)]
enum Half {
    Whole,
    #[serde(skip_deserializing)]
    Unreadable,
}

/// Asks something that cannot be asked.
#[derive(Default)]
struct Wrong {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Wrong {
    #[run]
    async fn run(ctx: &Context<Self>, case: u32) -> abide::Result<()> {
        let verdict: Verdict = match case {
            0 => ctx.approval(Request::new("two words")).await?,
            1 => ctx.approval(Request::new("a").approvers(["ada"]).quorum(2, 2)).await?,
            2 => ctx.approval(Request::new("a").quorum(3, 2)).await?,
            3 => {
                ctx.approval(Request::new("a").fallback(abide::approval::Decision::Reject)).await?
            }
            4 => {
                let _first = ctx.approval(Request::new("a")).start();
                ctx.approval(Request::new("a")).await?
            }
            5 => {
                let none: [abide::approval::Decision; 0] = [];
                ctx.approval(Request::new("a").choices(none)).await?
            }
            6 => {
                let choices = [Half::Whole, Half::Unreadable];
                let request = Request::new("a").choices(choices).timeout(seconds(60));
                return ctx.approval(request.fallback(Half::Unreadable)).await.map(|_| ());
            }
            7 => ctx.approval(Request::new("a").approver("n".repeat(257))).await?,
            8 => ctx.approval(Request::new("a").about("s".repeat(1 << 21))).await?,
            _ => {
                let numbered = Request::new("a").choices([1, 2]);
                return ctx.approval(numbered).await.map(|_| ());
            }
        };
        assert!(!verdict.is_timed_out());
        Ok(())
    }
}

#[test]
fn a_request_that_cannot_be_asked_fails_and_says_why() {
    let reasons = [
        "\"two words\" is not a valid request id: use 1 to 119 letters, digits and . _ - : characters",
        "request a counts 2 votes, but only 1 may vote",
        "request a cannot have 3 votes of 2",
        "request a has a fallback and no deadline: give it a timeout",
        "request id a was already used in this run: choose another id",
        "request a offers no choices",
        "request a falls back to Unreadable, which cannot be read: unknown variant `Unreadable`, \
         expected `Whole`",
        "request a has an approver of more than 256 bytes",
        "request a shows 2097152 bytes of at most 32768: show a link instead",
        "request a: 2 is not a choice: it must be a string or a variant of an enum",
    ];
    for (case, reason) in (0..).zip(reasons) {
        let world = World::<Wrong>::start(case);
        assert_eq!(world.failure().unwrap().message, reason);
        world.check();
    }
}

/// An update of the user's own, which leads to the same place.
#[derive(Default)]
struct OwnUpdate {
    approvals: Approvals,
}

impl abide::approval::Approving for OwnUpdate {
    const UPDATE: &'static str = "sign";

    fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    fn approvals_mut(&mut self) -> &mut Approvals {
        &mut self.approvals
    }
}

#[workflow]
impl OwnUpdate {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        Ok(ctx.approval(Request::new("contract").approver("ada")).await?.is_approved())
    }

    #[update(validate = check_sign)]
    async fn sign(ctx: &Context<Self>, answer: Answer) -> Result<Timestamp, Refusal> {
        Ok(ctx.decide(answer)?.at)
    }

    fn check_sign(&self, answer: &Answer) -> Result<(), Refusal> {
        self.approvals.check(answer)
    }
}

#[test]
fn an_update_of_the_users_own_may_take_decisions_and_refuses_them_as_typed() {
    let mut world = World::<OwnUpdate>::start(());
    assert_eq!(world.update(OwnUpdate::SIGN, Answer::approve("contract", "mallory")), None);
    let refusal = Refusal::of(&world.rejected[0].clone().into()).unwrap();
    assert!(matches!(refusal, Refusal::NotAllowed { .. }));
    let signed = world.update(OwnUpdate::SIGN, Answer::approve("contract", "ada"));
    assert_eq!(signed, Some(Ok(world.now())));
    assert_eq!(world.result(), Some(true));
    world.check();
}

/// Fails in the middle of asking.
#[derive(Default)]
struct Clumsy {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Clumsy {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let _open = ctx.approval(Request::new("a")).start();
        panic!("clumsy");
    }
}

#[test]
fn a_fault_names_the_place_where_the_workflow_asked() {
    let world = World::<Clumsy>::start(());
    let message = &world.faults[0].failure.message;
    assert!(message.contains("approvals_asked.rs:"), "{message}");
}
