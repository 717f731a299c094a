//! Long-lived streams: worker sessions, streams of calls, followers. They are bounded over all and per
//! address. When there is no place, the holder of most streams loses the one that has been idle for
//! longest, so that no holder can lock the others out. Links of nodes have places of their own.

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt as _, task::AtomicWaker};
use tonic::Status;

use super::{Connection, Connections, Evicted};
use crate::{accept::Address, framing::refused, lock::lock};

/// Callers of one address that claim to be nodes and have yet to prove it. Proofs come at once.
const UNPROVEN_PER_ADDRESS: usize = 8;

/// The same for all addresses.
const UNPROVEN: usize = 64;

/// A holder of so many times more streams than another has to give one up to it, idle or not.
const MUCH_MORE: usize = 2;

#[derive(Default)]
pub(super) struct Streams {
    open: BTreeMap<u64, Arc<StreamEntry>>,
    /// Number of streams of each address.
    addresses: HashMap<Address, usize>,
    /// Number of streams of each connection.
    connections: HashMap<u64, usize>,
    unproven: HashMap<Address, usize>,
    /// Links of proven nodes.
    links: usize,
    opened: u64,
}

/// What is known of one stream when a place is needed for another.
struct StreamEntry {
    address: Address,
    connection: u64,
    /// Whether the stream has nothing in flight.
    idle: AtomicBool,
    /// When it last sent something.
    moved_ms: AtomicU64,
    evicted: AtomicBool,
    waker: AtomicWaker,
}

impl Streams {
    pub(super) fn count(&self) -> usize {
        self.open.len() + self.links + self.unproven.values().sum::<usize>()
    }

    fn of(&self, address: Address, connection: u64) -> (usize, usize) {
        let address = self.addresses.get(&address).copied().unwrap_or_default();
        (address, self.connections.get(&connection).copied().unwrap_or_default())
    }

    fn add(&mut self, entry: Arc<StreamEntry>) -> u64 {
        self.opened += 1;
        *self.addresses.entry(entry.address).or_default() += 1;
        *self.connections.entry(entry.connection).or_default() += 1;
        self.open.insert(self.opened, entry);
        self.opened
    }

    fn remove(&mut self, number: u64) -> Option<Arc<StreamEntry>> {
        let entry = self.open.remove(&number)?;
        take_one(&mut self.addresses, &entry.address);
        take_one(&mut self.connections, &entry.connection);
        Some(entry)
    }

    /// The stream that has to leave for another one of this connection: of the address with most streams,
    /// or of the connection's own if that has its share. None if nothing is idle there and the connection holds
    /// about as many.
    fn least_missed(&self, connection: &Connection, own: bool) -> Option<u64> {
        let largest = self.addresses.iter().max_by_key(|(_, streams)| **streams);
        let from = if own { connection.address } else { *largest?.0 };
        let streams = self.open.iter().filter(|(_, entry)| entry.address == from);
        let (number, entry) = streams.max_by_key(|(number, entry)| {
            let idle = entry.idle.load(Relaxed);
            let of_connection = self.connections.get(&entry.connection);
            let moved = (entry.moved_ms.load(Relaxed), **number);
            (idle, of_connection, std::cmp::Reverse(moved))
        })?;
        let theirs = self.of(entry.address, entry.connection);
        let ours = self.of(connection.address, connection.number);
        let much_more = match from == connection.address {
            true => theirs.1 > MUCH_MORE * (ours.1 + 1),
            false => theirs.0 > MUCH_MORE * (ours.0 + 1),
        };
        (entry.idle.load(Relaxed) || much_more).then_some(*number)
    }
}

