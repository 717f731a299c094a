//! Bytes in flight, accounted to their connection. They are *moving* while a message comes in or goes
//! out, which ends soon unless the peer stalls. They are *pending* while a request waits for its
//! answer.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, Waker},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    ANSWERS_PART, Connection, Connections, HUGE, PATIENCE, ROOMS_PART, connection::REQUEST_BYTES,
};
use crate::{Bounds, lock::lock};

/// Bytes of one unit of room: semaphores count in these units.
pub(super) const UNIT: usize = 1 << 10;

/// Memory of one decoded part of a message beside its bytes, roughly: an empty payload takes two bytes on
/// the wire, 80 as a message, and 56 as a value. A message with as many parts as there may be just fits
/// into the bytes in flight.
const PART_BYTES: usize = 150;

/// Bytes of a decoded message with so many parts.
pub(crate) const fn decoded(bytes: usize, parts: usize) -> usize {
    bytes.saturating_add(parts.saturating_mul(PART_BYTES))
}

/// Pending bytes weigh as much as bytes that have been moving for this long.
const PENDING_MS: u64 = 1_000;

/// How bytes in flight are accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeKind {
    /// A message that is arriving, until it is complete.
    Arriving,
    /// An answer that is about to be written.
    Answer,
    /// Part of an answer that is written as fast as the peer reads.
    Unread,
    /// Work that the peer's stream has yet to take.
    Waiting,
    /// Waiting with a request for its answer.
    Pending,
}

