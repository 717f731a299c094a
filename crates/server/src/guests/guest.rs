//! One connection: its open requests and its bytes in flight. Bytes are *moving* while a message
//! comes in or goes out, which ends soon unless the peer stalls. They are *standing* while a
//! request waits for its answer.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout},
};
use tonic::Status;

use super::{ANSWERS_PART, BUILDING_OF_ONE, Evicted, Guests, PATIENCE, ROOMS_PART};
use crate::{Bounds, connection::Address, wire::refused};

/// Bytes of one unit of room: semaphores count in these units.
pub(super) const UNIT: usize = 1 << 10;

/// Cost of an open request beside its messages: headers, tasks, and the transport's own state.
const REQUEST_BYTES: usize = 8 << 10;

/// Standing bytes weigh as much as bytes that have been moving for this long.
const STANDING_MS: u64 = 1_000;

/// How bytes in flight are accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message that is arriving, until its request is answered.
    Arriving,
    /// An answer that is about to be written.
    Answer,
    /// Part of an answer that is written as fast as the peer reads.
    Unread,
    /// Waiting with a request for its answer.
    Standing,
}

pub(crate) struct Guest {
    guests: Arc<Guests>,
    pub(super) number: u64,
    pub(super) address: Address,
    /// Room for large messages of this connection alone.
    rooms: Arc<Semaphore>,
    /// Large answers that are built for this connection alone.
    building: Arc<Semaphore>,
    held: Mutex<BytesHeld>,
    open: Mutex<Open>,
    evicted: watch::Sender<Option<Evicted>>,
    /// Set if the connection got no place: its requests are answered with the reason only.
    turned_away: Option<OwnedSemaphorePermit>,
    /// Whether the peer has proven to be another node of the same cluster.
    trusted: AtomicBool,
}

/// Bytes in flight of one connection.
#[derive(Default)]
struct BytesHeld {
    standing: usize,
    /// Total of moving bytes.
    moving: usize,
    /// The part of `moving` that belongs to answers.
    answers: usize,
    /// The part of `answers` that the peer has yet to read.
    unread: usize,
    /// Sum over the moving charges of bytes times start time.
    began: u128,
    /// The part of all bytes that was taken without waiting for room.
    taken: usize,
    /// The connection was evicted: its remaining bytes no longer count.
    written_off: bool,
    /// Tasks that wait until fewer bytes are in flight.
    waiting: Vec<Waker>,
}

/// Number of open requests, and since when there are none.
struct Open {
    requests: usize,
    idle_since: Instant,
}

impl Guest {
    pub(super) fn new(guests: Arc<Guests>, number: u64, address: Address) -> Self {
        let rooms = units(guests.rooms_of_one()).max(1);
        Self {
            guests,
            number,
            address,
            rooms: Arc::new(Semaphore::new(rooms)),
            building: Arc::new(Semaphore::new(BUILDING_OF_ONE)),
            held: Mutex::default(),
            open: Mutex::new(Open { requests: 0, idle_since: Instant::now() }),
            evicted: watch::Sender::new(None),
            turned_away: None,
            trusted: AtomicBool::new(false),
        }
    }

    /// A connection that got no place: it is only told why.
    pub(super) fn turned_away(
        guests: Arc<Guests>,
        address: Address,
        place: OwnedSemaphorePermit,
    ) -> Self {
        // Numbers begin with 1, so 0 belongs to no connection that has a place.
        Self { turned_away: Some(place), ..Self::new(guests, 0, address) }
    }

    /// Whether the connection got no place and is only told why.
    pub(crate) const fn is_turned_away(&self) -> bool {
        self.turned_away.is_some()
    }

    pub(crate) fn guests(&self) -> &Arc<Guests> {
        &self.guests
    }

    /// Begins a request. The connection is not idle until the request ends.
    pub(crate) fn begin(self: &Arc<Self>) -> Request {
        lock(&self.open).requests += 1;
        Request { charge: self.take(REQUEST_BYTES, Kind::Standing) }
    }

