//! All connections of a listener, and what they hold together: places and bytes in flight. Both are
//! bounded. Over the bound of connections, the one that has been idle for longest is evicted; over
//! the bound of bytes, the one with the largest product of bytes and time.

mod evictions;
mod guest;

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore},
    time::{Instant, timeout},
};

pub(crate) use self::{
    evictions::{Evicted, Evictions},
    guest::{Building, Charge, Guest, Kind, Request, rooms_of_one},
};
use crate::{Bounds, connection::Address, handshakes::FailedHandshakes, wire::UnreadAnswer};

/// One part in so many of the bytes in flight is reserved for large messages. Those wait for room, so
/// that small messages never have to.
const ROOMS_PART: usize = 3;

/// Large answers, pages or descriptions, that are built at the same time for all connections: each
/// needs a few megabytes meanwhile, which nothing accounts for.
const BUILDING: usize = 8;

/// The same for one connection. A client may ask for very many at once, and each takes a shard's or the
/// store's time.
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
pub(crate) struct Guests {
    bounds: Arc<Bounds>,
    here: Mutex<Here>,
    left: Notify,
    /// Places for refused connections that are told why.
    turned_away: Arc<Semaphore>,
    /// Room for large messages, in units of [`guest::UNIT`].
    rooms: Arc<Semaphore>,
    /// Large answers that may be built.
    building: Arc<Semaphore>,
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
struct Here {
    guests: BTreeMap<u64, Arc<Guest>>,
    came: u64,
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

impl Guests {
    pub(crate) fn new(bounds: Arc<Bounds>) -> Arc<Self> {
        let rooms = guest::units(bounds.bytes_in_flight / ROOMS_PART).max(1);
        Arc::new(Self {
            bounds,
            here: Mutex::default(),
            left: Notify::new(),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            rooms: Arc::new(Semaphore::new(rooms)),
            building: Arc::new(Semaphore::new(BUILDING)),
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
                    let guest = Guest::turned_away(Arc::clone(self), address, turned_away);
                    let window = self.bounds.window(usize::MAX);
                    return Some(Admission { guest: Arc::new(guest), window });
                }
                Err(Full::All) => drop(timeout(LOOK, self.left.notified()).await),
            }
        }
    }

    fn admit(self: &Arc<Self>, address: Address) -> Result<Admission, Full> {
        let mut here = lock(&self.here);
        let shared = here.guests.values().filter(|guest| guest.address == address).count();
        if shared >= self.bounds.connections_per_address {
            let idle = here.longest_idle(|guest| guest.address == address).ok_or(Full::Address)?;
            self.let_go(&mut here, &idle, Evicted::Idle);
        } else if here.guests.len() >= self.bounds.connections {
            let idle = here.longest_idle(|_| true).ok_or(Full::All)?;
            self.let_go(&mut here, &idle, Evicted::Idle);
        }
        here.came += 1;
        let number = here.came;
        let guest = Arc::new(Guest::new(Arc::clone(self), number, address));
        here.guests.insert(number, Arc::clone(&guest));
        let window = self.bounds.window(here.guests.len());
        drop(here);
        Ok(Admission { guest, window })
    }

    /// Evicts a connection. It stops counting at once, though it may take a moment to end.
    fn let_go(&self, here: &mut Here, guest: &Guest, why: Evicted) {
        here.guests.remove(&guest.number);
        guest.evict(why);
        self.evicted.notify_one();
        self.evictions.count(why, &guest.address);
    }

    /// Evicts the connection with the largest product of bytes and time.
    fn evict_greediest(&self) {
        let mut here = lock(&self.here);
        let now = self.now_ms();
        let greedy = here.guests.values().filter(|guest| !guest.trusted());
        if let Some(guest) = greedy.max_by_key(|guest| guest.weight(now)).cloned() {
            self.let_go(&mut here, &guest, Evicted::Greedy);
        }
    }

    /// The same on behalf of messages that wait for room, at most once per [`PAUSE`] for all of
    /// them.
    fn make_room(&self) {
        let now = Instant::now();
        let recently = {
            let mut here = lock(&self.here);
            let before = here.evicted_at.replace(now);
            let recently = before.is_some_and(|before| now < before + PAUSE);
            if recently {
                here.evicted_at = before;
            }
            recently
        };
        if !recently {
            self.evict_greediest();
        }
    }

    /// Total of bytes in flight.
    pub(crate) fn bytes(&self) -> usize {
        let rooms = guest::units(self.all_rooms()).max(1);
        let used = rooms.saturating_sub(self.rooms.available_permits());
        used * guest::UNIT + self.taken.load(Relaxed)
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        lock(&self.here).guests.len()
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
    pub(crate) fn take_back(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (guests, evicted) = (Arc::downgrade(self), Arc::clone(&self.evicted));
        let look = (self.bounds.stall() / 4).max(Duration::from_millis(1));
        async move {
            loop {
                let Some(guests) = guests.upgrade() else { return };
                // Dropping an answer may lock `unread`, so take the list out first.
                let mut answers = std::mem::take(&mut *lock(&guests.unread));
                answers.retain(|answer| answer.upgrade().is_some_and(|it| !it.take_back()));
                lock(&guests.unread).append(&mut answers);
                drop(guests);
                drop(timeout(look, evicted.notified()).await);
            }
        }
    }
}

impl Here {
    /// Among the connections that match, one of the address with the most connections: the one that
    /// has been idle for longest.
    fn longest_idle(&self, among: impl Fn(&Guest) -> bool) -> Option<Arc<Guest>> {
        let mut shares: HashMap<Address, usize> = HashMap::new();
        for guest in self.guests.values() {
            *shares.entry(guest.address).or_default() += 1;
        }
        let idle = self.guests.values().filter(|guest| among(guest));
        let idle = idle.filter_map(|guest| Some((guest.idle_since()?, guest)));
        let longest = idle.min_by_key(|(since, guest)| {
            let share = shares.get(&guest.address).copied().unwrap_or_default();
            (std::cmp::Reverse(share), *since)
        });
        longest.map(|(_, guest)| Arc::clone(guest))
    }
}

/// The place of one connection. Freed when dropped.
pub(crate) struct Admission {
    pub(crate) guest: Arc<Guest>,
    /// Bytes that the peer may send ahead.
    pub(crate) window: u32,
}

impl Drop for Admission {
    fn drop(&mut self) {
        let guests = self.guest.guests();
        lock(&guests.here).guests.remove(&self.guest.number);
        guests.left.notify_one();
    }
}

/// A poisoned lock is fine: the data is consistent whenever a lock is released, even by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
