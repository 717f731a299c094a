//! People decide: what waits for them is listed, shown, put off, decided, and followed meanwhile.

use serde_json::{Value, json};

use crate::{
    harness::{Engine, Talking, abide, compare, fresh},
    people::{People, QUEUE},
};

/// A running `abide waits follow --json`.
struct Follower(Talking);

impl Follower {
    fn of(engine: &Engine, id: &str) -> Self {
        let mut command = abide();
        command.args(["waits", "follow", id, "--json", "--address", &engine.address]);
        Self(Talking::spawn(&mut command))
    }

    /// The next change.
    fn next(&mut self) -> Value {
        let line = self.0.next().expect("it goes on");
        serde_json::from_str(&line).expect("one JSON object")
    }

    /// The next change after which the run waits for this much.
    fn next_with(&mut self, waits: usize) -> Vec<Value> {
        loop {
            let change = self.next();
            let now = change["waits"].as_array().expect("a list");
            if now.len() == waits {
                return now.clone();
            }
        }
    }

    /// It has ended by itself, and well.
    fn end(self) {
        self.0.end();
    }
}

/// Starts a workflow that asks for these things, and follows it until it has asked.
fn asked(engine: &Engine, id: &str, things: &[&str]) -> Follower {
    let start = format!("workflow start --type purchase --id {id} --queue {QUEUE} --input");
    engine.run_with(&start, &[&json!(things).to_string()]).good();
    let mut follower = Follower::of(engine, id);
    follower.next_with(things.len());
    follower
}

#[test]
fn a_request_is_seen_put_off_and_decided() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    let mut follower = asked(&engine, "desk", &["desk"]);

    compare("people_list", &engine.run("approvals list").good());
    compare("people_waits", &engine.run("waits list --kind approval --name approval:desk").good());
    compare("people_waits", &engine.run("waits list --kind approval --name desk").good());
    compare("people_show", &engine.run("waits show desk").good());
    compare("people_describe", &engine.run("workflow describe desk").good());
    let described = &engine.json("workflow describe desk")[0];
    assert_eq!(described["resume_sources"], json!(["due", "input"]));
    let shown = engine.json("waits show desk approval:desk");
    assert_eq!(engine.json("waits show desk desk"), shown, "the request names its wait");
    assert_eq!(described["waits"], json!(shown), "a wait is the same wait wherever it is seen");
    assert_eq!(shown[0]["ended_by"], json!(["decision", "deadline"]));

    let moved = engine.run("timer reschedule desk desk --in 72h").good();
    compare("people_put_off", &moved);
    let now = &follower.next_with(1)[0];
    assert_eq!([&now["moves"], &now["moved_by"]], [&json!(1), &json!("tester")]);
    compare(
        "people_put_off_again",
        &engine.run("timer reschedule desk condition-1 --in 4d").bad(1),
    );

    compare("people_refuse", &engine.run("approvals decide desk approve --by bob").bad(1));
    let words = "approvals decide desk approve --by anna --role managers --key k --comment fine";
    let decided = &engine.json(words)[0];
    assert_eq!([&decided["request"], &decided["decision"]], ["desk", "approve"]);
    assert_eq!(decided["answer"]["effect"], "decided");
    assert_eq!(follower.next(), json!({ "workflow": "desk", "closed": true, "waits": [] }));
    follower.end();
    assert_eq!(&engine.json(words)[0], decided, "a repeat gets the receipt of the first");
    let other = engine.run(&words.replace("approve", "reject")).bad(1);
    assert!(other.contains("was already used"), "{other}");
    compare("people_none", &engine.run("approvals list").good());
    compare("people_decided", &engine.run("approvals decide desk reject --by anna").bad(1));
    compare("people_waits_none", &engine.run("waits show desk").good());
    people.leave();
}

