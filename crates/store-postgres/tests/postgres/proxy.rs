//! A proxy between a store and its database that reads the protocol, and cuts or freezes the
//! connection at a chosen moment.

use std::{
    collections::HashSet,
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

/// Happens once, to the next connection that reaches this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The BEGIN of a transaction is lost with its connection.
    CutAtBegin,
    /// The statement that writes a whole group is lost with its connection.
    CutBeforeCommit,
    /// The response to that statement is lost with its connection.
    CutAfterCommit,
    /// From the COMMIT on, nothing is forwarded and nothing is closed.
    FreezeAtCommit,
}

#[derive(Default)]
struct Moment {
    fault: Mutex<Option<Fault>>,
    struck: Condvar,
    /// How many times all connections were frozen.
    frozen: AtomicUsize,
}

impl Moment {
    /// Whether the fault happens now.
    fn strikes(&self, fault: Fault) -> bool {
        let mut next = self.fault.lock().unwrap();
        let strikes = *next == Some(fault);
        if strikes {
            *next = None;
            self.struck.notify_all();
        }
        strikes
    }
}

pub(crate) struct Proxy {
    address: SocketAddr,
    moment: Arc<Moment>,
}

impl Proxy {
    /// Listens on a free port and forwards to a database on `port`. Its threads end with their
    /// connections.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let moment = Arc::<Moment>::default();
        let shared = Arc::clone(&moment);
        thread::spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(("127.0.0.1", port));
                let (Ok(client), Ok(server)) = (client, server) else { continue };
                pass(client, server, &shared);
            }
        });
        Self { address, moment }
    }

    /// Address of a database behind it, without TLS, so that the proxy can read the protocol.
    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://abide@{}/{database}?sslmode=disable", self.address)
    }

    /// Injects the fault at its moment.
    pub(crate) fn prepare(&self, fault: Fault) {
        *self.moment.fault.lock().unwrap() = Some(fault);
    }

    /// From now on, nothing is forwarded on any existing connection, and nothing is closed.
    pub(crate) fn freeze(&self) {
        self.moment.frozen.fetch_add(1, SeqCst);
    }

    /// Waits until the fault has happened.
    pub(crate) fn wait_until_struck(&self) {
        let mut fault = self.moment.fault.lock().unwrap();
        while fault.is_some() {
            fault = self.moment.struck.wait(fault).unwrap();
        }
    }
}

fn pass(client: TcpStream, server: TcpStream, moment: &Arc<Moment>) {
    let ends = || (client.try_clone().unwrap(), server.try_clone().unwrap());
    let ((from_client, to_server), of_client) = (ends(), Arc::clone(moment));
    let ((to_client, from_server), of_server) = (ends(), Arc::clone(moment));
    let writing = Arc::<AtomicBool>::default();
    let written = Arc::clone(&writing);
    thread::spawn(move || requests(from_client, to_server, &of_client, &writing));
    thread::spawn(move || answers(from_server, to_client, &of_server, &written));
}

/// Reads one message: its first byte is the type, except in the very first message, which has none.
fn message(from: &mut TcpStream, first: bool) -> Option<Vec<u8>> {
    let head = if first { 4 } else { 5 };
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes).ok()?;
    let length = u32::from_be_bytes(bytes[head - 4..].try_into().unwrap());
    let length = usize::try_from(length).unwrap();
    bytes.resize(head - 4 + length, 0);
    from.read_exact(&mut bytes[head..]).ok()?;
    Some(bytes)
}

fn says(message: &[u8], kind: u8, text: &str) -> bool {
    message.first() == Some(&kind) && message[5..].strip_suffix(b"\0") == Some(text.as_bytes())
}

/// The statements that write whole groups, by the names that they are prepared under.
#[derive(Default)]
struct GroupStatements(HashSet<Vec<u8>>);

impl GroupStatements {
    /// Whether the message executes one of them.
    fn executed_by(&mut self, message: &[u8]) -> bool {
        let mut texts = message.get(5..).unwrap_or_default().split(|byte| *byte == 0);
        let (Some(one), Some(two)) = (texts.next(), texts.next()) else { return false };
        match message.first() {
            // Prepares: name, SQL.
            Some(b'P') if two.starts_with(b"WITH w0 ") => {
                self.0.insert(one.to_vec());
                false
            }
            // Binds: portal, name.
            Some(b'B') => self.0.contains(two),
            _ => false,
        }
    }
}

fn requests(mut client: TcpStream, mut server: TcpStream, moment: &Moment, writing: &AtomicBool) {
    let mut first = true;
    let mut statements = GroupStatements::default();
    let frozen = moment.frozen.load(SeqCst);
    while let Some(bytes) = message(&mut client, first) {
        let writes = !first && statements.executed_by(&bytes);
        first = false;
        if moment.frozen.load(SeqCst) != frozen {
            std::mem::forget((client, server));
            return;
        }
        if says(&bytes, b'Q', "BEGIN") && moment.strikes(Fault::CutAtBegin)
            || writes && moment.strikes(Fault::CutBeforeCommit)
        {
            break;
        }
        if says(&bytes, b'Q', "COMMIT") && moment.strikes(Fault::FreezeAtCommit) {
            // Leaves the connection open forever.
            std::mem::forget((client, server));
            return;
        }
        if writes {
            writing.store(true, SeqCst);
        }
        if server.write_all(&bytes).is_err() {
            break;
        }
    }
    cut(&client, &server);
}

fn answers(mut server: TcpStream, mut client: TcpStream, moment: &Moment, written: &AtomicBool) {
    while let Some(bytes) = message(&mut server, false) {
        // The database is ready again when the statement is committed.
        if bytes.first() == Some(&b'Z')
            && written.swap(false, SeqCst)
            && moment.strikes(Fault::CutAfterCommit)
        {
            break;
        }
        if client.write_all(&bytes).is_err() {
            break;
        }
    }
    cut(&client, &server);
}

fn cut(client: &TcpStream, server: &TcpStream) {
    // The connection may already be closed.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
