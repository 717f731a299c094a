//! All connections of a listener, and what they hold together: places and bytes in flight. Both are
//! bounded. Over the bound of connections, the one that has been idle for longest is evicted; over
//! the bound of bytes, the one with the largest product of bytes and time.

mod charge;
mod connection;
mod evictions;
mod streams;

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore},
    time::{Instant, timeout},
};

pub(crate) use self::{
    charge::{Charge, ChargeKind, decoded, rooms_of_one},
    connection::{Connection, Request},
    evictions::{Evicted, Evictions},
    streams::{LinkPlace, StreamPlace},
};
use crate::{
    Bounds, accept::Address, framing::UnreadAnswer, handshakes::FailedHandshakes, lock::lock,
};

/// One part in so many of the bytes in flight is reserved for large messages. Those wait for room, so
/// that small messages never have to.
const ROOMS_PART: usize = 3;

/// Messages of more bytes than this get only a part of the room for large messages, so that the others
/// do not wait for them: a payload has at most 2 MB.
const HUGE: usize = 4 << 20;

/// Quarters of the room for large messages that those over [`HUGE`] get: by default, two of 16 MB.
const HUGE_QUARTERS: usize = 3;

/// Large answers, pages or descriptions, that are built at the same time for all connections: each
/// needs a few megabytes meanwhile, which nothing accounts for.
const BUILDING: usize = 8;

/// Large answers that one connection has asked for and that are not built yet. A client may ask for very
/// many at once, and each takes a shard's or the store's time.
pub(crate) const BUILDING_OF_ONE: usize = 2;

/// A connection gets further large answers while those that it has yet to read are less than one part
/// in so many of the bytes in flight.
const ANSWERS_PART: usize = 32;

/// A message that waits for room this long causes the eviction of the connection with the largest
/// product of bytes and time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Minimum time between two such evictions, so that the room freed by the first takes effect.
const PAUSE: Duration = Duration::from_millis(100);

/// Number of refused connections at a time that are told why. Further ones are closed without a
/// reason.
const TURNED_AWAY: usize = 32;

/// How often to look for an idle connection while all are busy.
const LOOK: Duration = Duration::from_millis(100);

/// All connections of one listener.
pub(crate) struct Connections {
    bounds: Arc<Bounds>,
    open: Mutex<OpenConnections>,
    freed: Notify,
    /// Places for refused connections that are told why.
    turned_away: Arc<Semaphore>,
    /// Room for large messages, in units of [`charge::UNIT`].
    rooms: Arc<Semaphore>,
    /// The part of the room that messages over [`HUGE`] may have.
    huge: Arc<Semaphore>,
    /// Large answers that may be built.
    building: Arc<Semaphore>,
    streams: Mutex<streams::Streams>,
    /// Bytes that were taken without waiting for room.
    taken: AtomicUsize,
    began: Instant,
    /// Answers that their clients have yet to read.
    unread: Mutex<Vec<Weak<UnreadAnswer>>>,
    /// A connection was evicted, whose answers must be dropped.
    evicted: Arc<Notify>,
    pub(crate) evictions: Evictions,
    pub(crate) failed_handshakes: FailedHandshakes,
}

#[derive(Default)]
struct OpenConnections {
    connections: BTreeMap<u64, Arc<Connection>>,
    admitted: u64,
    /// Time of the last eviction on behalf of messages that wait for room.
    evicted_at: Option<Instant>,
}

/// Why a new connection gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// All places are taken, and no connection is idle.
    All,
    /// The address has used up its share, and none of its connections is idle.
    Address,
}

impl Connections {
    pub(crate) fn new(bounds: Arc<Bounds>) -> Arc<Self> {
        let rooms = charge::units(bounds.bytes_in_flight / ROOMS_PART).max(1);
        // At least as much as one connection gets.
        let huge = (rooms * HUGE_QUARTERS / 4).max(rooms.div_ceil(2));
        Arc::new(Self {
            bounds,
            open: Mutex::default(),
            freed: Notify::new(),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            rooms: Arc::new(Semaphore::new(rooms)),
            huge: Arc::new(Semaphore::new(huge)),
            building: Arc::new(Semaphore::new(BUILDING)),
            streams: Mutex::default(),
            taken: AtomicUsize::new(0),
            began: Instant::now(),
            unread: Mutex::default(),
            evicted: Arc::default(),
            evictions: Evictions::default(),
            failed_handshakes: FailedHandshakes::default(),
        })
    }

    /// Waits for a place for a connection from this address. If the address has its share already,
    /// and none of its connections is idle, the new connection is refused: a busy connection may be
    /// a worker's, which must not lose its place to a client that reconnects often. A refused
    /// connection gets a place that only tells it so, if one is free, and `None` otherwise.
    pub(crate) async fn place(self: &Arc<Self>, from: SocketAddr) -> Option<Admission> {
        let address = Address::of(from.ip());
        loop {
            match self.admit(address) {
                Ok(place) => return Some(place),
                Err(Full::Address) => {
                    self.evictions.count(Evicted::OverShare, &address);
                    let turned_away = Arc::clone(&self.turned_away).try_acquire_owned().ok()?;
                    let connection =
                        Connection::turned_away(Arc::clone(self), address, turned_away);
                    let window = self.bounds.window(usize::MAX);
                    return Some(Admission { connection: Arc::new(connection), window });
                }
                Err(Full::All) => drop(timeout(LOOK, self.freed.notified()).await),
            }
        }
    }