/// A decision on a run whose code does not fit is refused with what to do, instead of waiting for code that
/// fits: by the one that finds out, and by the next.
#[test]
fn a_decision_on_a_blocked_run_is_refused_with_a_hint() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    let follower = asked(&engine, "desk", &["desk"]);
    people.leave();
    let changed = People::changed(&engine.address);
    for _ in 0..2 {
        let refused = engine.run("approvals decide desk approve --by anna").bad(1);
        assert!(refused.contains("the run is blocked"), "{refused}");
        assert!(refused.contains("hint: deploy code that fits the history"), "{refused}");
    }
    changed.leave();
    drop(follower);
}

#[test]
fn a_request_is_handed_over_and_withdrawn() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    let start = format!("workflow start --type purchase --id desk --queue {QUEUE} --input");
    engine.run_with(&start, &["[\"desk\"]"]).good();
    // It has just been started; the command waits until it asks.
    let told = engine.run("approvals delegate desk bob --by anna").good();
    assert_eq!(told, "delegated: desk\n");
    assert_eq!(engine.json("approvals list")[0]["actors"], json!(["bob", "managers"]));
    compare("people_handed_over", &engine.run("approvals decide desk approve --by anna").bad(1));
    compare("people_not_asked", &engine.run("approvals withdraw desk --by anna").bad(1));
    let told = engine.run("approvals withdraw desk --by carl --comment dear").good();
    assert_eq!(told, "withdrawn: desk\n");
    people.leave();
}

#[test]
fn of_several_requests_one_is_named() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    let mut follower = asked(&engine, "office", &["desk", "chair"]);
    compare("people_several", &engine.run("approvals decide office approve --by anna").bad(2));
    let other = engine.run("approvals decide office approve --by anna --request table").bad(1);
    compare("people_no_request", &other);
    compare("people_no_wait", &engine.run("waits show office nothing").bad(1));
    compare("people_follow", &{
        // For people, too; the engine is told to end the run, and with it what follows.
        let mut command = abide();
        command.args(["waits", "follow", "office", "--address", &engine.address]);
        let mut followed = Talking::spawn(&mut command);
        let first = followed.next().expect("it begins");
        engine.run("approvals decide office reject --by anna --request chair").good();
        let rest: Vec<_> = followed.by_ref().collect();
        followed.end();
        format!("{first}\n{}", rest.join("\n"))
    });
    follower.next_with(0);
    follower.end();
    people.leave();
}

#[test]
fn an_answer_to_a_decided_request_is_told_so() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    asked(&engine, "office", &["desk", "chair"]);
    let decide = "approvals decide office approve --by anna --request desk";
    engine.run(decide).good();
    let again = engine.run(&decide.replace("approve", "reject")).bad(1);
    assert!(again.contains("already decided"), "{again}");
    people.leave();
}

#[test]
fn approvals_and_waits_are_listed_by_what_they_are() {
    let (engine, _folder) = fresh();
    let people = People::ask(&engine.address);
    asked(&engine, "desk", &["desk"]);
    asked(&engine, "office", &["desk", "chair"]);
    let requests = |words: &str| {
        let of = |row: &Value| format!("{} {}", row["workflow"], row["approval"]["request"]);
        let listed = engine.json(&format!("approvals list {words}"));
        let mut found: Vec<_> = listed.iter().map(|row| of(row).replace('"', "")).collect();
        found.sort();
        found
    };
    let all = ["desk desk", "office chair", "office desk"];
    assert_eq!(requests(""), all);
    assert_eq!(requests("--for managers --for bob"), all);
    assert_eq!(requests("--for bob"), [""; 0]);
    assert_eq!(requests("--workflow office"), all[1..]);
    assert_eq!(requests("--name approval:chair"), all[1..2]);
    assert_eq!(requests("--type purchase --within 25h"), all);
    assert_eq!(requests("--type sale"), [""; 0]);
    assert_eq!(requests("--due-before 2026-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(requests("--older-than 1h"), [""; 0]);
    assert_eq!(requests("--limit 2").len(), 2);
    assert_eq!(engine.json("waits list --workflow desk").len(), 1);
    assert_eq!(engine.json("waits list --kind timer").len(), 0, "a deadline is no wait of its own");
    people.leave();
}
