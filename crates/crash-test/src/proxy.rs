//! A proxy to the database that can be cut. Each node has its own, so that it can be cut off while
//! its clients and the other nodes still reach it.

use std::{
    collections::HashSet,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What happens to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    Open,
    /// Connections are closed, and new ones as soon as they are made.
    Closed,
    /// Connections stay open, and everything sent on them disappears.
    Silent,
    /// A connection is closed as soon as it has delivered a commit to the database, so that the
    /// node never gets the answer.
    LosesAnswers,
}

/// A listener that forwards everything to the database, until it is told otherwise.
pub(crate) struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Traffic>,
    lost: Arc<AtomicUsize>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port and forwards connections to this database.
    pub(crate) async fn start(database: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (way, changes) = watch::channel(Traffic::Open);
        let lost = Arc::new(AtomicUsize::new(0));
        let listening = tokio::spawn(listen(listener, database, changes, Arc::clone(&lost)));
        Ok(Self { address, way, lost, listening })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to bytes from now on.
    pub(crate) fn set(&self, way: Traffic) {
        self.way.send_replace(way);
    }

    /// How many commits were delivered whose answer was lost.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(
    listener: TcpListener,
    database: String,
    changes: watch::Receiver<Traffic>,
    lost: Arc<AtomicUsize>,
) {
    while let Ok((node, _)) = listener.accept().await {
        let (database, changes, lost) = (database.clone(), changes.clone(), Arc::clone(&lost));
        tokio::spawn(async move {
            // However a connection ends, the node notices.
            drop(carry(node, &database, changes, &lost).await);
        });
    }
}

/// Forwards one connection until either side or the fault ends it.
async fn carry(
    mut node: TcpStream,
    database: &str,
    changes: watch::Receiver<Traffic>,
    lost: &AtomicUsize,
) -> io::Result<()> {
    if *changes.borrow() == Traffic::Closed {
        return Ok(());
    }
    let mut database = TcpStream::connect(database).await?;
    node.set_nodelay(true)?;
    database.set_nodelay(true)?;
    let (from_node, to_node) = node.split();
    let (from_database, to_database) = database.split();
    let mut watched = changes.clone();
    let closed = async { watched.wait_for(|way| *way == Traffic::Closed).await.map(drop) };
    tokio::select! {
        ended = copy(from_node, to_database, &changes, Some(lost)) => ended,
        ended = copy(from_database, to_node, &changes, None) => ended,
        _ = closed => Ok(()),
    }
}

/// Forwards bytes. With `lost`, it ends the connection right after a commit if answers are to be
/// lost, and counts it there.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    changes: &watch::Receiver<Traffic>,
    lost: Option<&AtomicUsize>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut requests = Requests::default();
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        let way = *changes.borrow();
        if way == Traffic::Silent {
            // A stream that has lost bytes is useless: it ends with the silence.
            return swallow(from, changes.clone()).await;
        }
        let bytes = &buffer[..count];
        to.write_all(bytes).await?;
        if let Some(lost) = lost
            && requests.end_in_commit(bytes)
            && way == Traffic::LosesAnswers
        {
            lost.fetch_add(1, Relaxed);
            return Ok(());
        }
    }
}

/// Reads and discards everything, until the proxy is no longer silent.
async fn swallow(
    mut from: impl AsyncRead + Unpin,
    mut changes: watch::Receiver<Traffic>,
) -> io::Result<()> {
    let mut nobody = tokio::io::sink();
    let swallowed = async {
        // If the peer closes the connection, that goes unnoticed too.
        drop(tokio::io::copy(&mut from, &mut nobody).await);
        std::future::pending::<()>().await;
    };
    let silent = async { changes.wait_for(|way| *way != Traffic::Silent).await.map(drop) };
    tokio::select! {
        () = swallowed => {}
        _ = silent => {}
    }
    Ok(())
}

/// What a node has sent to the database on one connection, as messages of its protocol.
#[derive(Default)]
struct Requests {
    /// The first message, which has no type, has been read.
    greeted: bool,
    /// The beginning of a message.
    unread: Vec<u8>,
    /// Names of the prepared statements that write a whole group.
    groups: HashSet<Vec<u8>>,
    /// Such a statement was sent, and the database is not yet asked to execute it.
    writing: bool,
}