    /// Since when the connection is idle. `None` while it has a request.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let open = lock(&self.open);
        (open.requests == 0).then_some(open.idle_since)
    }

    /// Accounts for bytes without waiting. If the total is then over the bound, a connection is
    /// evicted.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, kind: Kind) -> Charge {
        let since = self.guests.now_ms();
        let over = {
            let mut held = lock(&self.held);
            held.add(bytes, kind, since);
            held.taken += bytes;
            !held.written_off && self.guests.took(bytes)
        };
        if over {
            self.guests.evict_greediest();
        }
        Charge { guest: Arc::clone(self), bytes, taken: bytes, kind, since, room: None }
    }

    /// Waits until this connection and the whole server have room for the bytes, then accounts for
    /// them.
    pub(crate) async fn room(self: Arc<Self>, bytes: usize) -> Charge {
        let most = units(self.guests.rooms_of_one()).max(1);
        let room = u32::try_from(units(bytes).clamp(1, most)).unwrap_or(u32::MAX);
        // The semaphores are never closed.
        let own = Arc::clone(&self.rooms).acquire_many_owned(room).await.ok();
        let mut all = Box::pin(Arc::clone(&self.guests.rooms).acquire_many_owned(room));
        let all = loop {
            match timeout(PATIENCE, all.as_mut()).await {
                Ok(all) => break all.ok(),
                Err(_) => self.guests.make_room(),
            }
        };
        let (kind, since) = (Kind::Arriving, self.guests.now_ms());
        lock(&self.held).add(bytes, kind, since);
        let room = Some((own, all));
        Charge { guest: self, bytes, taken: 0, kind, since, room }
    }

    /// Waits until the peer has read most of its answers, and few large ones are being built, for it
    /// and for all connections. An answer may be built while the returned value lives, which must not
    /// depend on how fast the peer reads.
    pub(crate) async fn build_answer(&self) -> Building {
        // The semaphores are never closed.
        let own = Arc::clone(&self.building).acquire_owned().await.ok();
        std::future::poll_fn(|context| self.poll_answers(context)).await;
        let all = Arc::clone(&self.guests.building).acquire_owned().await.ok();
        Building { _own: own, _all: all }
    }

    /// Accounts for an answer from when it exists until it is read. A small one is part of its
    /// request.
    pub(crate) fn answered(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        (bytes > REQUEST_BYTES / 2).then(|| self.take(bytes, Kind::Answer))
    }

    /// Accounts for standing bytes, unless the connection already has its share of them.
    pub(crate) fn stand(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let fits = lock(&self.held).standing + bytes <= self.share();
        fits.then(|| self.take(bytes, Kind::Standing))
    }

    /// Whether standing bytes have used up the connection's share.
    pub(crate) fn stands_full(&self) -> bool {
        lock(&self.held).standing >= self.share()
    }

    /// Ready when few enough bytes of this connection are unread.
    pub(crate) fn poll_reads(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut held = lock(&self.held);
        let ready = held.unread < self.share() || self.trusted();
        held.poll(ready, context)
    }

    /// Ready when few enough bytes of this connection's answers are in flight to build another. Its
    /// messages do not count: the one that asks is among them, and would wait for itself.
    fn poll_answers(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut held = lock(&self.held);
        let ready = held.answers < self.guests.answers_of_one();
        held.poll(ready, context)
    }

    pub(crate) fn share(&self) -> usize {
        self.guests.bounds.bytes_per_connection
    }

    /// Bytes in flight times how long they have been so. The connection with the largest weight is
    /// evicted first.
    pub(super) fn weight(&self, now: u64) -> u128 {
        let held = lock(&self.held);
        let moving = u128::from(now).saturating_mul(held.moving as u128);
        let standing = u128::from(STANDING_MS).saturating_mul(held.standing as u128);
        moving.saturating_sub(held.began).saturating_add(standing)
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
        let waiting = {
            let mut held = lock(&self.held);
            if !std::mem::replace(&mut held.written_off, true) {
                self.guests.gave_back(held.taken);
            }
            std::mem::take(&mut held.waiting)
        };
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
            &*self.guests.bounds;
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
            Evicted::Unread => format!(
                "the answer was not read for {stall_ms} ms (bounds.stall_ms): repeat the request from \
                 the last position that was read"
            ),
        })
    }

    /// Counts a stream of this connection that had to end, and gives the status for it.
    pub(crate) fn lost(&self, why: Evicted) -> Status {
        self.guests.evictions.count(why, &self.address);
        self.status(why)
    }
}

