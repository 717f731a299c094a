//! A request that waits, as lists and operators see it: one wait with details and a deadline that moves.

use abide::{
    Context, Timestamp,
    approval::{Answer, Approvals, Request},
};
use abide_core::{
    event::{Approval, Guards, WaitDetails},
    list::WaitKind,
};
use abide_sdk_macros::workflow;

use crate::{
    recorded::replay,
    world::{World, seconds},
};

#[derive(Default)]
struct Purchase {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Purchase {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(bool, Timestamp)> {
        let request = Request::new("purchase")
            .about("A coffee machine")
            .data("euros", &420)
            .approver("ada")
            .role("accounting")
            .timeout(seconds(60))
            .not_after(ctx.now().saturating_add(seconds(3_600)))
            .max_extensions(3);
        let verdict = ctx.approval(request).await?;
        Ok((verdict.is_approved(), ctx.now()))
    }

    #[signal]
    fn more_time(&mut self) {
        let _ = self.approvals.deadline("purchase").extend(seconds(30));
    }
}

/// The details of the wait that was opened last.
fn listed(world: &World<Purchase>) -> WaitDetails {
    let [wait] = world.run.shown_waits().try_into().expect("one wait is shown");
    wait.details.unwrap()
}

fn deadline(world: &World<Purchase>) -> Timestamp {
    world.query(Purchase::APPROVALS, ()).requests[0].deadline.unwrap()
}

#[test]
fn a_request_is_one_wait_that_says_what_is_asked_who_may_act_and_how() {
    let world = World::<Purchase>::start(());
    assert_eq!(world.history(), ["RunStarted", "WaitOpened", "TimerStarted"]);
    let WaitDetails { subject, actors, data, approval } = listed(&world);
    assert_eq!(subject, "A coffee machine");
    assert_eq!(actors, ["ada", "accounting"]);
    assert_eq!(data["euros"].data, "420");
    let choices = vec!["approve".into(), "reject".into()];
    let (request, update) = ("purchase".into(), "decide".into());
    assert_eq!(approval, Some(Approval { request, update, choices }));

    let [wait] = &world.run.shown_waits()[..] else { panic!("one wait is shown") };
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Approval, "approval:purchase"));
    assert_eq!(wait.until, world.now().saturating_add(seconds(60)));
    let not_after = Some(world.now().saturating_add(seconds(3_600)));
    assert_eq!(wait.guards, Guards { not_after, max_extensions: Some(3) });
}

#[test]
fn a_decision_leaves_a_short_history() {
    let mut world = World::<Purchase>::start(());
    world.update(Purchase::DECIDE, Answer::approve("purchase", "ada")).unwrap().unwrap();
    assert_eq!(
        world.history()[3..],
        ["UpdateAccepted", "UpdateCompleted", "TimerCancelled", "WaitSatisfied", "RunCompleted"]
    );
    world.check();
}

#[test]
fn a_handler_moves_the_deadline_in_place() {
    let mut world = World::<Purchase>::start(());
    let begun = world.now();
    world.signal(Purchase::MORE_TIME, ());
    assert_eq!(deadline(&world), begun.saturating_add(seconds(90)));
    world.pass(seconds(80));
    world.evict();
    world.pass(seconds(10));
    assert_eq!(world.result(), Some((false, begun.saturating_add(seconds(90)))));
    world.check();
}

#[test]
fn a_client_moves_the_deadline_by_the_timer_that_the_query_tells() {
    let mut world = World::<Purchase>::start(());
    let later = world.now().saturating_add(seconds(500));
    let timer = world.query(Purchase::APPROVALS, ()).requests[0].timer.clone().unwrap();
    world.reschedule(timer.as_str(), later);
    let [wait] = &world.run.shown_waits()[..] else { panic!("one wait is shown") };
    assert_eq!(wait.until, later);
    // The next task sees it, and code builds on it.
    world.signal(Purchase::MORE_TIME, ());
    let extended = later.saturating_add(seconds(30));
    assert_eq!(deadline(&world), extended);
    world.pass(seconds(529));
    assert_eq!(world.result(), None);
    world.pass(seconds(1));
    assert_eq!(world.result(), Some((false, extended)));
    world.check();
}

#[test]
fn after_a_handover_lists_show_who_may_act_and_the_deadline_stays_where_it_was_moved() {
    let mut world = World::<Purchase>::start(());
    let until = world.now().saturating_add(seconds(90));
    world.signal(Purchase::MORE_TIME, ());
    world.pass(seconds(10));
    world.signal(Purchase::DECISION, Answer::delegate("purchase", "ada", "grace"));
    assert_eq!(listed(&world).actors, ["grace", "accounting"]);
    let [wait] = &world.run.shown_waits()[..] else { panic!("one wait is shown") };
    assert_eq!(wait.until, until);
    assert_eq!(world.history().last(), Some(&"WaitDescribed"));
    world.signal(Purchase::MORE_TIME, ());
    assert_eq!(deadline(&world), until.saturating_add(seconds(30)), "it can be moved as before");
    world.signal(Purchase::DECISION, Answer::approve("purchase", "grace"));
    assert!(world.result().unwrap().0);
    world.check();
}

#[test]
fn a_request_that_is_over_has_no_deadline() {
    #[derive(Default)]
    struct Lasting {
        approvals: Approvals,
    }

    #[workflow(approvals = approvals)]
    impl Lasting {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            let _ = ctx.approval(Request::new("a").timeout(seconds(60))).await?;
            ctx.sleep(seconds(9)).await
        }

        #[query]
        fn late(&self) -> usize {
            self.approvals.late("a").count()
        }
    }

    let mut world = World::<Lasting>::start(());
    world.pass(seconds(60));
    let standing = &world.query(Lasting::APPROVALS, ()).requests[0];
    assert_eq!((standing.deadline, &standing.timer), (None, &None));
    world.signal(Lasting::DECISION, Answer::approve("a", "ada"));
    assert_eq!(world.query(Lasting::LATE, ()), 1);
    world.check();
}

/// The same workflow three times: as it was, with other words, and with other rules.
macro_rules! deployed {
    ($name:ident, $subject:literal, $approver:literal) => {
        #[derive(Default)]
        struct $name {
            approvals: Approvals,
        }

        #[workflow(name = "Deployed", approvals = approvals)]
        impl $name {
            #[run]
            async fn run(ctx: &Context<Self>) -> abide::Result<()> {
                let request = Request::new("a").about($subject).approver($approver);
                let _ = ctx.approval(request).await?;
                ctx.sleep(seconds(9)).await
            }
        }
    };
}

deployed!(AsItWas, "A desk", "ada");
deployed!(OtherWords, "A large desk", "ada");
deployed!(OtherRules, "A desk", "grace");

#[test]
fn the_words_of_a_request_may_change_but_rules_by_which_it_was_decided_may_not() {
    let mut world = World::<AsItWas>::start(());
    replay::<OtherRules>(&world.events).unwrap();
    world.update(AsItWas::DECIDE, Answer::approve("a", "ada")).unwrap().unwrap();
    replay::<OtherWords>(&world.events).unwrap();
    let mismatch = replay::<OtherRules>(&world.events).unwrap_err().to_string();
    assert!(mismatch.contains("UpdateAccepted"), "{mismatch}");
    world.check();
}