impl Requests {
    /// Adds bytes; returns whether they are the end of a commit.
    fn end_in_commit(&mut self, bytes: &[u8]) -> bool {
        self.unread.extend_from_slice(bytes);
        let mut commits = false;
        while let Some(message) = self.next() {
            commits |= self.commits(&message);
        }
        commits
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let kind = usize::from(self.greeted);
        let length = self.unread.get(kind..kind + 4)?.try_into().ok()?;
        let end = kind + usize::try_from(u32::from_be_bytes(length)).ok()?;
        if self.unread.len() < end {
            return None;
        }
        self.greeted = true;
        let rest = self.unread.split_off(end);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    /// Whether the database commits because of this message: it is COMMIT, or asks for the execution of a
    /// statement that is a whole transaction.
    fn commits(&mut self, message: &[u8]) -> bool {
        let mut texts = message.get(5..).unwrap_or_default().split(|byte| *byte == 0);
        let (first, second) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        match message.first() {
            Some(b'Q') => return first == b"COMMIT",
            // Prepares a statement: its name and SQL.
            Some(b'P') if second.starts_with(b"WITH w0 ") => drop(self.groups.insert(first.into())),
            // Binds its parameters: a portal and its name.
            Some(b'B') => self.writing |= self.groups.contains(second),
            Some(b'S') => return std::mem::take(&mut self.writing),
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that echoes each message.
    async fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    drop(tokio::io::copy(&mut read, &mut write).await);
                });
            }
        });
        place
    }

    async fn say(connection: &mut TcpStream, text: &[u8]) -> Vec<u8> {
        connection.write_all(text).await.unwrap();
        let mut heard = vec![0; text.len()];
        match connection.read_exact(&mut heard).await {
            Ok(_) => heard,
            Err(_) => Vec::new(),
        }
    }

    #[tokio::test]
    async fn bytes_pass_until_the_way_is_closed() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut connection = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(say(&mut connection, b"hello").await, b"hello");
        proxy.set(Traffic::Closed);
        assert_eq!(say(&mut connection, b"hello").await, b"");
        let mut connection = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(say(&mut connection, b"hello").await, b"");
        proxy.set(Traffic::Open);
        let mut connection = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(say(&mut connection, b"hello").await, b"hello");
    }

    #[tokio::test]
    async fn a_connection_that_has_lost_bytes_carries_no_others() {
        let (way, changes) = watch::channel(Traffic::Silent);
        let (mut node, from) = tokio::io::duplex(64);
        let (to, mut database) = tokio::io::duplex(64);
        node.write_all(b"lost").await.unwrap();
        let mut copying = Box::pin(copy(from, to, &changes, None));
        tokio::select! {
            biased;
            _ = &mut copying => panic!("it ends with the silence"),
            () = std::future::ready(()) => {}
        }
        way.send_replace(Traffic::Open);
        copying.await.unwrap();
        let mut heard = Vec::new();
        database.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"");
    }

    #[tokio::test]
    async fn only_the_answer_to_a_commit_is_lost() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        proxy.set(Traffic::LosesAnswers);
        let mut connection = TcpStream::connect(proxy.address()).await.unwrap();
        for passed in [&b"\0\0\0\x05x"[..], &message(b'Q', b"BEGIN\0")] {
            assert_eq!(say(&mut connection, passed).await, passed);
        }
        assert_eq!(proxy.lost(), 0);
        assert_eq!(say(&mut connection, &message(b'Q', b"COMMIT\0")).await, b"");
        assert_eq!(proxy.lost(), 1);
    }

    #[test]
    fn a_statement_that_writes_a_group_commits_when_it_is_executed() {
        let mut requests = Requests::default();
        let prepared = message(b'P', b"s1\0WITH w0 AS (INSERT)\0\0\0");
        let read = message(b'P', b"s2\0SELECT 1\0\0\0");
        let sync = message(b'S', b"");
        for sent in [&b"\0\0\0\x05x"[..], &prepared, &read, &sync] {
            assert!(!requests.end_in_commit(sent));
        }
        assert!(!requests.end_in_commit(&[message(b'B', b"\0s2\0"), sync.clone()].concat()));
        // It may come in pieces.
        let written = [message(b'B', b"\0s1\0"), sync].concat();
        let (begin, end) = written.split_at(7);
        assert!(!requests.end_in_commit(begin));
        assert!(requests.end_in_commit(end));
    }

    /// A message of the database's protocol.
    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }
}
