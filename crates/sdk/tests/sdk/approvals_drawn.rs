//! Drawn requests, answers and accidents: whatever is said, and in whatever way, nobody has two votes,
//! what is over stays over, and every replay agrees.

use std::collections::BTreeSet;

use abide::{
    Context,
    approval::{Answer, AnswerResult, Approvals, Decision, Effect, Entry, Report, Request, Status},
};
use abide_sdk_macros::workflow;
use proptest::{collection::vec, prelude::*};

use crate::world::{World, seconds};

const PEOPLE: [&str; 5] = ["ada", "grace", "linus", "boss", "mallory"];

/// Asks twice at most, and stays for a while.
#[derive(Default)]
struct Drawn {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Drawn {
    #[run]
    async fn run(
        ctx: &Context<Self>,
        needed: usize,
        timeout: Option<u64>,
        looks: bool,
    ) -> abide::Result<()> {
        ctx.sleep(seconds(2)).await?;
        let mut request = Request::new("drawn")
            .approvers(["ada", "grace", "linus"])
            .requested_by("boss")
            .quorum(needed, 3);
        if let Some(timeout) = timeout {
            request = request.timeout(seconds(timeout));
        }
        let asked = ctx.approval(request.clone()).start();
        if !looks {
            ctx.sleep(seconds(4)).await?;
        }
        if asked.await?.is_timed_out() {
            ctx.sleep(seconds(2)).await?;
            let _ = ctx.approval(request.approver("boss").timeout(seconds(5))).await?;
        }
        ctx.sleep(seconds(5)).await
    }

    #[signal]
    fn more_time(&mut self) {
        let _ = self.approvals.deadline("drawn").extend(seconds(2));
    }
}

#[derive(Clone, Debug)]
enum Happening {
    Pass(u64),
    Update(Answer),
    Signal(Answer),
    MoreTime,
    Evict,
    Cancel,
}

fn answer() -> impl Strategy<Value = Answer> {
    let person = || prop::sample::select(&PEOPLE[..]);
    let decision =
        prop::sample::select(&[Decision::Approve, Decision::Reject, Decision::Escalate][..]);
    let said = prop_oneof![
        8 => (person(), decision).prop_map(|(who, what)| Answer::decide("drawn", who, what)),
        2 => (person(), person()).prop_map(|(who, to)| Answer::delegate("drawn", who, to)),
        1 => person().prop_map(|who| Answer::withdraw("drawn", who)),
    ];
    (said, proptest::option::of(0..2_u32)).prop_map(|(answer, key)| match key {
        Some(key) => answer.key(key.to_string()),
        None => answer,
    })
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1..4_u64).prop_map(Happening::Pass),
        4 => answer().prop_map(Happening::Update),
        4 => answer().prop_map(Happening::Signal),
        1 => Just(Happening::MoreTime),
        2 => Just(Happening::Evict),
        1 => Just(Happening::Cancel),
    ]
}

fn happen(world: &mut World<Drawn>, happening: Happening) {
    match happening {
        Happening::Pass(time) => world.pass(seconds(time)),
        Happening::Update(answer) => drop(world.update(Drawn::DECIDE, answer)),
        Happening::Signal(answer) => world.signal(Drawn::DECISION, answer),
        Happening::MoreTime => world.signal(Drawn::MORE_TIME, ()),
        Happening::Evict => world.evict(),
        Happening::Cancel if !world.run.cancel_requested => world.cancel(),
        Happening::Cancel => {}
    }
}

/// Nobody has two votes, and no vote comes after the decision.
fn check_votes(report: &Report) {
    for standing in &report.requests {
        let effects = standing.entries.iter().filter_map(|entry| match &entry.result {
            AnswerResult::Taken(receipt) => Some((entry.answer.approver(), receipt.effect)),
            _ => None,
        });
        let votes: Vec<_> = effects
            .filter(|(_, effect)| matches!(effect, Effect::Counted | Effect::Decided))
            .collect();
        let voters: BTreeSet<_> = votes.iter().map(|(who, _)| who).collect();
        assert_eq!(voters.len(), votes.len(), "two votes of one: {votes:?}");
        let in_time = |entry: &Entry| match (&entry.result, standing.ended_at) {
            (AnswerResult::Taken(receipt), Some(end)) => {
                receipt.effect == Effect::Late || entry.at <= end
            }
            _ => true,
        };
        assert!(standing.entries.iter().all(in_time), "after the end: {standing:?}");
        let deciding = votes.iter().position(|(_, effect)| *effect == Effect::Decided);
        assert_eq!(deciding.is_some(), standing.status == Status::Decided);
        assert!(deciding.is_none_or(|place| place + 1 == votes.len()), "after the end: {votes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_replay_counts_the_same_votes(
        needed in 1..=3_usize,
        timeout in proptest::option::of(1..6_u64),
        looks: bool,
        happenings in vec(happening(), 1..25),
    ) {
        let mut world = World::<Drawn>::start((needed, timeout, looks));
        let mut over = BTreeSet::new();
        for happening in happenings {
            if !world.run.open() {
                break;
            }
            happen(&mut world, happening);
            prop_assert_eq!(&world.faults, &[]);
            let report = world.query(Drawn::APPROVALS, ());
            check_votes(&report);
            let status = report.requests.first().map(|standing| standing.status);
            prop_assert!(over.is_empty() || over.contains(&status.map(|it| it == Status::Decided)));
            if matches!(status, Some(Status::Decided | Status::Withdrawn)) {
                over.insert(status.map(|it| it == Status::Decided));
            }
        }
        world.check();
    }
}
