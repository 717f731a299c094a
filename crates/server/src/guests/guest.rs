//! One connection: the requests that it has open, and the bytes in flight because of it. Bytes *move*
//! while a message comes in or goes out, which is soon over unless somebody wants to hold them. They
//! *stand* while a request waits for its answer.

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

use super::{Evicted, Guests, PATIENCE, ROOMS_PART};
use crate::{Bounds, connection::Address, wire::refused};

/// Room is given out in units of so many bytes.
pub(super) const UNIT: usize = 1 << 10;

/// What an open request costs beside its messages: its headers, its tasks, the transport's own state.
const REQUEST_BYTES: usize = 8 << 10;

/// Bytes that stand weigh as much as bytes that have been moving for so long.
const STANDING_MS: u64 = 1_000;

/// Whether bytes are about to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They are on their way in, or about to go out.
    Moving,
    /// They go out as fast as the peer reads.
    Unread,
    /// They wait with a request for its answer.
    Standing,
}

/// One connection.
pub(crate) struct Guest {
    guests: Arc<Guests>,
    pub(super) number: u64,
    pub(super) address: Address,
    /// Room for what can wait, of this connection alone.
    rooms: Arc<Semaphore>,
    held: Mutex<Held>,
    open: Mutex<Open>,
    evicted: watch::Sender<Option<Evicted>>,
    /// It has no place, and is only told why.
    turned_away: Option<OwnedSemaphorePermit>,
    /// Another node of the same cluster, which has shown who it is.
    trusted: AtomicBool,
}

/// Bytes in flight because of a connection.
#[derive(Default)]
struct Held {
    standing: usize,
    /// All that moves.
    moving: usize,
    /// Of these, what the peer has yet to read.
    unread: usize,
    /// The bytes of each moving charge, times when it began.
    began: u128,
    /// Of all of them, those that did not wait for room.
    taken: usize,
    /// It was evicted: what is left of it counts no more.
    written_off: bool,
    /// Who waits for unread bytes to become fewer.
    waiting: Vec<Waker>,
}

