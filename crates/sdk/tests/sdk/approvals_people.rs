//! Who may decide: names, roles, quorums, handovers, and what the others are told.

use abide::approval::{Answer, AnswerResult, Effect, Refusal, Status};

use crate::{
    approvals::{Expense, Terms},
    world::{World, seconds},
};

fn roles(roles: &[&str]) -> Terms {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    Terms { roles, ..Terms::default() }
}

fn quorum(needed: usize, approvers: &[&str]) -> Terms {
    Terms { quorum: Some((needed, approvers.len())), ..Terms::of(approvers) }
}

fn approve(name: &str) -> Answer {
    Answer::approve("expense", name)
}

fn reject(name: &str) -> Answer {
    Answer::reject("expense", name)
}

#[test]
fn without_names_and_roles_anyone_may_decide_but_nobody_without_a_name() {
    let mut world = World::ask(Terms::default());
    let refusal = world.answer_by_update(approve("")).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAllowed { .. }));
    world.answer_by_update(approve("somebody")).unwrap();
    assert_eq!(world.result().unwrap(), "Approve by somebody");
    world.check();
}

#[test]
fn whoever_is_not_allowed_is_told_so_and_history_stays_as_it_was() {
    let mut world = World::ask(Terms::of(&["ada"]));
    let before = world.history().len();
    let refusal = world.answer_by_update(approve("mallory")).unwrap_err();
    assert_eq!(refusal.to_string(), "not allowed: \"mallory\" may not act on request expense");
    assert_eq!(world.history().len(), before);
    world.check();
}

#[test]
fn a_role_is_enough() {
    let mut world = World::ask(roles(&["accounting"]));
    let refusal = world.answer_by_update(approve("ada").role("sales")).unwrap_err();
    assert!(matches!(refusal, Refusal::NotAllowed { .. }));
    world.answer_by_update(approve("ada").role("sales").role("accounting")).unwrap();
    assert_eq!(world.result().unwrap(), "Approve by ada");
    world.check();
}

#[test]
fn names_and_roles_may_be_mixed() {
    let terms = || Terms { approvers: vec!["grace".into()], ..roles(&["accounting"]) };
    let mut world = World::ask(terms());
    world.answer_by_update(approve("grace")).unwrap();
    assert!(world.result().is_some());
    let mut world = World::ask(terms());
    world.answer_by_update(approve("ada").role("accounting")).unwrap();
    assert!(world.result().is_some());
}

#[test]
fn two_of_three_decide() {
    let mut world = World::ask(quorum(2, &["ada", "grace", "linus"]));
    assert_eq!(world.answer_by_update(approve("ada")).unwrap().effect, Effect::Counted);
    assert_eq!(world.answer_by_update(reject("linus")).unwrap().effect, Effect::Counted);
    world.evict();
    assert_eq!(world.answer_by_update(approve("grace")).unwrap().effect, Effect::Decided);
    assert_eq!(world.result().unwrap(), "Approve by ada, grace");
    world.check();
}

#[test]
fn rejections_that_make_the_quorum_impossible_decide_early() {
    let mut world = World::ask(quorum(2, &["ada", "grace", "linus"]));
    assert_eq!(world.answer_by_update(reject("ada")).unwrap().effect, Effect::Counted);
    assert_eq!(world.answer_by_update(reject("grace")).unwrap().effect, Effect::Decided);
    assert_eq!(world.result().unwrap(), "Reject by ada, grace");
    world.check();
}

#[test]
fn where_all_must_agree_one_rejection_decides() {
    let mut world = World::ask(quorum(3, &["ada", "grace", "linus"]));
    world.answer_by_update(approve("ada")).unwrap();
    world.answer_by_update(reject("grace")).unwrap();
    assert_eq!(world.result().unwrap(), "Reject by grace");
    world.check();
}

#[test]
fn of_several_other_choices_the_one_with_most_votes_holds() {
    let terms = Terms { escalates: true, ..quorum(3, &["a", "b", "c", "d", "e"]) };
    let mut world = World::ask(terms);
    let escalate =
        |name: &str| Answer::decide("expense", name, abide::approval::Decision::Escalate);
    world.answer_by_update(reject("a")).unwrap();
    world.answer_by_update(escalate("b")).unwrap();
    world.answer_by_update(escalate("c")).unwrap();
    assert_eq!(world.result().unwrap(), "Escalate by b, c");
    world.check();
}

#[test]
fn nobody_votes_twice() {
    let mut world = World::ask(quorum(2, &["ada", "grace"]));
    world.answer_by_update(approve("ada")).unwrap();
    let refusal = world.answer_by_update(approve("ada")).unwrap_err();
    assert_eq!(refusal.to_string(), "already voted: ada has already decided on request expense");
    assert_eq!(world.result(), None);
    world.check();
}

#[test]
fn who_comes_after_the_decision_is_told_that_it_is_already_decided() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..Terms::of(&["ada", "grace"]) });
    world.answer_by_update(approve("ada")).unwrap();
    let refusal = world.answer_by_update(reject("grace")).unwrap_err();
    assert_eq!(refusal.to_string(), "already decided: request expense was decided with approve");
    world.check();
}

