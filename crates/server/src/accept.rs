//! Accepts connections. A silent connection is closed. A new connection for which there is no place
//! is refused, or waits for a place.

use std::{
    fmt, io,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep, sleep, sleep_until},
};
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::connections::{Admission, Connections};

/// Pause before the next attempt when accepting fails, for example because file descriptors have
/// run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// Before its first bytes.
    pub(crate) first: Duration,
    /// Between bytes. Longer than a live peer takes to answer a ping.
    pub(crate) later: Duration,
}

/// The origin of a connection. All addresses of a network that one machine may own count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address(IpAddr);

impl Address {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            // The machine chooses the lower half itself.
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) struct Acceptor {
    listener: TcpListener,
    connections: Arc<Connections>,
    silence: Silence,
}

impl Acceptor {
    pub(crate) fn new(
        listener: TcpListener,
        connections: Arc<Connections>,
        silence: Silence,
    ) -> Self {
        Self { listener, connections, silence }
    }

    /// The next connection that gets a place.
    pub(crate) async fn next(&self) -> (Socket, Admission) {
        loop {
            let (stream, address) = persist(|| self.listener.accept()).await;
            let Some(place) = self.connections.place(address).await else { continue };
            // Frames are written whole, so waiting to fill a packet only costs time. A connection
            // that has ended meanwhile reports it on the next read.
            let _ = stream.set_nodelay(true);
            return (Socket::new(stream, self.silence), place);
        }
    }
}

/// Accepts until it succeeds. An error that is not about the incoming connection would repeat at
/// once, so the next attempt waits.
async fn persist<T, F>(mut accept: impl FnMut() -> F) -> T
where
    F: Future<Output = io::Result<T>>,
{
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// An accepted connection that fails its reads when the peer is silent for too long.
pub(crate) struct Socket {
    stream: TcpStream,
    silence: Silence,
    /// When the peer has been silent for too long. It moves with every byte; the timer is reset
    /// only when it fires.
    silent_at: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Socket {
    fn new(stream: TcpStream, silence: Silence) -> Self {
        let silent_at = Instant::now() + silence.first;
        let alarm = Box::pin(sleep_until(silent_at));
        Self { stream, silence, silent_at, alarm }
    }

    /// Ready when the peer has been silent for too long.
    fn poll_silent(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.alarm.as_mut().poll(context));
            if self.silent_at <= self.alarm.deadline() {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(self.silent_at);
        }
    }
}

impl Connected for Socket {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            self.silent_at = Instant::now() + self.silence.later;
            return read;
        }
        ready!(self.poll_silent(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::VecDeque, future::ready, io::ErrorKind};

    use super::*;

    /// Time until a connection is accepted after failures of these kinds.
    async fn wait(failures: impl IntoIterator<Item = ErrorKind>) -> Duration {
        let begun = Instant::now();
        let failures = RefCell::new(failures.into_iter().collect::<VecDeque<_>>());
        let accept =
            || ready(failures.borrow_mut().pop_front().map_or(Ok(()), |kind| Err(kind.into())));
        persist(accept).await;
        assert!(failures.borrow().is_empty());
        begun.elapsed()
    }

    #[test]
    fn addresses_of_one_machine_are_one() {
        let of = |address: &str| Address::of(address.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_accept_that_fails_for_all_waits_before_the_next() {
        assert_eq!(wait([]).await, Duration::ZERO);
        let one = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset];
        assert_eq!(wait(one).await, Duration::ZERO);
        // Running out of file descriptors has no error kind of its own.
        let pauses = wait([ErrorKind::Other, ErrorKind::Other]).await;
        assert!(pauses >= 2 * ACCEPT_PAUSE, "{pauses:?}");
    }
}
