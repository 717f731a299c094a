//! Writes an answer. Bytes count until the peer has read them, also in the buffers of the
//! transport: the charge lives as long as the bytes. If the peer reads nothing for long, the source
//! and the rest of the answer are dropped, and the stream ends with the reason once the peer reads
//! again.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use hyper::body::{Body as _, Frame};
use prost::bytes::Bytes;
use tonic::{Status, body::Body, codegen::http::HeaderMap};

use super::{MessageParts, Pieces};
use crate::{
    connections::{Charge, ChargeKind, Connection, Evicted, Request},
    lock::lock,
};

/// Bytes of a large message that are passed to the transport at once: two HTTP/2 frames. Bytes that
/// were not passed on can still be dropped.
const CHUNK: usize = 32 << 10;

/// An encoded message, in parts that follow each other, and the charges for it.
pub(crate) struct Piece {
    pub(crate) parts: MessageParts,
    pub(crate) charges: Vec<Charge>,
}

/// The source of an answer.
enum PieceSource {
    /// Messages that are encoded here.
    Pieces(Pieces),
    /// A body that the transport encodes, which is small.
    Body(Body),
}

/// The next part of an answer.
enum NextPart {
    Piece(Piece),
    Trailers(HeaderMap),
}

/// The next frame of an answer.
enum NextFrame {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl PieceSource {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<NextPart, Status>>> {
        match self {
            Self::Pieces(pieces) => {
                let piece = ready!(pieces.poll_next_unpin(context));
                let end = || Ok(NextPart::Trailers(trailers(&Status::ok(""))));
                Poll::Ready(Some(piece.map_or_else(end, |piece| piece.map(NextPart::Piece))))
            }
            Self::Body(body) => {
                let frame = ready!(Pin::new(body).poll_frame(context));
                Poll::Ready(frame.map(|frame| {
                    Ok(match frame?.into_data() {
                        Ok(bytes) => {
                            NextPart::Piece(Piece { parts: bytes.into(), charges: Vec::new() })
                        }
                        Err(frame) => NextPart::Trailers(frame.into_trailers().unwrap_or_default()),
                    })
                }))
            }
        }
    }
}

pub(crate) struct Sent {
    answer: Arc<UnreadAnswer>,
    /// Whether the listener checks that the peer keeps reading.
    watched: bool,
    /// Bytes that were passed to the transport.
    passed: usize,
    ended: bool,
    /// Resolves when the connection is evicted.
    evicted: Option<BoxFuture<'static, Evicted>>,
    _open: Request,
}

impl Sent {
    pub(super) fn pieces(pieces: Pieces, connection: Arc<Connection>, open: Request) -> Self {
        Self::new(PieceSource::Pieces(pieces), connection, open)
    }

    /// An answer of one message that is encoded here. It must be read from now on, even if the
    /// transport never asks for it because the peer has no window.
    pub(super) fn whole(piece: Piece, connection: Arc<Connection>, open: Request) -> Self {
        let pieces: Pieces = Box::pin(stream::iter([Ok(piece)]));
        let mut sent = Self::new(PieceSource::Pieces(pieces), connection, open);
        sent.answer.wait_for_transport();
        sent.watch();
        sent
    }

    pub(super) fn body(body: Body, connection: Arc<Connection>, open: Request) -> Self {
        Self::new(PieceSource::Body(body), connection, open)
    }

    fn new(source: PieceSource, connection: Arc<Connection>, open: Request) -> Self {
        let left = RestOfAnswer {
            source: Some(source),
            unasked: false,
            parts: MessageParts::default(),
            charges: Vec::new(),
        };
        let answer = UnreadAnswer { connection, left: Mutex::new(left), unread: Arc::default() };
        let answer = Arc::new(answer);
        Self { answer, watched: false, passed: 0, ended: false, evicted: None, _open: open }
    }

    fn watch(&mut self) {
        if !std::mem::replace(&mut self.watched, true) {
            self.answer.connection.connections().watch(&self.answer);
        }
    }

