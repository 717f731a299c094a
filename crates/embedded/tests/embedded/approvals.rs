//! Approvals on the whole engine: listed over all runs, answered from the list, kept over restarts.

use abide::{
    ClientError, Context,
    approval::{Answer, Approvals, Decision, Effect, Refusal, Request, Status, WaitingRequest},
    list::WaitFilter,
};
use abide_core::event::Fact;
use abide_embedded::Embedded;
use abide_sdk::workflow;

use crate::world::{Running, advance, manual_clock, seconds, until};

#[derive(Default)]
struct Purchase {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Purchase {
    #[run]
    async fn run(ctx: &Context<Self>, euros: u32) -> abide::Result<Option<Decision>> {
        let request = Request::new("purchase")
            .about(format!("Spend {euros} euros?"))
            .data("euros", &euros)
            .approver("ada")
            .role("accounting")
            .timeout(seconds(u64::from(euros)));
        let verdict = ctx.approval(request).await?;
        if verdict.is_timed_out() {
            ctx.receive(Self::CLOSE).await?;
        }
        Ok(verdict.choice().copied())
    }

    #[signal]
    fn close();
}

async fn inbox(engine: &Embedded) -> Vec<WaitingRequest> {
    engine.client().approvals(WaitFilter::default()).take(100).await.unwrap()
}

fn opened(fact: &Fact) -> bool {
    matches!(fact, Fact::WaitOpened(_))
}

#[tokio::test]
async fn open_requests_of_all_runs_are_listed_the_most_urgent_first_and_answered_from_the_list() {
    let engine = Embedded::builder().clock(manual_clock()).in_memory().await;
    let running = Running::start(engine.worker().workflow::<Purchase>());
    let client = engine.client();
    let mut handles = Vec::new();
    for euros in [3000, 1000, 2000] {
        let id = format!("purchase-{euros}");
        let handle = client.start::<Purchase>(id, euros).await.unwrap();
        until(&handle, opened).await;
        handles.push(handle);
    }
    let listed = inbox(&engine).await;
    let subjects: Vec<_> = listed.iter().map(|request| request.subject.as_str()).collect();
    assert_eq!(subjects, ["Spend 1000 euros?", "Spend 2000 euros?", "Spend 3000 euros?"]);
    let first = &listed[0];
    assert_eq!((first.workflow_type.as_str(), first.request.as_str()), ("Purchase", "purchase"));
    assert_eq!(
        (&*first.actors, &*first.choices),
        (
            &["ada".to_owned(), "accounting".to_owned()][..],
            &["approve".to_owned(), "reject".to_owned()][..],
        )
    );
    assert_eq!(first.data::<u32>("euros").unwrap().unwrap(), 1000);
    assert_eq!(first.until, Some(first.since.saturating_add(seconds(1000))));
    assert!(first.concerns(&["accounting"]) && !first.concerns(&["mallory"]));

    let page = WaitFilter::new().after(first.position.clone());
    assert_eq!(client.approvals(page).take(1).await.unwrap(), listed[1..2]);

    for request in &listed {
        let receipt = request.answer(&client, Answer::reject("purchase", "ada")).await.unwrap();
        assert_eq!(receipt.effect, Effect::Decided);
    }
    for handle in &handles {
        assert_eq!(handle.result().await.unwrap(), Some(Decision::Reject));
    }
    assert_eq!(inbox(&engine).await, []);
    running.stop().await;
}

#[tokio::test]
async fn a_request_outlives_the_engine_and_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("abide.db");
    for round in 0..3 {
        let engine = Embedded::open(&path).await.unwrap();
        let client = engine.client();
        let running = Running::start(engine.worker().workflow::<Purchase>());
        let handle = match round {
            0 => client.start::<Purchase>("desk", 420).await.unwrap(),
            _ => client.handle::<Purchase>("desk"),
        };
        until(&handle, opened).await;
        assert_eq!(inbox(&engine).await.len(), 1);
        match round {
            0 => {}
            // The list follows a handover, and keeps it.
            1 => {
                let handover = Answer::delegate("purchase", "ada", "grace");
                handle.update(Purchase::DECIDE, handover).await.unwrap();
                assert_eq!(inbox(&engine).await[0].actors, ["grace", "accounting"]);
            }
            _ => {
                assert_eq!(inbox(&engine).await[0].actors, ["grace", "accounting"]);
                let answer = Answer::approve("purchase", "grace");
                handle.update(Purchase::DECIDE, answer).await.unwrap();
                assert_eq!(handle.result().await.unwrap(), Some(Decision::Approve));
            }
        }
        running.stop().await;
        engine.shutdown().await;
    }
}

#[tokio::test]
async fn a_refusal_reaches_the_approver_as_a_type() {
    let engine = Embedded::in_memory().await;
    let running = Running::start(engine.worker().workflow::<Purchase>());
    let handle = engine.client().start::<Purchase>("desk", 420).await.unwrap();
    let refused = handle.update(Purchase::DECIDE, Answer::approve("purchase", "mallory")).await;
    let Err(ClientError::UpdateRejected(failure)) = refused else { panic!("{refused:?}") };
    let (request, approver) = ("purchase".into(), "mallory".into());
    assert_eq!(Refusal::of(&failure), Some(Refusal::NotAllowed { request, approver }));
    running.stop().await;
}

#[tokio::test]
async fn after_the_deadline_an_answer_is_late_and_a_repeat_of_it_is_told_the_same() {
    let clock = manual_clock();
    let engine = Embedded::builder().clock(clock.clone()).in_memory().await;
    let running = Running::start(engine.worker().workflow::<Purchase>());
    let handle = engine.client().start::<Purchase>("desk", 420).await.unwrap();
    until(&handle, opened).await;
    advance(&clock, seconds(420));
    until(&handle, |fact| matches!(fact, Fact::WaitTimedOut(_))).await;
    assert_eq!(inbox(&engine).await, []);

    let answer = Answer::approve("purchase", "ada").key("click-1");
    let first = handle.update(Purchase::DECIDE, answer.clone()).await.unwrap();
    assert_eq!(first.effect, Effect::Late);
    advance(&clock, seconds(1));
    assert_eq!(handle.update(Purchase::DECIDE, answer).await.unwrap(), first);

    handle.signal(Purchase::CLOSE, ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), None);
    let standing = &handle.query(Purchase::APPROVALS, ()).await.unwrap().requests[0];
    assert_eq!((standing.status, standing.entries.len()), (Status::TimedOut, 2));
    running.stop().await;
}
