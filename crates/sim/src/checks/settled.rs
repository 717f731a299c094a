//! Once all faults are over and time has passed, everything that could continue has continued.

use abide_core::{
    ids::RunId,
    run::{Run, Status, Task},
};

use super::{Check, Checked, Violation, ledger::Ledger, races};

/// Every open run waits for something that only comes from outside.
pub fn every_run_continued(ledger: &Ledger) -> Checked {
    for story in ledger.stories.values().filter(|story| story.run.open()) {
        if let Some(what) = could_continue(ledger, &story.run) {
            return Err(Violation::of(Check::Liveness, story.run.id, what));
        }
    }
    Ok(())
}

fn could_continue(ledger: &Ledger, run: &Run) -> Option<String> {
    if run.paused {
        return Some("it is still paused".into());
    }
    if run.task != Task::Idle {
        return Some(format!("its workflow task waits: {:?}", run.task));
    }
    if run.unseen || !run.buffer.is_empty() {
        return Some("there is something that its code has not seen".into());
    }
    if let Some(key) = run.due_keys().first() {
        return Some(format!("{key:?} is still due at {:?}", run.due(key)));
    }
    if let Some((scheduled, activity)) = run.activities.first_key_value() {
        return Some(format!("activity {scheduled} waits: {:?}", activity.phase));
    }
    if let Some(what) = races::passed_deadline(run) {
        return Some(what);
    }
    if let Some(initiated) = run.externals.keys().next() {
        return Some(format!("request {initiated} to another workflow has no answer"));
    }
    for (initiated, child) in &run.children {
        let open = chain_is_open(ledger, child.run);
        if !open {
            return Some(format!("child {initiated} is over and it does not know"));
        }
    }
    None
}

fn chain_is_open(ledger: &Ledger, run: RunId) -> bool {
    let mut next = Some(run);
    while let Some(story) = next.and_then(|run| ledger.stories.get(&run)) {
        match story.run.status {
            Status::Open => return true,
            Status::Closed { next_run, .. } => next = next_run,
        }
    }
    false
}