fn take_one<K: std::hash::Hash + Eq + Clone>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Connection {
    /// A place for a long-lived stream, to be held until the stream ends.
    pub(crate) fn stream(self: &Arc<Self>) -> Result<StreamPlace, Status> {
        let connections = self.connections();
        let (limit, share) = (connections.bounds.streams, connections.bounds.streams_per_address);
        let mut streams = lock(&connections.streams);
        let own = streams.of(self.address, self.number).0;
        let leaving = if own >= share || streams.open.len() >= limit {
            let leaving = streams.least_missed(self, own >= share);
            let refusal = || match own >= share {
                true => refused(&format!(
                    "{} has {own} long-lived streams, all of them busy, which is the limit \
                     (bounds.streams_per_address): close some, or raise the limit",
                    self.address
                )),
                false => refused(&format!(
                    "the server has {limit} long-lived streams, all of them busy, which is the limit \
                     (bounds.streams): close some, or raise the limit"
                )),
            };
            streams.remove(leaving.ok_or_else(refusal)?)
        } else {
            None
        };
        let entry = Arc::new(StreamEntry {
            address: self.address,
            connection: self.number,
            idle: AtomicBool::new(false),
            moved_ms: AtomicU64::new(connections.now_ms()),
            evicted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        let number = streams.add(Arc::clone(&entry));
        drop(streams);
        if let Some(leaving) = leaving {
            connections.evictions.count(Evicted::Stream, &leaving.address);
            leaving.evicted.store(true, Relaxed);
            leaving.waker.wake();
        }
        Ok(StreamPlace { connection: Arc::clone(self), number, entry })
    }

    /// A place for the link of a caller that claims to be a node.
    pub(crate) fn link(self: &Arc<Self>) -> Result<LinkPlace, Status> {
        let mut streams = lock(&self.connections().streams);
        let all: usize = streams.unproven.values().sum();
        let own = streams.unproven.get(&self.address).copied().unwrap_or_default();
        if own >= UNPROVEN_PER_ADDRESS || all >= UNPROVEN {
            return Err(refused(
                "too many callers claim to be nodes and have yet to prove it: connect again",
            ));
        }
        streams.unproven.insert(self.address, own + 1);
        drop(streams);
        Ok(LinkPlace { connection: Arc::clone(self), proven: false })
    }
}

impl Connections {
    /// Number of open long-lived streams.
    pub(crate) fn open_streams(&self) -> usize {
        lock(&self.streams).count()
    }
}

/// The place of a long-lived stream. Freed when dropped.
pub(crate) struct StreamPlace {
    connection: Arc<Connection>,
    number: u64,
    entry: Arc<StreamEntry>,
}

impl StreamPlace {
    /// Says whether the stream has nothing in flight. Only such a stream leaves for others of the same
    /// size.
    pub(crate) fn set_idle(&self, idle: bool) {
        self.entry.idle.store(idle, Relaxed);
    }

    fn moved(&self) {
        self.entry.moved_ms.store(self.connection.connections().now_ms(), Relaxed);
    }

    /// The stream, which ends with the reason if it has to leave.
    pub(crate) fn hold<S>(self: Arc<Self>, stream: S) -> PlacedStream<S> {
        PlacedStream { place: self, stream: Some(Box::pin(stream)) }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        lock(&self.connection.connections().streams).remove(self.number);
    }
}

/// A stream in its place.
pub(crate) struct PlacedStream<S> {
    place: Arc<StreamPlace>,
    /// `None` after the end.
    stream: Option<Pin<Box<S>>>,
}

impl<T, S: Stream<Item = Result<T, Status>>> Stream for PlacedStream<S> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else { return Poll::Ready(None) };
        this.place.entry.waker.register(context.waker());
        if this.place.entry.evicted.load(Relaxed) {
            this.stream = None;
            return Poll::Ready(Some(Err(this.place.connection.status(Evicted::Stream))));
        }
        let next = stream.poll_next_unpin(context);
        match &next {
            Poll::Ready(Some(_)) => this.place.moved(),
            Poll::Ready(None) => this.stream = None,
            Poll::Pending => {}
        }
        next
    }
}

/// The place of a link. Freed when dropped.
pub(crate) struct LinkPlace {
    connection: Arc<Connection>,
    proven: bool,
}

