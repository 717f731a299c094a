//! Connections, of which there is a bounded number: while all are taken, new ones wait in the
//! operating system's queue, which is bounded too. A connection that stays silent loses its place.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep, sleep_until},
};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Time until another try when nothing can be accepted, as when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// Before its first bytes.
    pub(crate) first: Duration,
    /// Between bytes, which is longer than a living peer takes to answer a question.
    pub(crate) later: Duration,
}

/// Where connections come in, at most so many at a time.
pub(crate) struct Entrance {
    listener: TcpListener,
    places: Arc<Semaphore>,
    silence: Silence,
}

impl Entrance {
    pub(crate) fn new(listener: TcpListener, limit: usize, silence: Silence) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(limit)), silence }
    }

    /// Connections as they come. It never ends.
    pub(crate) fn connections(self) -> impl Stream<Item = io::Result<Connection>> {
        stream::unfold(self, |entrance| async move {
            let (connection, _) = entrance.next().await;
            Some((Ok(connection), entrance))
        })
    }

    async fn next(&self) -> (Connection, SocketAddr) {
        // The semaphore is never closed, so there is a place in the end.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = persist(|| self.listener.accept()).await;
        // Frames are written whole, so waiting to fill a packet only costs time. A connection that
        // ended meanwhile says so when it is read.
        let _ = stream.set_nodelay(true);
        (Connection::new(stream, self.silence, place), address)
    }
}

impl axum::serve::Listener for Entrance {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        self.next().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Accepts until it succeeds. A failure that is not one of the incoming connection would come again at
/// once, so the next try waits.
async fn persist<T, F>(mut accept: impl FnMut() -> F) -> T
where
    F: Future<Output = io::Result<T>>,
{
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// A connection, which gives its place back when it ends.
pub(crate) struct Connection {
    stream: TcpStream,
    silence: Silence,
    /// When the peer has been silent for too long. It moves with every byte, the alarm only when it
    /// goes off.
    silent_at: Instant,
    alarm: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn new(stream: TcpStream, silence: Silence, place: Option<OwnedSemaphorePermit>) -> Self {
        let silent_at = Instant::now() + silence.first;
        let alarm = Box::pin(sleep_until(silent_at));
        Self { stream, silence, silent_at, alarm, _place: place }
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

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
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

impl AsyncWrite for Connection {
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

    /// Time that passes until something is accepted, after failures of these kinds.
    async fn wait(failures: impl IntoIterator<Item = ErrorKind>) -> Duration {
        let begun = Instant::now();
        let failures = RefCell::new(failures.into_iter().collect::<VecDeque<_>>());
        let accept =
            || ready(failures.borrow_mut().pop_front().map_or(Ok(()), |kind| Err(kind.into())));
        persist(accept).await;
        assert!(failures.borrow().is_empty());
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_accept_that_fails_for_all_waits_before_the_next() {
        assert_eq!(wait([]).await, Duration::ZERO);
        let one = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset];
        assert_eq!(wait(one).await, Duration::ZERO);
        // No free descriptors is an error without a kind of its own.
        let pauses = wait([ErrorKind::Other, ErrorKind::Other]).await;
        assert!(pauses >= 2 * ACCEPT_PAUSE, "{pauses:?}");
    }
}