/// Requests that are open, and since when there are none.
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
            held: Mutex::default(),
            open: Mutex::new(Open { requests: 0, idle_since: Instant::now() }),
            evicted: watch::Sender::new(None),
            turned_away: None,
            trusted: AtomicBool::new(false),
        }
    }

    /// One for whom there is no place, and who is told so.
    pub(super) fn turned_away(
        guests: Arc<Guests>,
        address: Address,
        place: OwnedSemaphorePermit,
    ) -> Self {
        // Numbers begin with 1, so this one stands for nobody among those who have a place.
        Self { turned_away: Some(place), ..Self::new(guests, 0, address) }
    }

    /// It has no place, and is only told why.
    pub(crate) const fn is_turned_away(&self) -> bool {
        self.turned_away.is_some()
    }

    pub(crate) fn guests(&self) -> &Arc<Guests> {
        &self.guests
    }

    /// Begins a request. The connection is not idle until it ends.
    pub(crate) fn begin(self: &Arc<Self>) -> Request {
        lock(&self.open).requests += 1;
        Request { charge: self.take(REQUEST_BYTES, Kind::Standing) }
    }

    /// Since when the connection has no request; none if it has one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let open = lock(&self.open);
        (open.requests == 0).then_some(open.idle_since)
    }

    /// Holds bytes without waiting. If that is too much for the whole, somebody has to leave.
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

    /// Holds bytes as soon as there is room for them, beside what the connection and all others hold.
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
        let (kind, since) = (Kind::Moving, self.guests.now_ms());
        lock(&self.held).add(bytes, kind, since);
        let room = Some((own, all));
        Charge { guest: self, bytes, taken: 0, kind, since, room }
    }

    /// Holds bytes that stand, if the connection has not too many of them.
    pub(crate) fn stand(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let fits = lock(&self.held).standing + bytes <= self.share();
        fits.then(|| self.take(bytes, Kind::Standing))
    }

    /// Whether bytes that stand have used up the share.
    pub(crate) fn stands_full(&self) -> bool {
        lock(&self.held).standing >= self.share()
    }

    /// Ready when the peer has not too many bytes left to read.
    pub(crate) fn poll_reads(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut held = lock(&self.held);
        if held.unread < self.share() || self.trusted() {
            return Poll::Ready(());
        }
        if !held.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
            held.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    pub(crate) fn share(&self) -> usize {
        self.guests.bounds.bytes_per_connection
    }

    /// Bytes that it holds, times for how long.
    pub(super) fn weight(&self, now: u64) -> u128 {
        let held = lock(&self.held);
        let moving = u128::from(now).saturating_mul(held.moving as u128);
        let standing = u128::from(STANDING_MS).saturating_mul(held.standing as u128);
        moving.saturating_sub(held.began).saturating_add(standing)
    }

    /// It is another node of the cluster: what it sends is bounded by what nodes send.
    pub(crate) fn trust(&self) {
        self.trusted.store(true, Relaxed);
    }

    pub(crate) fn trusted(&self) -> bool {
        self.trusted.load(Relaxed)
    }

    /// Ends the connection.
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

    /// Why it has to end, as soon as it has to.
    pub(crate) fn evicted(&self) -> impl Future<Output = Evicted> + Send + use<> {
        let mut evicted = self.evicted.subscribe();
        async move {
            let why = evicted.wait_for(Option::is_some).await.ok().and_then(|why| *why);
            match why {
                Some(why) => why,
                // The connection is gone, and so is whoever would be told.
                None => std::future::pending().await,
            }
        }
    }

    /// What its streams are told, if it has to end.
    pub(crate) fn refusal(&self) -> Option<Status> {
        let evicted = *self.evicted.borrow();
        let why = evicted.or(self.is_turned_away().then_some(Evicted::OverShare));
        why.map(|why| self.status(why))
    }

    /// What a stream is told that has to end.
    pub(crate) fn status(&self, why: Evicted) -> Status {
        let Bounds { bytes_in_flight, stall_ms, connections_per_address, .. } =
            &*self.guests.bounds;
        refused(&match why {
            Evicted::Greedy => format!(
                "too many bytes are in flight at the server, and this connection held the most for the \
                 longest; the limit is {bytes_in_flight} (bounds.bytes_in_flight): send and ask for \
                 less at one time, and read what you asked for"
            ),
            Evicted::Idle => "the connection makes place for others: connect again".to_owned(),
            Evicted::OverShare => format!(
                "{} has {connections_per_address} connections, all of them busy, and may have no more \
                 (bounds.connections_per_address): end some, or raise the bound",
                self.address
            ),
            Evicted::Unfinished => format!(
                "the message that was begun has not moved for {stall_ms} ms (bounds.stall_ms): send it \
                 again as a whole"
            ),
            Evicted::Unread => format!(
                "the answer was not read for {stall_ms} ms (bounds.stall_ms): ask again from where you \
                 are"
            ),
        })
    }

    /// Something of it had to end.
    pub(crate) fn lost(&self, why: Evicted) -> Status {
        self.guests.evictions.count(why, &self.address);
        self.status(why)
    }
}

impl Guests {
    /// Whether bytes that were taken are too many.
    fn took(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Relaxed) + bytes;
        taken > self.bounds.bytes_in_flight - self.all_rooms()
    }

    fn gave_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Relaxed);
    }

    /// Bytes that there is room for.
    pub(super) fn all_rooms(&self) -> usize {
        self.bounds.bytes_in_flight / ROOMS_PART
    }

    /// The same for one connection: never all, so that others need not wait for it.
    fn rooms_of_one(&self) -> usize {
        self.bounds.bytes_per_connection.min(self.all_rooms() / 2)
    }
}

impl Held {
    fn add(&mut self, bytes: usize, kind: Kind, since: u64) {
        match kind {
            Kind::Standing => self.standing += bytes,
            Kind::Moving | Kind::Unread => {
                self.moving += bytes;
                self.unread += if kind == Kind::Unread { bytes } else { 0 };
                self.began += u128::from(since) * bytes as u128;
            }
        }
    }

    fn remove(&mut self, bytes: usize, kind: Kind, since: u64) {
        match kind {
            Kind::Standing => self.standing -= bytes,
            Kind::Moving | Kind::Unread => {
                self.moving -= bytes;
                self.unread -= if kind == Kind::Unread { bytes } else { 0 };
                self.began -= u128::from(since) * bytes as u128;
            }
        }
    }
}

/// An open request, until this is dropped.
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

/// Bytes that a connection holds, until this is dropped.
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
        // Before others are woken, who may want it.
        self.room = None;
        let waiting = {
            let mut held = lock(&self.guest.held);
            held.remove(self.bytes, self.kind, self.since);
            held.taken -= self.taken;
            if !held.written_off {
                self.guest.guests.gave_back(self.taken);
            }
            let few = held.unread < self.guest.share();
            if few { std::mem::take(&mut held.waiting) } else { Vec::new() }
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// How many units hold so many bytes.
pub(super) const fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// What is behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
