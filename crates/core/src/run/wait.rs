//! Condition waits on the server, which stores and shows them; only the worker evaluates the
//! predicate.
//!
//! | state | command | becomes |
//! |---|---|---|
//! | none | OpenWait | open |
//! | open | DescribeWait | open, with other details |
//! | open | SatisfyWait, TimeOutWait, CancelWait | gone |

use super::{Run, Touch, Wait};
use crate::{
    event::{Event, Fact},
    ids::WaitId,
};

impl Run {
    pub(super) fn apply_wait(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "called for waits only")]
        match &event.body.fact {
            Fact::WaitOpened(opened) => {
                let spec = opened.spec.clone();
                let wait = Wait { opened: event.number, since: event.time, spec, passed: None };
                self.touch(Touch::Wait(wait.spec.wait.clone()));
                self.waits.insert(wait.spec.wait.clone(), wait);
            }
            Fact::WaitDescribed(described) => {
                self.touch(Touch::Wait(described.wait.clone()));
                if let Some(wait) = self.waits.get_mut(&described.wait) {
                    wait.spec.details = Some(described.details.clone());
                }
            }
            Fact::WaitSatisfied(closed) => self.close_wait(&closed.wait),
            Fact::WaitTimedOut(closed) => self.close_wait(&closed.wait),
            Fact::WaitCancelled(closed) => self.close_wait(&closed.wait),
            _ => {}
        }
    }

    fn close_wait(&mut self, id: &WaitId) {
        self.touch(Touch::Wait(id.clone()));
        self.waits.remove(id);
    }
}
