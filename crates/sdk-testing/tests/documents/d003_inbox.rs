//! Requests for approval on an engine that crashes: they stay in the list, their deadlines move, and
//! answers that come at a bad moment are not lost.

use abide::{
    ClientError, Worker,
    approval::{Answer, Approvals, Decision, Effect, Refusal, Request, Status},
    event::Fact,
    list::WaitFilter,
    prelude::*,
};
use abide_sdk_testing::replay_history;

use crate::site::{Hold, Site, count, until, until_count};

/// Asks for an hour, then once more, and stays until it is asked to end.
#[derive(Default)]
struct Asking {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Asking {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let request = Request::new("budget")
            .about("A budget")
            .data("euros", &420)
            .approver("ada")
            .timeout(hours(1))
            .max_extensions(2);
        let mut verdict = ctx.approval(request.clone()).await?;
        if verdict.is_timed_out() {
            ctx.receive(Self::ASK_AGAIN).await?;
            verdict = ctx.approval(request.fallback(Decision::Reject)).await?;
        }
        Ok(format!("{:?} by {:?}", verdict.choice(), verdict.decided_by()))
    }

    #[signal]
    fn ask_again();
}

/// Asks two at a time, and looks at the second first.
#[derive(Default)]
struct Both {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Both {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(bool, bool)> {
        let legal = ctx.approval(Request::new("legal").timeout(hours(1))).start();
        let finance = ctx.approval(Request::new("finance")).await?;
        Ok((legal.await?.is_approved(), finance.is_approved()))
    }
}

fn set_up(worker: Worker) -> Worker {
    worker.workflow::<Asking>().workflow::<Both>()
}

fn opened(fact: &Fact) -> bool {
    matches!(fact, Fact::WaitOpened(_))
}

fn timed_out(fact: &Fact) -> bool {
    matches!(fact, Fact::WaitTimedOut(_))
}

fn approve(approver: &str) -> Answer {
    Answer::approve("budget", approver)
}

#[tokio::test]
async fn a_request_is_in_the_list_after_a_crash_and_can_be_answered_from_there() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(set_up);
    let asking = site.client().start::<Asking>("asking", ()).await.unwrap();
    until(&asking, opened).await;
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(set_up);
    let client = site.client();
    let [request] = &client.approvals(WaitFilter::default()).take(10).await.unwrap()[..] else {
        panic!("one request waits");
    };
    assert_eq!((request.request.as_str(), request.subject.as_str()), ("budget", "A budget"));
    assert_eq!((request.since, request.until), (begun, Some(begun + hours(1))));
    assert_eq!(request.data::<u32>("euros").unwrap().unwrap(), 420);
    assert!(request.concerns(&["ada"]) && !request.concerns(&["mallory"]));

    let refused = request.answer(&client, approve("mallory")).await;
    let Err(ClientError::UpdateRejected(failure)) = refused else { panic!("{refused:?}") };
    assert!(matches!(Refusal::of(&failure), Some(Refusal::NotAllowed { .. })));
    let receipt = request.answer(&client, approve("ada")).await.unwrap();
    assert_eq!(receipt.effect, Effect::Decided);
    let asking = client.handle::<Asking>("asking");
    assert_eq!(asking.result().await.unwrap(), "Some(Approve) by [\"ada\"]");
    assert!(client.approvals(WaitFilter::default()).take(10).await.unwrap().is_empty());
    worker.kill().await;
}

#[tokio::test]
async fn the_list_comes_in_pages_the_most_urgent_first() {
    let site = Site::open().await;
    let worker = site.work(set_up);
    let client = site.client();
    for number in 0..5 {
        let run = client.start::<Asking>(format!("asking-{number}"), ()).await.unwrap();
        until(&run, opened).await;
        site.pass(minutes(1));
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let filter = WaitFilter::new();
        let filter = match after.take() {
            Some(position) => filter.after(position),
            None => filter,
        };
        let page = client.approvals(filter).take(2).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.position.clone());
        seen.extend(page.into_iter().map(|request| request.workflow.to_string()));
    }
    assert_eq!(seen, (0..5).map(|number| format!("asking-{number}")).collect::<Vec<_>>());
    worker.kill().await;
}

#[tokio::test]
async fn an_answer_during_downtime_of_all_workers_is_judged_by_the_order_in_history() {
    let mut site = Site::open().await;
    let worker = site.work(set_up);
    let both = site.client().start::<Both>("both", ()).await.unwrap();
    until_count(&both, 2, opened).await;
    worker.kill().await;
    site.pass(hours(1));
    until(&both, |fact| matches!(fact, Fact::TimerFired(_))).await;
    both.signal(Both::DECISION, Answer::approve("legal", "ada")).await.unwrap();
    site.reopen().await;
    let worker = site.work(set_up);
    let both = site.client().handle::<Both>("both");
    let legal = both.query(Both::APPROVALS, ()).await.unwrap().requests.remove(0);
    assert_eq!(legal.status, Status::TimedOut);
    both.update(Both::DECIDE, Answer::approve("finance", "ada")).await.unwrap();
    assert_eq!(both.result().await.unwrap(), (false, true));
    replay_history::<Both>(both.history().await.unwrap()).unwrap();
    worker.kill().await;
}

