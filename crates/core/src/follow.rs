//! Following a run by one long poll after the other, whoever carries them: what it waits for, each change
//! told once, and its history, each event read once.

use std::sync::Arc;

use crate::{
    ids::{EventNumber, RunId},
    operation::{AwaitEvents, AwaitWaits, History, HistoryPage, RunTarget, RunWaits},
    run::ShownWait,
};

/// What a follower of a run's waits knows.
#[derive(Clone, Debug)]
pub struct FollowedWaits {
    target: RunTarget,
    log_row: u64,
    told: Option<Arc<Vec<ShownWait>>>,
}

impl FollowedWaits {
    /// Follows from after this row of the run's log; zero begins with the present.
    pub const fn new(target: RunTarget, after: u64) -> Self {
        Self { target, log_row: after, told: None }
    }

    /// What to ask next.
    pub fn next(&self) -> AwaitWaits {
        AwaitWaits { target: self.target.clone(), after: self.log_row }
    }

    /// Takes an answer, and says whether it is to be told: it is the end, or not what was told before.
    pub fn news(&mut self, answer: &RunWaits) -> bool {
        // The current run may be another one soon; this stays with the one it began with.
        self.target.run = Some(answer.run);
        self.log_row = answer.log_row;
        let told = self.told.replace(Arc::clone(&answer.waits));
        answer.closed || told.as_ref() != Some(&answer.waits)
    }
}

/// What a follower of a run's history knows.
#[derive(Clone, Debug)]
pub struct FollowedHistory {
    target: RunTarget,
    from: u64,
    last_event: EventNumber,
    ended: bool,
}

impl FollowedHistory {
    /// Follows from after this event; zero begins with the first.
    pub const fn new(target: RunTarget, after: EventNumber) -> Self {
        Self { target, from: 0, last_event: after, ended: false }
    }

    /// Which run is followed.
    pub const fn target(&self) -> &RunTarget {
        &self.target
    }

    /// The last event that was read, or that the caller had before.
    pub const fn last_event(&self) -> EventNumber {
        self.last_event
    }

    /// Begins with this page of the run, which has the first event that the caller does not have.
    pub const fn seek(&mut self, run: RunId, from: u64) {
        self.target.run = Some(run);
        self.from = from;
    }

    /// What to ask to hear of the next event without reading it.
    pub fn await_next(&self) -> AwaitEvents {
        AwaitEvents { target: self.target.clone(), after: self.last_event }
    }

    /// What to ask for the next page, whatever it has.
    pub fn page(&self) -> History {
        History { target: self.target.clone(), from: self.from, follow: None }
    }

    /// What to ask for the next page as soon as it has something.
    pub fn next(&self) -> History {
        History { follow: Some(self.last_event), ..self.page() }
    }

    /// Takes a page, whose last event is this one, if it has any.
    pub fn took(&mut self, page: &HistoryPage, last_event: Option<EventNumber>) {
        // The current run may be another one soon; this stays with the one it began with.
        self.target.run = Some(page.run);
        self.from = page.next;
        self.last_event = last_event.unwrap_or(self.last_event);
        self.ended = page.closed && !page.more;
    }

    /// The run is closed, and all of it was read.
    pub const fn ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::WorkflowKey, time::Timestamp};

    fn target() -> RunTarget {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "order".into() };
        RunTarget { workflow, run: None }
    }

    #[test]
    fn a_change_is_told_once_and_the_end_always() {
        let run = RunId::from_parts(Timestamp::EPOCH, 1);
        let answer = |log_row, closed| RunWaits { run, log_row, waits: Arc::default(), closed };
        let mut followed = FollowedWaits::new(target(), 0);
        assert!(followed.news(&answer(3, false)));
        assert!(!followed.news(&answer(5, false)), "it is as it was");
        let AwaitWaits { target, after } = followed.next();
        assert_eq!((target.run, after), (Some(run), 5));
        assert!(followed.news(&answer(6, true)));
    }

    #[test]
    fn a_history_is_followed_from_page_to_page_until_its_run_is_closed_and_read() {
        let run = RunId::from_parts(Timestamp::EPOCH, 1);
        let page = |next, more, closed| HistoryPage { run, rows: Vec::new(), next, more, closed };
        let mut followed = FollowedHistory::new(target(), 0);
        followed.took(&page(4, true, true), Some(7));
        assert!(!followed.ended(), "there is more");
        let History { target, from, follow } = followed.next();
        assert_eq!((target.run, from, follow), (Some(run), 4, Some(7)));
        followed.took(&page(6, false, false), None);
        assert_eq!((followed.last_event(), followed.ended()), (7, false));
        followed.took(&page(8, false, true), Some(9));
        assert!(followed.ended());
    }
}