impl LinkPlace {
    /// The caller has proven to be a node, and keeps its place.
    pub(crate) fn prove(&mut self) {
        self.connection.trust();
        if !std::mem::replace(&mut self.proven, true) {
            let mut streams = lock(&self.connection.connections().streams);
            take_one(&mut streams.unproven, &self.connection.address);
            streams.links += 1;
        }
    }
}

impl Drop for LinkPlace {
    fn drop(&mut self) {
        let mut streams = lock(&self.connection.connections().streams);
        if self.proven {
            streams.links -= 1;
        } else {
            take_one(&mut streams.unproven, &self.connection.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;
    use crate::{Bounds, connections::Admission};

    async fn connections(streams: usize, streams_per_address: usize) -> Arc<Connections> {
        Connections::new(Arc::new(Bounds { streams, streams_per_address, ..Bounds::default() }))
    }

    async fn come(connections: &Arc<Connections>, last: u8) -> Admission {
        connections.place(([10, 0, 0, last], 1).into()).await.expect("a place")
    }

    /// Opens streams, each of which is idle or not.
    fn open(connection: &Admission, streams: usize, idle: bool) -> Vec<Arc<StreamPlace>> {
        let places = (0..streams).map(|_| {
            let place = connection.connection.stream().expect("a place");
            place.set_idle(idle);
            Arc::new(place)
        });
        places.collect()
    }

    /// How many of the streams had to leave.
    fn left(places: &[Arc<StreamPlace>]) -> usize {
        let ended = |place: &&Arc<StreamPlace>| {
            let never = stream::pending::<Result<(), Status>>();
            let next = Arc::clone(place).hold(never).next().now_or_never();
            next.is_some_and(|next| next.is_some_and(|next| next.is_err()))
        };
        places.iter().filter(ended).count()
    }

    #[tokio::test]
    async fn the_largest_holder_makes_room_for_others() {
        let connections = connections(10, 9).await;
        let (greedy, other) = (come(&connections, 1).await, come(&connections, 2).await);
        let held = open(&greedy, 9, true);
        let honest = open(&other, 4, false);
        assert_eq!((left(&held), left(&honest)), (3, 0));
        assert_eq!(connections.open_streams(), 10);
    }

    #[tokio::test]
    async fn an_address_over_its_share_loses_its_own_idle_streams_only() {
        let connections = connections(10, 3).await;
        let (one, two) = (come(&connections, 1).await, come(&connections, 1).await);
        let (first, other) = (open(&one, 3, true), come(&connections, 2).await);
        let others = open(&other, 1, true);
        let second = open(&two, 2, false);
        assert_eq!((left(&first), left(&second), left(&others)), (2, 0, 0));
    }

    /// Streams with something in flight leave only for those who hold much less.
    #[tokio::test]
    async fn busy_streams_lock_no_other_out_and_do_not_displace_each_other() {
        let connections = connections(8, 8).await;
        let (one, two) = (come(&connections, 1).await, come(&connections, 1).await);
        let busy = open(&one, 8, false);
        let few = open(&two, 2, false);
        assert_eq!((left(&busy), left(&few)), (2, 0));
        let refused = two.connection.stream().err().expect("both hold about as many");
        assert!(refused.message().contains("bounds.streams_per_address"), "{refused}");
        assert!(!refused.message().contains("DescribeRun"), "{refused}");
        drop(busy);
        open(&two, 1, false);
    }

    #[tokio::test]
    async fn nodes_have_places_of_their_own() {
        let connections = connections(1, 1).await;
        let node = come(&connections, 1).await;
        let taken = open(&node, 1, false);
        let mut links: Vec<_> =
            (0..UNPROVEN_PER_ADDRESS).map(|_| node.connection.link().expect("a place")).collect();
        assert!(node.connection.link().is_err(), "too many have proven nothing");
        links[0].prove();
        let another = node.connection.link().expect("one has proven to be a node");
        assert_eq!(connections.open_streams(), 1 + UNPROVEN_PER_ADDRESS + 1);
        drop((links, another, taken));
        assert_eq!(connections.open_streams(), 0);
    }
}
