//! Requests whose future nobody looks at: they end when their time is up, whatever the run does
//! meanwhile, and lists show who may act.

use abide::{
    Context,
    approval::{Answer, Approvals, Effect, Refusal, Request, Status, Verdict},
};
use abide_core::run::ShownWait;
use abide_sdk_macros::workflow;

use crate::{
    approvals::told,
    world::{World, seconds},
};

/// Asks two departments at a time, and looks at finance first.
#[derive(Default)]
struct Contract {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Contract {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(String, String)> {
        let legal = Request::new("legal").approver("ada").timeout(seconds(60)).max_extensions(3);
        let legal = ctx.approval(legal).start();
        let finance = ctx.approval(Request::new("finance")).await;
        let legal = legal.await;
        if ctx.is_cancel_requested() {
            ctx.sleep(seconds(9)).await?;
        }
        Ok((told(&finance?), told(&legal?)))
    }

    #[signal]
    fn more_time(&mut self) {
        self.extend();
    }

    /// Hands over, and asks for more time at the same moment.
    #[signal]
    async fn hand_over(ctx: &Context<Self>, to: String) {
        let _ = ctx.decide(Answer::delegate("legal", "ada", to));
        ctx.write(Self::extend);
    }
}

impl Contract {
    fn extend(&mut self) {
        let _ = self.approvals.deadline("legal").extend(seconds(30));
    }
}

fn approve(request: &str, approver: &str) -> Answer {
    Answer::approve(request, approver)
}

fn status(world: &World<Contract>) -> Status {
    world.query(Contract::APPROVALS, ()).requests[0].status
}

/// The wait that asks the legal department, as lists show it.
fn listed(world: &World<Contract>) -> ShownWait {
    let mut waits = world.run.shown_waits();
    waits.retain(|wait| wait.name == "approval:legal");
    assert_eq!(waits.len(), 1);
    waits.remove(0)
}

/// No worker is there from the request for more time until after the first deadline.
#[test]
fn more_time_asked_for_before_the_firing_keeps_the_request_open() {
    let mut world = World::<Contract>::start(());
    world.signal_raw("more_time", Vec::new());
    world.fire_unseen(seconds(60));
    world.signal_raw("more_time", Vec::new());
    world.work();
    assert_eq!(status(&world), Status::Open);
    let until = world.now().saturating_add(seconds(60));
    assert_eq!(listed(&world).until, until);
    assert_eq!(world.query(Contract::APPROVALS, ()).requests[0].deadline, Some(until));
    let told = world.update(Contract::DECIDE, approve("legal", "ada")).unwrap().unwrap();
    assert_eq!(told.effect, Effect::Decided);
    world.check();
}

#[test]
fn a_request_that_nobody_looks_at_takes_no_decision_after_its_deadline() {
    let mut world = World::<Contract>::start(());
    world.pass(seconds(60));
    assert_eq!(status(&world), Status::TimedOut);
    let late = world.update(Contract::DECIDE, approve("legal", "ada")).unwrap().unwrap();
    assert_eq!(late.effect, Effect::Late);
    world.signal(Contract::DECISION, approve("finance", "grace"));
    let (finance, legal) = world.result().unwrap();
    assert_eq!(finance, "Approve by grace");
    assert_eq!(legal, "timed out with 0 votes, so None");
    world.check();
}

#[test]
fn the_order_in_history_decides_also_where_nobody_looks() {
    let mut world = World::<Contract>::start(());
    world.fire_unseen(seconds(60));
    world.signal(Contract::DECISION, approve("legal", "ada"));
    assert_eq!(status(&world), Status::TimedOut);
    world.check();
}

#[test]
fn a_request_that_nobody_looks_at_is_withdrawn_when_the_run_is_cancelled() {
    let mut world = World::<Contract>::start(());
    world.cancel();
    assert_eq!(status(&world), Status::Withdrawn);
    assert_eq!(world.update(Contract::DECIDE, approve("legal", "ada")), None);
    assert!(matches!(Refusal::of(&world.rejected[0].clone().into()), Some(Refusal::Closed { .. })));
    world.pass(seconds(9));
    assert_eq!(world.history().last(), Some(&"RunCancelled"));
    world.check();
}

#[test]
fn two_handovers_in_one_task_leave_one_wait_with_its_deadline() {
    let mut world = World::<Contract>::start(());
    let until = world.now().saturating_add(seconds(60));
    for (from, to) in [("ada", "grace"), ("grace", "linus")] {
        let handover = Answer::delegate("legal", from, to);
        world.signal_raw("decision", Contract::DECISION.encode(&handover).unwrap());
    }
    world.work();
    assert_eq!(listed(&world).until, until);
    assert_eq!(world.query(Contract::APPROVALS, ()).requests[0].approvers, ["linus"]);
    world.evict();
    world.pass(seconds(60));
    assert_eq!(status(&world), Status::TimedOut);
    world.check();
}

#[test]
fn an_extension_at_the_moment_of_a_handover_is_kept() {
    let mut world = World::<Contract>::start(());
    let until = world.now().saturating_add(seconds(90));
    world.signal(Contract::HAND_OVER, "grace");
    assert_eq!(listed(&world).until, until);
    world.signal(Contract::MORE_TIME, ());
    assert_eq!(listed(&world).until, until.saturating_add(seconds(30)));
    world.check();
}

#[test]
fn a_handover_gives_clients_no_more_moves_of_the_deadline() {
    let mut world = World::<Contract>::start(());
    let begun = world.now();
    let move_to = |world: &mut World<Contract>, after| {
        let timer = world.query(Contract::APPROVALS, ()).requests[0].timer.clone().unwrap();
        world.reschedule(timer.as_str(), begun.saturating_add(seconds(after)));
    };
    assert_eq!(listed(&world).guards.max_extensions, Some(3));
    move_to(&mut world, 100);
    move_to(&mut world, 200);
    world.signal(Contract::DECISION, Answer::delegate("legal", "ada", "grace"));
    assert_eq!((listed(&world).moves, listed(&world).guards.max_extensions), (2, Some(3)));
    assert_eq!(listed(&world).until, begun.saturating_add(seconds(200)));
    move_to(&mut world, 300);
    world.signal(Contract::DECISION, Answer::delegate("legal", "grace", "linus"));
    assert_eq!((listed(&world).moves, listed(&world).guards.max_extensions), (3, Some(3)));
    world.check();
}

#[test]
fn after_a_handover_the_wait_says_since_when_it_was_asked() {
    let mut world = World::<Contract>::start(());
    let begun = world.now();
    world.pass(seconds(10));
    world.signal(Contract::DECISION, Answer::delegate("legal", "ada", "grace"));
    assert_eq!(listed(&world).since, begun);
    assert_eq!(world.query(Contract::APPROVALS, ()).requests[0].asked_at, begun);
    world.check();
}

#[test]
fn a_request_open_to_all_stays_so_when_somebody_hands_over() {
    let mut world = World::<Contract>::start(());
    world.signal(Contract::DECISION, Answer::delegate("finance", "ada", "grace"));
    let opened = world.history().iter().filter(|name| **name == "WaitOpened").count();
    assert_eq!(opened, 2, "what lists show is still right");
    let standing = &world.query(Contract::APPROVALS, ()).requests[1];
    assert!(standing.approvers.is_empty());
    world.signal(Contract::DECISION, approve("finance", "linus"));
    assert_eq!(world.query(Contract::APPROVALS, ()).requests[1].status, Status::Decided);
    world.check();
}

/// Asks the same thing twice, and acts on the one that could not be asked.
#[derive(Default)]
struct Twice {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Twice {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<bool> {
        let request = || Request::new("a").timeout(seconds(60));
        let first = ctx.approval(request()).start();
        let second = ctx.approval(request()).start();
        assert!(first.deadline().is_open() && !second.deadline().is_open());
        assert!(matches!(second.withdraw("not mine"), Err(Refusal::Closed { .. })));
        drop(second);
        Ok(matches!(first.await?, Verdict::Decided { .. }))
    }
}

#[test]
fn a_request_that_could_not_be_asked_does_not_act_on_another() {
    let mut world = World::<Twice>::start(());
    world.signal(Twice::DECISION, approve("a", "ada"));
    assert_eq!(world.result(), Some(true));
    world.check();
}

/// Drops many requests, one after the other.
#[derive(Default)]
struct Fickle {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Fickle {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        for number in 0..3 {
            let asked = ctx.approval(Request::new(format!("a-{number}"))).start();
            ctx.sleep(seconds(1)).await?;
            drop(asked);
        }
        ctx.sleep(seconds(9)).await
    }
}

#[test]
fn a_request_that_is_dropped_leaves_the_lists() {
    let mut world = World::<Fickle>::start(());
    world.pass(seconds(3));
    let requests = world.query(Fickle::APPROVALS, ()).requests;
    assert!(requests.iter().all(|standing| standing.status == Status::Withdrawn));
    assert_eq!(world.run.shown_waits().len(), 1, "the last sleep");
    world.check();
}