#[test]
fn a_handover_lets_another_decide_instead_and_is_recorded() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..Terms::of(&["ada"]) });
    let handover = Answer::delegate("expense", "ada", "grace").comment("on holiday");
    assert_eq!(world.answer_by_update(handover).unwrap().effect, Effect::Delegated);
    let refusal = world.answer_by_update(approve("ada")).unwrap_err();
    assert_eq!(refusal.to_string(), "not allowed: ada has delegated request expense to grace");
    assert_eq!(world.query(Expense::APPROVALS, ()).requests[0].approvers, ["grace"]);
    world.answer_by_update(approve("grace")).unwrap();

    let standing = &world.query(Expense::APPROVALS, ()).requests[0];
    assert_eq!(standing.entries[0].answer.delegate_to(), Some("grace"));
    assert_eq!(standing.entries[0].answer.reason(), Some("on holiday"));
    assert_eq!((standing.status, standing.entries.len()), (Status::Decided, 2));
    world.check();
}

#[test]
fn a_vote_after_handovers_says_on_whose_behalf_it_was() {
    use abide::{
        Context,
        approval::{Approvals, Request},
    };

    #[derive(Default)]
    struct Chain {
        approvals: Approvals,
    }

    #[abide_sdk_macros::workflow(approvals = approvals)]
    impl Chain {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<(String, Option<String>)> {
            let verdict = ctx.approval(Request::new("expense").approver("ada")).await?;
            let vote = verdict.votes().first().cloned();
            let vote = vote.ok_or_else(|| abide::Error::new("no vote"))?;
            Ok((vote.approver, vote.on_behalf_of))
        }
    }

    let mut world = World::<Chain>::start(());
    world.signal(Chain::DECISION, Answer::delegate("expense", "ada", "grace"));
    world.signal(Chain::DECISION, Answer::delegate("expense", "grace", "linus"));
    world.signal(Chain::DECISION, approve("linus"));
    assert_eq!(world.result(), Some(("linus".into(), Some("ada".into()))));
    world.check();
}

#[test]
fn a_handover_gives_nobody_a_second_vote() {
    let mut world = World::ask(quorum(2, &["ada", "grace"]));
    for to in ["grace", "ada", ""] {
        let refusal = world.answer_by_update(Answer::delegate("expense", "ada", to)).unwrap_err();
        assert_eq!(refusal, Refusal::CannotDelegate { request: "expense".into(), to: to.into() });
    }
    world.check();
}

#[test]
fn what_a_signal_is_refused_for_stands_in_the_story() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..Terms::of(&["ada"]) });
    world.signal(Expense::DECISION, approve("mallory"));
    world.signal(Expense::DECISION, approve("ada"));
    world.signal(Expense::DECISION, reject("ada"));
    let entries = &world.query(Expense::APPROVALS, ()).requests[0].entries;
    let judged: Vec<_> = entries.iter().map(|entry| &entry.result).collect();
    assert!(matches!(judged[0], AnswerResult::Refused(Refusal::NotAllowed { .. })));
    assert!(matches!(judged[1], AnswerResult::Taken(_)));
    assert!(matches!(judged[2], AnswerResult::Refused(Refusal::AlreadyDecided { .. })));
    world.check();
}

#[test]
fn a_repeat_with_the_same_key_changes_nothing_and_gets_the_first_answer() {
    let mut world = World::ask(quorum(2, &["ada", "grace"]));
    let first = world.answer_by_update(approve("ada").key("click-1")).unwrap();
    world.pass(seconds(5));
    let again = world.answer_by_update(approve("ada").key("click-1")).unwrap();
    assert_eq!(again, first, "the time, too, is that of the first");
    world.signal(Expense::DECISION, approve("ada").key("click-1"));
    let entries = &world.query(Expense::APPROVALS, ()).requests[0].entries;
    assert_eq!(entries[1].result, AnswerResult::Repeated);
    assert_eq!(entries[2].result, AnswerResult::Repeated);
    assert_eq!(world.result(), None);
    world.check();
}

#[test]
fn a_repeat_of_the_deciding_answer_is_not_told_that_it_is_already_decided() {
    let mut world = World::ask(Terms { then: Some(seconds(9)), ..Terms::of(&["ada"]) });
    let first = world.answer_by_update(approve("ada").key("click-1")).unwrap();
    assert_eq!(world.answer_by_update(approve("ada").key("click-1")), Ok(first));
    world.check();
}

#[test]
fn keys_of_different_people_have_nothing_in_common() {
    let mut world = World::ask(quorum(2, &["ada", "grace"]));
    world.answer_by_update(approve("ada").key("1")).unwrap();
    world.answer_by_update(approve("grace").key("1")).unwrap();
    assert_eq!(world.result().unwrap(), "Approve by ada, grace");
    world.check();
}
