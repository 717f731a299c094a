//! Everybody who is connected to a listener, and what they hold together: connections, and bytes in
//! flight. Both are bounded. Over the bound of connections the one that is idle for longest goes; over
//! the bound of bytes the connection goes that holds the most for the longest.

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
    time::{Instant, interval, timeout},
};

pub(crate) use self::{
    evictions::{Evicted, Evictions},
    guest::{Charge, Guest, Kind, Request},
};
use crate::{Bounds, connection::Address, wire::Answer};

/// Of all bytes in flight, one part of so many is for large messages and pages. Those wait for room, so
/// that the rest is always there for small ones, which never wait.
const ROOMS_PART: usize = 3;

/// Who waits for room this long asks whoever holds most for longest to leave.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two who are asked to leave for that, so that the room which the first leaves is seen.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections at a time that are told why they are refused; those beyond are closed without a word.
const TURNED_AWAY: usize = 32;

/// How often it is looked for an idle connection while all are busy.
const LOOK: Duration = Duration::from_millis(100);

/// Everybody who is connected to one listener.
pub(crate) struct Guests {
    bounds: Arc<Bounds>,
    here: Mutex<Here>,
    left: Notify,
    /// Places for those who are told why they are refused.
    turned_away: Arc<Semaphore>,
    /// Room for what can wait, in units of [`guest::UNIT`].
    rooms: Arc<Semaphore>,
    /// Bytes that were taken without waiting.
    taken: AtomicUsize,
    began: Instant,
    /// Answers that somebody has yet to read.
    unread: Mutex<Vec<Weak<Answer>>>,
    pub(crate) evictions: Evictions,
}

#[derive(Default)]
struct Here {
    guests: BTreeMap<u64, Arc<Guest>>,
    came: u64,
    /// When somebody was last asked to leave because others waited for room.
    evicted_at: Option<Instant>,
}

/// Why somebody cannot come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    /// All connections are taken, and none is idle.
    All,
    /// The same of those that one address may have.
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
            taken: AtomicUsize::new(0),
            began: Instant::now(),
            unread: Mutex::default(),
            evictions: Evictions::default(),
        })
    }

    /// A place for a connection from this address, as soon as there is one. If the address has its share
    /// already, and none of its connections is idle, the newcomer is refused: whoever is busy is perhaps a
    /// worker, which must not lose its place to whoever knocks most often. The place is then one in which
    /// it is only told so, if there is one.
    pub(crate) async fn place(self: &Arc<Self>, from: SocketAddr) -> Option<Place> {
        let address = Address::of(from.ip());
        loop {
            match self.admit(address) {
                Ok(place) => return Some(place),
                Err(Full::Address) => {
                    self.evictions.count(Evicted::OverShare, &address);
                    let turned_away = Arc::clone(&self.turned_away).try_acquire_owned().ok()?;
                    let guest = Guest::turned_away(Arc::clone(self), address, turned_away);
                    let window = self.bounds.window(usize::MAX);
                    return Some(Place { guest: Arc::new(guest), window });
                }
                Err(Full::All) => drop(timeout(LOOK, self.left.notified()).await),
            }
        }
    }

    fn admit(self: &Arc<Self>, address: Address) -> Result<Place, Full> {
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
        Ok(Place { guest, window })
    }

    /// From now on this connection counts for nothing, though it may take a moment to end.
    fn let_go(&self, here: &mut Here, guest: &Guest, why: Evicted) {
        here.guests.remove(&guest.number);
        guest.evict(why);
        self.evictions.count(why, &guest.address);
    }

    /// Asks the one to leave that holds the most bytes for the longest.
    fn evict_greediest(&self) {
        let mut here = lock(&self.here);
        let now = self.now_ms();
        let greedy = here.guests.values().filter(|guest| !guest.trusted());
        if let Some(guest) = greedy.max_by_key(|guest| guest.weight(now)).cloned() {
            self.let_go(&mut here, &guest, Evicted::Greedy);
        }
    }

    /// The same for somebody who has waited for room, at most once for all who wait.
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

    /// Bytes in flight.
    pub(crate) fn bytes(&self) -> usize {
        let rooms = guest::units(self.all_rooms()).max(1);
        let used = rooms.saturating_sub(self.rooms.available_permits());
        used * guest::UNIT + self.taken.load(Relaxed)
    }

    /// Open connections.
    pub(crate) fn count(&self) -> usize {
        lock(&self.here).guests.len()
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Milliseconds since the beginning.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// An answer that has to be read within the bound of time.
    pub(crate) fn watch(&self, answer: &Arc<Answer>) {
        lock(&self.unread).push(Arc::downgrade(answer));
    }

    /// Takes answers back that nobody reads, until the listener is gone.
    pub(crate) fn take_back(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let guests = Arc::downgrade(self);
        let mut look = interval((self.bounds.stall() / 4).max(Duration::from_millis(1)));
        async move {
            loop {
                look.tick().await;
                let Some(guests) = guests.upgrade() else { return };
                // What is dropped may be an answer of its own, so nothing is locked meanwhile.
                let mut answers = std::mem::take(&mut *lock(&guests.unread));
                answers.retain(|answer| answer.upgrade().is_some_and(|it| !it.take_back()));
                lock(&guests.unread).append(&mut answers);
            }
        }
    }
}

impl Here {
    /// The one that is idle for longest among those of the address that has most connections.
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

/// The place of one connection, until this is dropped.
pub(crate) struct Place {
    pub(crate) guest: Arc<Guest>,
    /// Bytes that the peer may send ahead.
    pub(crate) window: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        let guests = self.guest.guests();
        lock(&guests.here).guests.remove(&self.guest.number);
        guests.left.notify_one();
    }
}

/// What is behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