impl Guests {
    /// Accounts for taken bytes. Whether the total is over the bound.
    fn took(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Relaxed) + bytes;
        taken > self.bound_on_taken()
    }

    /// Bytes that may be taken without waiting for room, over all connections.
    fn bound_on_taken(&self) -> usize {
        self.bounds.bytes_in_flight - self.all_rooms()
    }

    /// Bytes of large answers that one connection gets before it has read some of them.
    fn answers_of_one(&self) -> usize {
        self.bound_on_taken() / ANSWERS_PART
    }

    fn gave_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Relaxed);
    }

    /// Bytes of room for large messages, over all connections.
    pub(super) fn all_rooms(&self) -> usize {
        self.bounds.bytes_in_flight / ROOMS_PART
    }

    /// The same for one connection: never all of it, so that one connection cannot block the
    /// others.
    fn rooms_of_one(&self) -> usize {
        rooms_of_one(&self.bounds)
    }
}

/// Bytes of room for large messages that one connection gets with these bounds.
pub(crate) fn rooms_of_one(bounds: &Bounds) -> usize {
    bounds.bytes_per_connection.min(bounds.bytes_in_flight / ROOMS_PART / 2)
}

impl BytesHeld {
    /// Ready, or woken when fewer bytes are in flight.
    fn poll(&mut self, ready: bool, context: &Context<'_>) -> Poll<()> {
        if ready {
            return Poll::Ready(());
        }
        if !self.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
            self.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn add(&mut self, bytes: usize, kind: Kind, since: u64) {
        for part in self.parts(kind) {
            *part += bytes;
        }
        if kind != Kind::Standing {
            self.began += u128::from(since) * bytes as u128;
        }
    }

    fn remove(&mut self, bytes: usize, kind: Kind, since: u64) {
        for part in self.parts(kind) {
            *part -= bytes;
        }
        if kind != Kind::Standing {
            self.began -= u128::from(since) * bytes as u128;
        }
    }

    /// The totals that bytes of this kind are part of.
    fn parts(&mut self, kind: Kind) -> impl Iterator<Item = &mut usize> {
        let Self { standing, moving, answers, unread, .. } = self;
        let (first, second, third) = match kind {
            Kind::Standing => (standing, None, None),
            Kind::Arriving => (moving, None, None),
            Kind::Answer => (moving, Some(answers), None),
            Kind::Unread => (moving, Some(answers), Some(unread)),
        };
        [Some(first), second, third].into_iter().flatten()
    }
}

/// Permission to build a large answer.
pub(crate) struct Building {
    _own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// An open request. Ends when dropped.
pub(crate) struct Request {
    charge: Charge,
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut open = lock(&self.charge.guest.open);
        open.requests -= 1;
        open.idle_since = Instant::now();
    }
}

/// Bytes in flight that are accounted to a connection. Released when dropped.
pub(crate) struct Charge {
    guest: Arc<Guest>,
    bytes: usize,
    taken: usize,
    kind: Kind,
    since: u64,
    room: Option<(Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>)>,
}

impl Charge {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Release the room before the tasks that wait for it are woken.
        self.room = None;
        let waiting = {
            let mut held = lock(&self.guest.held);
            held.remove(self.bytes, self.kind, self.since);
            held.taken -= self.taken;
            if !held.written_off {
                self.guest.guests.gave_back(self.taken);
            }
            std::mem::take(&mut held.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Number of units that hold so many bytes.
pub(super) const fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// A poisoned lock is fine: the data is consistent whenever a lock is released, even by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
