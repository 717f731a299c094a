//! People decide: the workflows of the approval pattern, each outcome of each.

use std::time::Duration;

use abide::{
    ClientError,
    approval::{
        Answer, AnswerResult, Approvals, Decision, Effect, Refusal, Request, Status, Verdict,
    },
    prelude::*,
};
use abide_sdk_testing::TestEnvironment;

/// Waits for a decision with a name and a reason, and says how it stands.
#[derive(Default)]
struct Reviewed {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Reviewed {
    #[run]
    async fn run(ctx: &Context<Self>, id: String, timeout: Duration) -> abide::Result<String> {
        let request = Request::new(id.as_str())
            .approvers(["ada", "grace"])
            .choices([Decision::Approve, Decision::Reject, Decision::Escalate])
            .timeout(timeout);
        Ok(match ctx.approval(request).await? {
            Verdict::Decided { choice, votes } => {
                format!("{id}: {choice:?} by {}", votes[0].approver)
            }
            Verdict::TimedOut { .. } => format!("{id}: nobody answered"),
            Verdict::Withdrawn { .. } => format!("{id}: withdrawn"),
        })
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| {
        worker
            .workflow::<Reviewed>()
            .workflow::<Simple>()
            .workflow::<Levels>()
            .workflow::<Escalating>()
            .activity(send_mail)
    };
    env.worker(set_up).await.unwrap();
    env
}

fn input(id: &str) -> (String, Duration) {
    (id.to_owned(), hours(1))
}

#[tokio::test]
async fn a_decision_has_several_outcomes_and_ends_the_wait() {
    let env = environment().await;
    for (decision, expected) in [
        (Decision::Approve, "r: Approve by ada"),
        (Decision::Reject, "r: Reject by ada"),
        (Decision::Escalate, "r: Escalate by ada"),
    ] {
        let id = format!("reviewed-{decision:?}");
        let run = env.client().start::<Reviewed>(id, input("r")).await.unwrap();
        run.signal(Reviewed::DECISION, Answer::decide("r", "ada", decision)).await.unwrap();
        assert_eq!(run.result().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn without_a_decision_the_timeout_ends_the_wait() {
    let env = environment().await;
    let begun = env.now();
    let run = env.client().start::<Reviewed>("reviewed", input("r")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "r: nobody answered");
    assert_eq!(env.now().saturating_since(begun), hours(1));
}

#[tokio::test]
async fn the_status_and_all_attempts_are_told_by_a_query_with_name_reason_and_time() {
    let env = environment().await;
    let run = env.client().start::<Reviewed>("reviewed", input("r")).await.unwrap();
    let stranger = Answer::approve("r", "mallory");
    run.signal(Reviewed::DECISION, stranger).await.unwrap();
    let standing = run.query(Reviewed::APPROVALS, ()).await.unwrap().requests.remove(0);
    assert_eq!(standing.status, Status::Open);
    let answer = Answer::approve("r", "ada").comment("looks right");
    let receipt = run.update(Reviewed::DECIDE, answer).await.unwrap();
    run.result().await.unwrap();

    let standing = run.query(Reviewed::APPROVALS, ()).await.unwrap().requests.remove(0);
    assert_eq!((standing.status, standing.decision.as_deref()), (Status::Decided, Some("approve")));
    let [refused, taken] = &standing.entries[..] else { panic!("two attempts: {standing:?}") };
    assert!(matches!(refused.result, AnswerResult::Refused(Refusal::NotAllowed { .. })));
    assert_eq!((taken.answer.approver(), taken.answer.reason()), ("ada", Some("looks right")));
    assert_eq!(taken.at, receipt.at);
}

#[tokio::test]
async fn an_approver_without_permission_is_refused_at_once() {
    let env = environment().await;
    let run = env.client().start::<Reviewed>("reviewed", input("r")).await.unwrap();
    let refused = run.update(Reviewed::DECIDE, Answer::approve("r", "mallory")).await;
    let Err(ClientError::UpdateRejected(failure)) = refused else { panic!("{refused:?}") };
    assert!(matches!(Refusal::of(&failure), Some(Refusal::NotAllowed { .. })));
    run.update(Reviewed::DECIDE, Answer::approve("r", "ada")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "r: Approve by ada");
}

#[tokio::test]
async fn a_duplicate_does_not_overwrite_an_earlier_decision() {
    let env = environment().await;
    let run = env.client().start::<Levels>("levels", ()).await.unwrap();
    let answer = || Answer::approve("second", "ada").key("click-1");
    run.signal(Levels::DECISION, answer()).await.unwrap();
    run.signal(Levels::DECISION, answer()).await.unwrap();
    run.signal(Levels::DECISION, Answer::reject("second", "ada")).await.unwrap();
    run.signal(Levels::DECISION, Answer::approve("first", "ada")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "third level was silent");
    let second = run.query(Levels::APPROVALS, ()).await.unwrap().requests.remove(1);
    let judged: Vec<_> = second.entries.iter().map(|entry| &entry.result).collect();
    assert!(matches!(
        judged[..],
        [
            AnswerResult::Taken(_),
            AnswerResult::Repeated,
            AnswerResult::Refused(Refusal::AlreadyDecided { .. })
        ]
    ));
}

#[tokio::test]
async fn a_run_whose_request_is_not_needed_any_more_can_be_cancelled() {
    let env = environment().await;
    let run = env.client().start::<Reviewed>("reviewed", input("r")).await.unwrap();
    run.cancel().await.unwrap();
    assert!(matches!(run.result().await, Err(ClientError::RunCancelled(_))));
    assert!(env.client().approvals(Default::default()).take(10).await.unwrap().is_empty());
}

/// A yes with a name, or no answer.
#[derive(Default)]
struct Simple {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Simple {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request = Request::new("simple").timeout(hours(1)).fallback(Decision::Reject);
        let verdict = ctx.approval(request).await?;
        let by = verdict.decided_by().join(", ");
        Ok(if verdict.is_approved() { format!("yes, says {by}") } else { "no, by default".into() })
    }
}

#[tokio::test]
async fn a_simple_request_is_rejected_by_itself_when_time_is_up() {
    let env = environment().await;
    let answered = env.client().start::<Simple>("answered", ()).await.unwrap();
    answered.signal(Simple::DECISION, Answer::approve("simple", "ada")).await.unwrap();
    assert_eq!(answered.result().await.unwrap(), "yes, says ada");
    let silent = env.client().start::<Simple>("silent", ()).await.unwrap();
    assert_eq!(silent.result().await.unwrap(), "no, by default");
}

/// Three levels, one after the other, each with a deadline of its own.
#[derive(Default)]
struct Levels {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Levels {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        for level in ["first", "second", "third"] {
            let verdict = ctx.approval(Request::new(level).timeout(hours(1))).await?;
            if verdict.is_timed_out() {
                return Ok(format!("{level} level was silent"));
            }
            if !verdict.is_approved() {
                return Ok(format!("{level} level said no, by {:?}", verdict.decided_by()));
            }
        }
        Ok("all levels said yes".into())
    }
}

#[tokio::test]
async fn levels_decide_one_after_the_other_whenever_their_answers_came() {
    let env = environment().await;
    let run = env.client().start::<Levels>("levels", ()).await.unwrap();
    for level in ["third", "first", "second"] {
        run.signal(Levels::DECISION, Answer::approve(level, "ada")).await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), "all levels said yes");
}

#[tokio::test]
async fn a_level_that_says_no_ends_the_chain() {
    let env = environment().await;
    let run = env.client().start::<Levels>("levels", ()).await.unwrap();
    run.signal(Levels::DECISION, Answer::approve("first", "ada")).await.unwrap();
    run.signal(Levels::DECISION, Answer::reject("second", "grace")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "second level said no, by [\"grace\"]");
}

#[tokio::test]
async fn a_level_that_is_silent_ends_the_chain_after_its_own_time() {
    let env = environment().await;
    let begun = env.now();
    let run = env.client().start::<Levels>("levels", ()).await.unwrap();
    run.update(Levels::DECIDE, Answer::approve("first", "ada")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "second level was silent");
    assert_eq!(env.now().saturating_since(begun), hours(1));
}

#[activity]
async fn send_mail(_to: String) {}

/// Also asks a manager, if there is no answer within an hour.
#[derive(Default)]
struct Escalating {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Escalating {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request = Request::new("expense").approver("ada").timeout(hours(1));
        let mut verdict = ctx.approval(request.clone()).await?;
        let mut note = "";
        if verdict.is_timed_out() {
            note = ", escalated";
            let mail = ctx.activity(send_mail, "manager");
            mail.start_to_close(seconds(10)).await?;
            let request = request.approver("manager").timeout(hours(24));
            verdict = ctx.approval(request).await?;
        }
        Ok(match verdict.choice() {
            Some(choice) => format!("{choice:?} by {}{note}", verdict.decided_by().join(", ")),
            None => "nobody answered, escalated".into(),
        })
    }
}

#[tokio::test]
async fn an_escalation_gives_a_manager_more_time() {
    let env = environment().await;
    let run = env.client().start::<Escalating>("escalating", ()).await.unwrap();
    env.skip(hours(2)).await;
    let refused = run.update(Escalating::DECIDE, Answer::approve("expense", "mallory")).await;
    assert!(matches!(refused, Err(ClientError::UpdateRejected(_))));
    let receipt = run.update(Escalating::DECIDE, Answer::approve("expense", "manager")).await;
    assert_eq!(receipt.unwrap().effect, Effect::Decided);
    assert_eq!(run.result().await.unwrap(), "Approve by manager, escalated");
}

#[tokio::test]
async fn an_escalation_ends_by_its_own_timeout() {
    let env = environment().await;
    let begun = env.now();
    let run = env.client().start::<Escalating>("escalating", ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "nobody answered, escalated");
    assert_eq!(env.now().saturating_since(begun), hours(25));
}