#[tokio::test]
async fn a_late_answer_survives_a_restart_and_counts_when_it_is_asked_again() {
    let mut site = Site::open().await;
    let worker = site.work(set_up);
    let asking = site.client().start::<Asking>("asking", ()).await.unwrap();
    until(&asking, opened).await;
    site.pass(hours(1));
    until(&asking, timed_out).await;
    let late = asking.update(Asking::DECIDE, approve("ada").key("click-1")).await.unwrap();
    assert_eq!(late.effect, Effect::Late);
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(set_up);
    let asking = site.client().handle::<Asking>("asking");
    let repeat = asking.update(Asking::DECIDE, approve("ada").key("click-1")).await.unwrap();
    assert_eq!(repeat, late);
    asking.signal(Asking::ASK_AGAIN, ()).await.unwrap();
    assert_eq!(asking.result().await.unwrap(), "Some(Approve) by [\"ada\"]");
    let history = asking.history().await.unwrap();
    assert_eq!(count(&history, "WaitOpened"), 1, "an early answer needs no wait");
    replay_history::<Asking>(history).unwrap();
    worker.kill().await;
}

#[tokio::test]
async fn a_client_moves_the_deadline_as_often_as_the_request_allows_over_a_handover() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(set_up);
    let asking = site.client().start::<Asking>("asking", ()).await.unwrap();
    until(&asking, opened).await;
    let wait = asking.waits().await.unwrap().remove(0);
    asking.reschedule_wait(wait.key, begun + hours(2)).await.unwrap();
    site.pass(minutes(90));
    asking.update(Asking::DECIDE, Answer::delegate("budget", "ada", "grace")).await.unwrap();
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(set_up);
    let (client, asking) = (site.client(), site.client().handle::<Asking>("asking"));
    let request = client.approvals(WaitFilter::default()).take(10).await.unwrap().remove(0);
    assert_eq!((request.since, request.until), (begun, Some(begun + hours(2))));
    assert_eq!(request.actors, ["grace"]);

    let wait = asking.waits().await.unwrap().remove(0);
    asking.reschedule_wait(wait.key.clone(), begun + hours(3)).await.unwrap();
    let refused = asking.reschedule_wait(wait.key, begun + hours(4)).await;
    assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
    site.pass(minutes(80));
    asking.update(Asking::DECIDE, approve("grace")).await.unwrap();
    assert_eq!(asking.result().await.unwrap(), "Some(Approve) by [\"grace\"]");
    replay_history::<Asking>(asking.history().await.unwrap()).unwrap();
    worker.kill().await;
}

static HANDOVER: Hold = Hold::new();

/// Stands in the middle of the task in which a request is handed over.
#[derive(Default)]
struct Slow {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Slow {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let budget = Request::new("budget").approver("ada").timeout(hours(1));
        Ok(ctx.approval(budget).await?.is_approved())
    }

    #[signal]
    async fn hand_over(ctx: &Context<Self>) {
        let _ = ctx.decide(Answer::delegate("budget", "ada", "grace"));
        HANDOVER.pass();
    }
}

/// The move was acknowledged, so it holds, whatever code did meanwhile, and after a crash too.
#[tokio::test]
async fn a_move_of_the_deadline_during_a_handover_is_kept() {
    let mut site = Site::open().await;
    let begun = site.now();
    let worker = site.work(|worker| worker.workflow::<Slow>());
    let slow = site.client().start::<Slow>("slow", ()).await.unwrap();
    until(&slow, opened).await;
    let wait = slow.waits().await.unwrap().remove(0);
    slow.signal(Slow::HAND_OVER, ()).await.unwrap();
    HANDOVER.entered().await;
    slow.reschedule_wait(wait.key.clone(), begun + hours(5)).await.unwrap();
    HANDOVER.open();
    until(&slow, |fact| matches!(fact, Fact::WaitDescribed(_))).await;
    worker.kill().await;
    site.reopen().await;
    let worker = site.work(|worker| worker.workflow::<Slow>());
    let slow = site.client().handle::<Slow>("slow");
    let shown = slow.waits().await.unwrap().remove(0);
    assert_eq!((shown.key, shown.since, shown.until), (wait.key, begun, Some(begun + hours(5))));
    assert_eq!(shown.actors, ["grace"]);
    site.pass(hours(4));
    slow.update(Slow::DECIDE, approve("grace")).await.unwrap();
    assert!(slow.result().await.unwrap());
    replay_history::<Slow>(slow.history().await.unwrap()).unwrap();
    worker.kill().await;
}
