//! The servers of a transport. One of them is used at a time. When it cannot be reached, falls
//! silent or cannot answer, the next one is used, and after the last the first again. Each switch
//! makes a new connection, so that nothing waits for an old one.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use abide_core::operation::CallError;
use abide_proto::error::reason;
use tokio::time::timeout;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};
use uuid::Uuid;

use super::options::{GrpcOptions, no_address};
use crate::lock::lock;

pub(super) struct Servers {
    places: Vec<ServerAddress>,
    /// How long a server may take to send its first message.
    patience: Duration,
    current: Mutex<Current>,
}

struct ServerAddress {
    address: String,
    endpoint: Endpoint,
}

/// The server in use.
struct Current {
    /// Its index in `places`.
    index: usize,
    way: Arc<Connection>,
}

/// The connection to one server, until the transport switches to another.
pub(super) struct Connection {
    pub(super) channel: Channel,
    /// The server's address in error messages; none if it is the only server.
    name: Option<String>,
    patience: Duration,
    left: AtomicBool,
}

impl Servers {
    /// The servers of these options. Connections are made on demand.
    pub(super) fn new(options: &GrpcOptions) -> Result<Self, CallError> {
        let places = places(options)?;
        Self::beginning(options, places, |first| first.endpoint.connect_lazy())
    }

    /// The servers of these options, connected to one of them, or the error if none can be reached.
    pub(super) async fn connected(options: &GrpcOptions) -> Result<Self, CallError> {
        let mut places = places(options)?;
        let mut unreachable = Vec::new();
        for index in 0..places.len() {
            let ServerAddress { address, endpoint } = &places[index];
            let connecting = async {
                let lost = |error| Status::from_error(Box::new(error));
                endpoint.connect().await.map_err(lost)
            };
            match within(options.patience(), connecting).await {
                Ok(channel) => {
                    places.rotate_left(index);
                    return Self::beginning(options, places, |_| channel);
                }
                Err(status) => unreachable.push(format!("{address}: {}", reason(&status))),
            }
        }
        Err(CallError::Unavailable(unreachable.join("; ")))
    }

    fn beginning(
        options: &GrpcOptions,
        places: Vec<ServerAddress>,
        connect: impl FnOnce(&ServerAddress) -> Channel,
    ) -> Result<Self, CallError> {
        let patience = options.patience();
        let first = places.first().ok_or_else(no_address)?;
        let way = Connection::new(first, places.len(), connect(first), patience);
        let current = Mutex::new(Current { index: 0, way: Arc::new(way) });
        Ok(Self { places, patience, current })
    }

    /// The connection to the current server; to the next one if the last was left.
    pub(super) fn way(&self) -> Arc<Connection> {
        let mut current = lock(&self.current);
        if current.way.left() {
            current.index = (current.index + 1) % self.places.len();
            let next = &self.places[current.index];
            let channel = next.endpoint.connect_lazy();
            current.way =
                Arc::new(Connection::new(next, self.places.len(), channel, self.patience));
        }
        Arc::clone(&current.way)
    }
}

/// The servers of these options, in the order of their use.
fn places(options: &GrpcOptions) -> Result<Vec<ServerAddress>, CallError> {
    let place = |address: &String| {
        Ok(ServerAddress { address: address.clone(), endpoint: options.endpoint(address)? })
    };
    let mut places = options.addresses.iter().map(place).collect::<Result<Vec<_>, CallError>>()?;
    if options.shuffle {
        // Random ids give a random order without another dependency.
        places.sort_by_cached_key(|_| Uuid::new_v4());
    }
    Ok(places)
}

impl Connection {
    fn new(place: &ServerAddress, servers: usize, channel: Channel, patience: Duration) -> Self {
        let name = (servers > 1).then(|| place.address.clone());
        Self { channel, name, patience, left: AtomicBool::new(false) }
    }

    /// Waits for the server's first message, up to the timeout: a hung server accepts connections
    /// without answering.
    pub(super) async fn first<T>(
        &self,
        word: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        within(self.patience, word).await
    }

    /// Stops using the server for new calls.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    pub(super) fn left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    pub(super) const fn has_others(&self) -> bool {
        self.name.is_some()
    }

    /// Adds the server's address to a message, if there are several servers.
    pub(super) fn saying(&self, what: String) -> String {
        match &self.name {
            Some(name) => format!("{name}: {what}"),
            None => what,
        }
    }
}

async fn within<T>(
    patience: Duration,
    word: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let silent = |_| Err(Status::unavailable(format!("no response within {patience:?}")));
    timeout(patience, word).await.unwrap_or_else(silent)
}

/// Counts the calls in a row that a server could not answer. Which runs a server can serve changes,
/// so one such answer means little; after several, another server may do better.
pub(super) struct Refusals {
    bound: u32,
    in_a_row: AtomicU32,
}

impl Refusals {
    pub(super) const fn new(bound: u32) -> Self {
        Self { bound, in_a_row: AtomicU32::new(0) }
    }

    /// Counts an answer; returns whether the bound is reached.
    pub(super) fn too_many<T>(&self, answer: &Result<T, CallError>) -> bool {
        if matches!(answer, Err(CallError::Unavailable(_) | CallError::NotServed)) {
            return self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= self.bound;
        }
        // Written only on change, because most answers are good and arrive on many threads.
        if self.in_a_row.load(Ordering::Relaxed) > 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn servers(options: &GrpcOptions) -> Servers {
        Servers::new(options).expect("good addresses")
    }

    fn name(way: &Connection) -> String {
        way.name.clone().expect("there are several")
    }

    #[tokio::test]
    async fn who_is_left_is_followed_by_the_next() {
        let options = GrpcOptions::new("http://a,http://b, http://c");
        let servers = servers(&GrpcOptions { shuffle: false, ..options });
        let mut used = Vec::new();
        for _ in 0..4 {
            let way = servers.way();
            used.push(name(&way));
            assert!(Arc::ptr_eq(&way, &servers.way()));
            way.leave();
            way.leave();
        }
        assert_eq!(used, ["http://a", "http://b", "http://c", "http://a"]);
    }

    #[tokio::test]
    async fn transports_begin_with_different_servers() {
        let options = GrpcOptions::new("http://a,http://b");
        let firsts: BTreeSet<_> = (0..64).map(|_| name(&servers(&options).way())).collect();
        assert_eq!(firsts.len(), 2);
    }

    #[test]
    fn only_refusals_in_a_row_count() {
        let refusals = Refusals::new(2);
        let refused = Err::<(), _>(CallError::NotServed);
        assert!(!refusals.too_many(&refused));
        assert!(!refusals.too_many(&Ok(())));
        assert!(!refusals.too_many(&Err::<(), _>(CallError::Unavailable("no lease".into()))));
        assert!(!refusals.too_many(&Err::<(), _>(CallError::NotFound)));
        assert!(!refusals.too_many(&refused));
        assert!(refusals.too_many(&refused));
    }
}
