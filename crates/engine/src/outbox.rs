//! Work on its way to one worker. What the worker has not read waits in memory, so it is measured and
//! accounted for, and a worker that leaves much unread is given no more until it reads: its credit is
//! held back before further work is matched with it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, ready},
};

use abide_core::{dispatch::Given, ids::SessionId};
use tokio::sync::mpsc;

use crate::gauge::InFlight;

/// Bytes of unread work at which a worker's credit is held back. What was matched before still comes.
const UNREAD_MAX: usize = 4 << 20;

/// Accounts for the bytes of work that a worker has yet to read, until the charge is dropped. It must
/// not call back into the engine.
pub type Account = Box<dyn Fn(usize) -> Charge + Send + Sync>;

/// Bytes that are accounted for. Released when dropped.
pub type Charge = Box<dyn Send>;

/// The sending end of a session's stream. The stream ends when all its clones are dropped.
#[derive(Clone)]
pub(crate) struct Outbox {
    sender: mpsc::UnboundedSender<QueuedItem>,
    state: Arc<OutboxState>,
}

pub(crate) struct Inbox {
    receiver: mpsc::UnboundedReceiver<QueuedItem>,
    state: Arc<OutboxState>,
}

struct OutboxState {
    session: SessionId,
    stream: u64,
    account: Option<Account>,
    /// Bytes that are unread.
    unread: AtomicUsize,
    /// The worker's credit is held back.
    held: AtomicBool,
}

struct QueuedItem {
    given: Given,
    bytes: usize,
    work: InFlight,
    _charge: Option<Charge>,
}

/// The stream of a session, with this number.
pub(crate) fn stream(session: SessionId, stream: u64, account: Option<Account>) -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (unread, held) = (AtomicUsize::new(0), AtomicBool::new(false));
    let state = Arc::new(OutboxState { session, stream, account, unread, held });
    (Outbox { sender, state: Arc::clone(&state) }, Inbox { receiver, state })
}

impl Outbox {
    /// Sends an item. Returns whether the stream is still open.
    pub(crate) fn send(&self, given: Given, work: InFlight) -> bool {
        let bytes = match &given {
            Given::Work(dispatch) => dispatch.memory(),
            Given::PresentAttempts(_) => 0,
        };
        let charge =
            self.state.account.as_ref().filter(|_| bytes > 0).map(|account| account(bytes));
        self.state.unread.fetch_add(bytes, SeqCst);
        self.sender.send(QueuedItem { given, bytes, work, _charge: charge }).is_ok()
    }

    /// The session and number of the stream, if the worker's credit has to be held back.
    pub(crate) fn holds(&self) -> Option<(SessionId, u64)> {
        let OutboxState { session, stream, unread, held, .. } = &*self.state;
        if unread.load(SeqCst) < UNREAD_MAX {
            return None;
        }
        held.store(true, SeqCst);
        // The worker may have read in between, before it could know that its credit is held back.
        if unread.load(SeqCst) < UNREAD_MAX && held.swap(false, SeqCst) {
            return None;
        }
        Some((session.clone(), *stream))
    }
}

impl Inbox {
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<(Given, InFlight)>> {
        let next = ready!(self.receiver.poll_recv(context));
        Poll::Ready(next.map(|QueuedItem { given, bytes, work, .. }| {
            self.state.unread.fetch_sub(bytes, SeqCst);
            (given, work)
        }))
    }

    /// Whether the worker's credit was held back and no longer has to be.
    pub(crate) fn resumes(&self) -> bool {
        self.state.unread.load(SeqCst) < UNREAD_MAX && self.state.held.swap(false, SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use abide_core::{
        dispatch::Dispatch, ids::RunId, ids::WorkflowKey, operation::QueryRequest,
        payload::Payload, report::QueryToken,
    };

    use super::*;
    use crate::gauge::Gauge;

    /// Work of a little more than so many bytes.
    fn work(bytes: usize) -> Given {
        let workflow = WorkflowKey { namespace: "default".into(), workflow: "one".into() };
        let token = QueryToken { workflow, run: RunId::MIN, ticket: 1, attempt: 1 };
        let query = QueryRequest::new("status", vec![Payload::new(vec![0; bytes])]);
        Given::Work(Dispatch::Query { token, last_event: 0, query })
    }

    fn take(inbox: &mut Inbox) -> bool {
        inbox.poll_next(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn credit_is_held_back_while_much_is_unread() {
        let (outbox, mut inbox) = stream("one".into(), 7, None);
        let gauge = Gauge::new(false);
        assert!(outbox.send(work(UNREAD_MAX / 2), gauge.begin()));
        assert_eq!(outbox.holds(), None);
        assert!(outbox.send(work(UNREAD_MAX / 2), gauge.begin()));
        assert_eq!(outbox.holds(), Some(("one".into(), 7)));
        assert!(!inbox.resumes(), "nothing was read");
        assert!(take(&mut inbox));
        assert!(inbox.resumes());
        assert!(!inbox.resumes(), "it is told once");
        assert_eq!(outbox.holds(), None);
    }

    #[test]
    fn unread_work_is_accounted_for_until_it_is_read() {
        let charged = Arc::new(AtomicUsize::new(0));
        let account = {
            let charged = Arc::clone(&charged);
            move |bytes| {
                charged.fetch_add(bytes, SeqCst);
                let release = Release(Arc::clone(&charged), bytes);
                Box::new(release) as Charge
            }
        };
        let (outbox, mut inbox) = stream("one".into(), 7, Some(Box::new(account)));
        let gauge = Gauge::new(false);
        outbox.send(work(1_000), gauge.begin());
        outbox.send(work(2_000), gauge.begin());
        assert!((3_000..6_000).contains(&charged.load(SeqCst)), "{charged:?}");
        take(&mut inbox);
        assert!((2_000..4_000).contains(&charged.load(SeqCst)), "{charged:?}");
        drop((outbox, inbox));
        assert_eq!(charged.load(SeqCst), 0);
    }

    struct Release(Arc<AtomicUsize>, usize);

    impl Drop for Release {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, SeqCst);
        }
    }
}