/// Bytes in flight of one connection.
#[derive(Default)]
pub(super) struct BytesHeld {
    pending: usize,
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

/// Bytes in flight that are accounted to a connection. Released when dropped.
pub(crate) struct Charge {
    pub(super) connection: Arc<Connection>,
    bytes: usize,
    taken: usize,
    kind: ChargeKind,
    since: u64,
    /// Of the connection, of very large messages, and of all.
    room: [Option<OwnedSemaphorePermit>; 3],
}

impl Charge {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges for a complete message of so many parts, which waits with its request for the answer:
    /// room is for messages that are still arriving.
    pub(crate) fn into_pending(self, parts: usize) -> Self {
        let (connection, bytes) = (Arc::clone(&self.connection), self.bytes);
        drop(self);
        connection.take(decoded(bytes, parts), ChargeKind::Pending)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Release the room before the tasks that wait for it are woken.
        self.room = [None, None, None];
        let waiting = {
            let mut held = lock(&self.connection.held);
            held.remove(self.bytes, self.kind, self.since);
            held.taken -= self.taken;
            if !held.written_off {
                self.connection.connections.gave_back(self.taken);
            }
            std::mem::take(&mut held.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Connection {
    /// Accounts for bytes without waiting. If the total is then over the bound, a connection is
    /// evicted.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, kind: ChargeKind) -> Charge {
        let since = self.connections.now_ms();
        let over = {
            let mut held = lock(&self.held);
            held.add(bytes, kind, since);
            held.taken += bytes;
            !held.written_off && self.connections.took(bytes)
        };
        if over {
            self.connections.evict_greediest();
        }
        Charge {
            connection: Arc::clone(self),
            bytes,
            taken: bytes,
            kind,
            since,
            room: [None, None, None],
        }
    }

    /// Waits until this connection and the whole server have room for the bytes, then accounts for
    /// them.
    pub(crate) async fn room(self: Arc<Self>, bytes: usize) -> Charge {
        let most = units(self.connections.rooms_of_one()).max(1);
        let room = u32::try_from(units(bytes).clamp(1, most)).unwrap_or(u32::MAX);
        // The semaphores are never closed.
        let own = Arc::clone(&self.rooms).acquire_many_owned(room).await.ok();
        let huge = match bytes > HUGE {
            true => self.connections.await_room(&self.connections.huge, room).await,
            false => None,
        };
        let all = self.connections.await_room(&self.connections.rooms, room).await;
        let (kind, since) = (ChargeKind::Arriving, self.connections.now_ms());
        lock(&self.held).add(bytes, kind, since);
        let room = [own, huge, all];
        Charge { connection: self, bytes, taken: 0, kind, since, room }
    }

    /// Accounts for an answer from when it exists until it is read. A small one is part of its
    /// request.
    pub(crate) fn answered(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        (bytes > REQUEST_BYTES / 2).then(|| self.take(bytes, ChargeKind::Answer))
    }

    /// Accounts for pending bytes, unless the connection already has its share of them.
    pub(crate) fn charge_pending(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let fits = lock(&self.held).pending + bytes <= self.share();
        fits.then(|| self.take(bytes, ChargeKind::Pending))
    }

    /// Whether pending bytes have used up the connection's share.
    pub(crate) fn pending_full(&self) -> bool {
        lock(&self.held).pending >= self.share()
    }

    /// Ready when few enough bytes of this connection are unread.
    pub(crate) fn poll_reads(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut held = lock(&self.held);
        let ready = held.unread < self.share() || self.trusted();
        held.poll(ready, context)
    }

    /// Ready when few enough bytes of this connection's answers are in flight to build another. Its
    /// messages do not count: the one that asks is among them, and would wait for itself.
    pub(super) fn poll_answers(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut held = lock(&self.held);
        let ready = held.answers < self.connections.answers_of_one();
        held.poll(ready, context)
    }

    /// Bytes in flight times how long they have been so. The connection with the largest weight is
    /// evicted first.
    pub(super) fn weight(&self, now: u64) -> u128 {
        let held = lock(&self.held);
        let moving = u128::from(now).saturating_mul(held.moving as u128);
        let pending = u128::from(PENDING_MS).saturating_mul(held.pending as u128);
        moving.saturating_sub(held.began).saturating_add(pending)
    }

    /// Writes the bytes of an evicted connection off. Returns the tasks that wait for them.
    pub(super) fn write_off(&self) -> Vec<Waker> {
        let mut held = lock(&self.held);
        if !std::mem::replace(&mut held.written_off, true) {
            self.connections.gave_back(held.taken);
        }
        std::mem::take(&mut held.waiting)
    }
}

impl Connections {
    /// Accounts for taken bytes. Whether the total is over the bound.
    fn took(&self, bytes: usize) -> bool {
        let taken = self.taken.fetch_add(bytes, Relaxed) + bytes;
        taken > self.bound_on_taken()
    }

    /// Bytes that may be taken without waiting for room, over all connections.
    fn bound_on_taken(&self) -> usize {
        self.bounds.bytes_in_flight - self.all_rooms()
    }

    /// Waits until there is so much room, and evicts the greediest if that takes long.
    async fn await_room(&self, rooms: &Arc<Semaphore>, room: u32) -> Option<OwnedSemaphorePermit> {
        let mut waits = Box::pin(Arc::clone(rooms).acquire_many_owned(room));
        loop {
            match timeout(PATIENCE, waits.as_mut()).await {
                // The semaphores are never closed.
                Ok(room) => return room.ok(),
                Err(_) => self.make_room(),
            }
        }
    }

    /// Waits until few large answers are being built.
    pub(crate) async fn build_answer(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.building).acquire_owned().await.ok()
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
    pub(super) fn rooms_of_one(&self) -> usize {
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

    fn add(&mut self, bytes: usize, kind: ChargeKind, since: u64) {
        for part in self.parts(kind) {
            *part += bytes;
        }
        if kind != ChargeKind::Pending {
            self.began += u128::from(since) * bytes as u128;
        }
    }

    fn remove(&mut self, bytes: usize, kind: ChargeKind, since: u64) {
        for part in self.parts(kind) {
            *part -= bytes;
        }
        if kind != ChargeKind::Pending {
            self.began -= u128::from(since) * bytes as u128;
        }
    }

    /// The totals that bytes of this kind are part of.
    fn parts(&mut self, kind: ChargeKind) -> impl Iterator<Item = &mut usize> {
        let Self { pending, moving, answers, unread, .. } = self;
        let (first, second, third) = match kind {
            ChargeKind::Pending => (pending, None, None),
            ChargeKind::Arriving | ChargeKind::Waiting => (moving, None, None),
            ChargeKind::Answer => (moving, Some(answers), None),
            ChargeKind::Unread => (moving, Some(answers), Some(unread)),
        };
        [Some(first), second, third].into_iter().flatten()
    }
}

/// Number of units that hold so many bytes.
pub(super) const fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}