    fn end(&mut self, trailers: HeaderMap) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.ended = true;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    /// Ready when the connection is evicted.
    fn poll_evicted(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let connection = &self.answer.connection;
        let evicted = self.evicted.get_or_insert_with(|| connection.evicted().boxed());
        let why = ready!(evicted.poll_unpin(context));
        self.evicted = None;
        Poll::Ready(self.answer.connection.status(why))
    }
}

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        match this.answer.poll_next(context) {
            Poll::Ready(Some(Ok(NextFrame::Data(bytes)))) => {
                // Small messages add up: the transport stops asking when the peer has no window, and
                // keeps what it has.
                this.passed = this.passed.saturating_add(bytes.len());
                if this.passed >= CHUNK {
                    this.watch();
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(Some(Ok(NextFrame::Trailers(trailers)))) => this.end(trailers),
            Poll::Ready(Some(Err(status))) => this.end(trailers(&status)),
            Poll::Ready(None) => {
                this.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => {
                this.watch();
                let status = ready!(this.poll_evicted(context));
                this.end(trailers(&status))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let left = self.answer.left();
        let at_end = match &left.source {
            Some(PieceSource::Body(body)) => left.parts.is_empty() && body.is_end_stream(),
            Some(PieceSource::Pieces(_)) | None => false,
        };
        self.ended || at_end
    }
}

/// An answer that the peer is reading.
pub(crate) struct UnreadAnswer {
    connection: Arc<Connection>,
    left: Mutex<RestOfAnswer>,
    unread: Arc<Outstanding>,
}

/// The rest of an answer.
struct RestOfAnswer {
    /// `None` after the answer was dropped because it was not read.
    source: Option<PieceSource>,
    /// The transport has not asked for any of it, which counts as a chunk that is not read.
    unasked: bool,
    /// The part of the last message that was not passed to the transport.
    parts: MessageParts,
    /// The charges for that message.
    charges: Vec<Charge>,
}

/// Bytes that were passed to the transport and are not read yet.
#[derive(Default)]
struct Outstanding {
    chunks: AtomicUsize,
    moved_ms: AtomicU64,
}

impl UnreadAnswer {
    /// Counts the answer as unread until the transport asks for it.
    fn wait_for_transport(&self) {
        self.left().unasked = true;
        self.unread.chunks.fetch_add(1, Relaxed);
        self.unread.moved(&self.connection);
    }

    /// The next chunk, or the end.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<NextFrame, Status>>> {
        let mut left = self.left();
        let RestOfAnswer { source, unasked, parts, charges } = &mut *left;
        if std::mem::take(unasked) {
            self.unread.moved(&self.connection);
            self.unread.chunks.fetch_sub(1, Relaxed);
        }
        let Some(source) = source else {
            let refusal = self.connection.refusal();
            let unread = || self.connection.status(Evicted::Unread);
            return Poll::Ready(Some(Err(refusal.unwrap_or_else(unread))));
        };
        if parts.is_empty() {
            ready!(self.connection.poll_reads(context));
            let mut piece = match ready!(source.poll_next(context)) {
                Some(Ok(NextPart::Piece(piece))) => piece,
                Some(Ok(NextPart::Trailers(trailers))) => {
                    return Poll::Ready(Some(Ok(NextFrame::Trailers(trailers))));
                }
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => return Poll::Ready(None),
            };
            let charged: usize = piece.charges.iter().map(Charge::bytes).sum();
            if let Some(more @ 1..) = piece.parts.len().checked_sub(charged) {
                piece.charges.push(self.connection.take(more, ChargeKind::Unread));
            }
            if let Some(small) = piece.parts.take_small(CHUNK) {
                return Poll::Ready(Some(Ok(NextFrame::Data(self.counted(small, piece.charges)))));
            }
            (*parts, *charges) = (piece.parts, piece.charges);
        }
        // A copy: the transport may keep the chunk for long, and must not keep the rest alive with it.
        let chunk = parts.next(CHUNK);
        let copied = vec![self.connection.take(chunk.len(), ChargeKind::Unread)];
        if parts.is_empty() {
            charges.clear();
        }
        Poll::Ready(Some(Ok(NextFrame::Data(self.counted(chunk, copied)))))
    }

    /// Wraps bytes so that they count as unread until the last reference is dropped.
    fn counted(&self, bytes: impl AsRef<[u8]> + Send + 'static, charges: Vec<Charge>) -> Bytes {
        self.unread.moved(&self.connection);
        self.unread.chunks.fetch_add(1, Relaxed);
        let (unread, connection) = (Arc::clone(&self.unread), Arc::clone(&self.connection));
        Bytes::from_owner(CountedBytes { bytes, _charges: charges, unread, connection })
    }

    /// Drops the rest if the connection is evicted, or if nothing was read for too long. Returns
    /// whether it did. The transport does not ask for more while the peer has no window, so an
    /// evicted connection would keep the rest until it ends.
    pub(crate) fn take_back(&self) -> bool {
        let connections = self.connection.connections();
        let until =
            self.unread.moved_ms.load(Relaxed).saturating_add(connections.bounds().stall_ms);
        let read = self.unread.chunks.load(Relaxed) == 0 || connections.now_ms() < until;
        let evicted = self.connection.is_evicted();
        if !evicted && (read || self.connection.trusted()) {
            return false;
        }
        let nothing = RestOfAnswer {
            source: None,
            unasked: false,
            parts: MessageParts::default(),
            charges: Vec::new(),
        };
        let left = std::mem::replace(&mut *self.left(), nothing);
        drop(left);
        if !evicted {
            self.connection.lost(Evicted::Unread);
        }
        true
    }

    fn left(&self) -> MutexGuard<'_, RestOfAnswer> {
        lock(&self.left)
    }
}

impl Outstanding {
    fn moved(&self, connection: &Connection) {
        self.moved_ms.store(connection.connections().now_ms(), Relaxed);
    }
}

/// Bytes that were passed to the transport.
struct CountedBytes<T> {
    bytes: T,
    _charges: Vec<Charge>,
    unread: Arc<Outstanding>,
    connection: Arc<Connection>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for CountedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<T> Drop for CountedBytes<T> {
    fn drop(&mut self) {
        self.unread.moved(&self.connection);
        self.unread.chunks.fetch_sub(1, Relaxed);
    }
}

/// The trailers that end a stream.
fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // This fails only for a message that does not fit a header, and the code is set by then.
    drop(status.add_header(&mut trailers));
    trailers
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;
    use tokio::task::yield_now;

    use super::*;
    use crate::{
        Bounds,
        connections::{Admission, Connections},
    };

    async fn place() -> Admission {
        let connections = Connections::new(Arc::new(Bounds::default()));
        connections.place(([127, 0, 0, 1], 1).into()).await.expect("a place")
    }

    /// An endless answer of messages of so many bytes, each of which is there at once.
    fn endless(place: &Admission, bytes: usize) -> Sent {
        let piece =
            move || Piece { parts: Bytes::from(vec![0; bytes]).into(), charges: Vec::new() };
        let pieces: Pieces = Box::pin(stream::repeat_with(move || Ok(piece())));
        Sent::pieces(pieces, Arc::clone(&place.connection), place.connection.begin())
    }

    /// The transport stops asking when the peer has no window, and keeps what it has.
    #[tokio::test(start_paused = true)]
    async fn an_answer_in_small_messages_that_is_not_read_is_dropped_too() {
        let place = place().await;
        let connections = Arc::clone(place.connection.connections());
        tokio::spawn(connections.drop_unread());
        let mut answer = endless(&place, 1_000);
        let next = |answer: &mut Sent| {
            Pin::new(answer).poll_frame(&mut Context::from_waker(std::task::Waker::noop()))
        };
        let mut kept = Vec::new();
        while kept.len() < 64 {
            let Poll::Ready(Some(Ok(frame))) = next(&mut answer) else { panic!("it is endless") };
            kept.push(frame.into_data().expect("a message"));
        }
        tokio::time::sleep(2 * connections.bounds().stall()).await;
        yield_now().await;
        let Poll::Ready(Some(Ok(end))) = next(&mut answer) else { panic!("it has not ended") };
        assert!(end.is_trailers(), "it was not read for long");
        assert_eq!(kept.len(), 64);
    }
}