    fn admit(self: &Arc<Self>, address: Address) -> Result<Admission, Full> {
        let mut open = lock(&self.open);
        let shared =
            open.connections.values().filter(|connection| connection.address == address).count();
        if shared >= self.bounds.connections_per_address {
            let idle = open
                .longest_idle(|connection| connection.address == address)
                .ok_or(Full::Address)?;
            self.evict(&mut open, &idle, Evicted::Idle);
        } else if open.connections.len() >= self.bounds.connections {
            let idle = open.longest_idle(|_| true).ok_or(Full::All)?;
            self.evict(&mut open, &idle, Evicted::Idle);
        }
        open.admitted += 1;
        let number = open.admitted;
        let connection = Arc::new(Connection::new(Arc::clone(self), number, address));
        open.connections.insert(number, Arc::clone(&connection));
        let window = self.bounds.window(open.connections.len());
        drop(open);
        Ok(Admission { connection, window })
    }

    /// Evicts a connection. It stops counting at once, though it may take a moment to end.
    fn evict(&self, open: &mut OpenConnections, connection: &Connection, why: Evicted) {
        open.connections.remove(&connection.number);
        connection.evict(why);
        self.evicted.notify_one();
        self.evictions.count(why, &connection.address);
    }

    /// Evicts the connection with the largest product of bytes and time.
    fn evict_greediest(&self) {
        let mut open = lock(&self.open);
        let now = self.now_ms();
        let greedy = open.connections.values().filter(|connection| !connection.trusted());
        if let Some(connection) = greedy.max_by_key(|connection| connection.weight(now)).cloned() {
            self.evict(&mut open, &connection, Evicted::Greedy);
        }
    }

    /// The same on behalf of messages that wait for room, at most once per [`PAUSE`] for all of
    /// them.
    fn make_room(&self) {
        let now = Instant::now();
        let recently = {
            let mut open = lock(&self.open);
            let before = open.evicted_at.replace(now);
            let recently = before.is_some_and(|before| now < before + PAUSE);
            if recently {
                open.evicted_at = before;
            }
            recently
        };
        if !recently {
            self.evict_greediest();
        }
    }

    /// Total of bytes in flight.
    pub(crate) fn bytes(&self) -> usize {
        let rooms = charge::units(self.all_rooms()).max(1);
        let used = rooms.saturating_sub(self.rooms.available_permits());
        used * charge::UNIT + self.taken.load(Relaxed)
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).connections.len()
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Milliseconds since the listener was created.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Watches an answer, which must be read within the bound of time.
    pub(crate) fn watch(&self, answer: &Arc<UnreadAnswer>) {
        lock(&self.unread).push(Arc::downgrade(answer));
    }

    /// Drops answers that are not read in time or whose connection is evicted, until the listener is
    /// dropped.
    pub(crate) fn drop_unread(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (connections, evicted) = (Arc::downgrade(self), Arc::clone(&self.evicted));
        let look = (self.bounds.stall() / 4).max(Duration::from_millis(1));
        async move {
            loop {
                let Some(connections) = connections.upgrade() else { return };
                // Dropping an answer may lock `unread`, so take the list out first.
                let mut answers = std::mem::take(&mut *lock(&connections.unread));
                answers.retain(|answer| answer.upgrade().is_some_and(|it| !it.take_back()));
                lock(&connections.unread).append(&mut answers);
                drop(connections);
                drop(timeout(look, evicted.notified()).await);
            }
        }
    }
}

impl OpenConnections {
    /// Among the connections that match, one of the address with the most connections: the one that
    /// has been idle for longest.
    fn longest_idle(&self, among: impl Fn(&Connection) -> bool) -> Option<Arc<Connection>> {
        let mut shares: HashMap<Address, usize> = HashMap::new();
        for connection in self.connections.values() {
            *shares.entry(connection.address).or_default() += 1;
        }
        let idle = self.connections.values().filter(|connection| among(connection));
        let idle = idle.filter_map(|connection| Some((connection.idle_since()?, connection)));
        let longest = idle.min_by_key(|(since, connection)| {
            let share = shares.get(&connection.address).copied().unwrap_or_default();
            (std::cmp::Reverse(share), *since)
        });
        longest.map(|(_, connection)| Arc::clone(connection))
    }
}

/// The place of one connection. Freed when dropped.
pub(crate) struct Admission {
    pub(crate) connection: Arc<Connection>,
    /// Bytes that the peer may send ahead.
    pub(crate) window: u32,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let connections = self.connection.connections();
        lock(&connections.open).connections.remove(&self.connection.number);
        connections.freed.notify_one();
    }
}
#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Others may hold as many very large messages as they like.
    #[tokio::test]
    async fn a_message_of_a_megabyte_does_not_wait_for_very_large_ones() {
        let connections = Connections::new(Arc::new(Bounds::default()));
        let mut places = Vec::new();
        for last in 1..=8 {
            places.push(connections.place(([10, 0, 0, last], 1).into()).await.expect("a place"));
        }
        let (honest, hostile) = places.split_first().expect("there are places");
        let room = |place: &Admission, bytes| Box::pin(Arc::clone(&place.connection).room(bytes));
        let mut held: Vec<_> = hostile.iter().map(|place| room(place, 16 << 20)).collect();
        let held: Vec<_> = held.iter_mut().map(FutureExt::now_or_never).collect();
        assert_eq!(held.iter().flatten().count(), 2, "the others wait");
        assert!(room(honest, 1 << 20).now_or_never().is_some());
    }
}
