//! One connection: its open requests, its large answers, and its eviction.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Waker,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};
use tonic::Status;

use super::{
    BUILDING_OF_ONE, Connections, Evicted,
    charge::{BytesHeld, Charge, ChargeKind, units},
};
use crate::{Bounds, accept::Address, framing::refused, lock::lock};

/// Cost of an open request beside its messages: headers, tasks, and the transport's own state.
pub(super) const REQUEST_BYTES: usize = 8 << 10;

pub(crate) struct Connection {
    pub(super) connections: Arc<Connections>,
    pub(super) number: u64,
    pub(super) address: Address,
    /// Room for large messages of this connection alone.
    pub(super) rooms: Arc<Semaphore>,
    /// Large answers that this connection may ask for at a time.
    building: Arc<Semaphore>,
    pub(super) held: Mutex<BytesHeld>,
    open: Mutex<OpenRequests>,
    evicted: watch::Sender<Option<Evicted>>,
    /// Set if the connection got no place: its requests are answered with the reason only.
    turned_away: Option<OwnedSemaphorePermit>,
    /// Whether the peer has proven to be another node of the same cluster.
    trusted: AtomicBool,
}

/// Number of open requests, and since when there are none.
struct OpenRequests {
    requests: usize,
    idle_since: Instant,
}

impl Connection {
    pub(super) fn new(connections: Arc<Connections>, number: u64, address: Address) -> Self {
        let rooms = units(connections.rooms_of_one()).max(1);
        Self {
            connections,
            number,
            address,
            rooms: Arc::new(Semaphore::new(rooms)),
            building: Arc::new(Semaphore::new(BUILDING_OF_ONE)),
            held: Mutex::default(),
            open: Mutex::new(OpenRequests { requests: 0, idle_since: Instant::now() }),
            evicted: watch::Sender::new(None),
            turned_away: None,
            trusted: AtomicBool::new(false),
        }
    }

    /// A connection that got no place: it is only told why.
    pub(super) fn turned_away(
        connections: Arc<Connections>,
        address: Address,
        place: OwnedSemaphorePermit,
    ) -> Self {
        // Numbers begin with 1, so 0 belongs to no connection that has a place.
        Self { turned_away: Some(place), ..Self::new(connections, 0, address) }
    }

    /// Whether the connection got no place and is only told why.
    pub(crate) const fn is_turned_away(&self) -> bool {
        self.turned_away.is_some()
    }

    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Begins a request. The connection is not idle until the request ends.
    pub(crate) fn begin(self: &Arc<Self>) -> Request {
        lock(&self.open).requests += 1;
        Request { charge: self.take(REQUEST_BYTES, ChargeKind::Pending) }
    }

    /// Since when the connection is idle. `None` while it has a request.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let open = lock(&self.open);
        (open.requests == 0).then_some(open.idle_since)
    }

    /// Waits until few large answers are asked for by this connection. One more may be while the
    /// returned value lives.
    pub(crate) async fn ask_for_answer(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.building).acquire_owned().await.ok()
    }

    /// Waits until the peer has read most of its answers, and few large ones are being built for all
    /// connections. An answer may be built while the returned value lives, which must depend neither on
    /// how fast the peer reads nor on other nodes.
    pub(crate) async fn build_answer(&self) -> Option<OwnedSemaphorePermit> {
        std::future::poll_fn(|context| self.poll_answers(context)).await;
        self.connections.build_answer().await
    }

    pub(crate) fn share(&self) -> usize {
        self.connections.bounds.bytes_per_connection
    }

    /// Marks the peer as another node of the cluster, whose traffic the nodes bound themselves.
    pub(crate) fn trust(&self) {
        self.trusted.store(true, Relaxed);
    }

    pub(crate) fn trusted(&self) -> bool {
        self.trusted.load(Relaxed)
    }

    /// Asks the connection's task to end it, and writes its bytes off.
    pub(super) fn evict(&self, why: Evicted) {
        let waiting = self.write_off();
        self.evicted.send_replace(Some(why));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Resolves with the reason when the connection is evicted.
    pub(crate) fn evicted(&self) -> impl Future<Output = Evicted> + Send + use<> {
        let mut evicted = self.evicted.subscribe();
        async move {
            let why = evicted.wait_for(Option::is_some).await.ok().and_then(|why| *why);
            match why {
                Some(why) => why,
                // The connection has ended without an eviction, so this never resolves.
                None => std::future::pending().await,
            }
        }
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.borrow().is_some()
    }

    /// The status for its streams, if the connection is evicted.
    pub(crate) fn refusal(&self) -> Option<Status> {
        let evicted = *self.evicted.borrow();
        let why = evicted.or(self.is_turned_away().then_some(Evicted::OverShare));
        why.map(|why| self.status(why))
    }

    /// The status for a stream that ends for this reason.
    pub(crate) fn status(&self, why: Evicted) -> Status {
        let Bounds { bytes_in_flight, stall_ms, connections_per_address, .. } =
            &*self.connections.bounds;
        refused(&match why {
            Evicted::Greedy => format!(
                "too many bytes are in flight at the server, and this connection held the most for the \
                 longest time; the limit is {bytes_in_flight} (bounds.bytes_in_flight): send smaller \
                 requests, and read the answers promptly"
            ),
            Evicted::Idle => {
                "the idle connection was closed to make room for others: reconnect".to_owned()
            }
            Evicted::OverShare => format!(
                "{} has {connections_per_address} connections, all of them busy, which is the limit \
                 (bounds.connections_per_address): close some, or raise the limit",
                self.address
            ),
            Evicted::Unfinished => format!(
                "an incomplete message made no progress for {stall_ms} ms (bounds.stall_ms): send the \
                 whole message again"
            ),
            Evicted::Stream => format!(
                "the stream was closed to make room for others, because {} has the most streams \
                 (bounds.streams, bounds.streams_per_address): open it again",
                self.address
            ),
            Evicted::Unread => format!(
                "the answer was not read for {stall_ms} ms (bounds.stall_ms): repeat the request from \
                 the last position that was read"
            ),
        })
    }

    /// Counts a stream of this connection that had to end, and gives the status for it.
    pub(crate) fn lost(&self, why: Evicted) -> Status {
        self.connections.evictions.count(why, &self.address);
        self.status(why)
    }
}

/// An open request. Ends when dropped.
pub(crate) struct Request {
    charge: Charge,
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut open = lock(&self.charge.connection.open);
        open.requests -= 1;
        open.idle_since = Instant::now();
    }
}
