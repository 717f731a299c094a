//! Writes an answer. Bytes count until the peer has read them, also in the buffers of the
//! transport: the charge lives as long as the bytes. If the peer reads nothing for long, the source
//! and the rest of the answer are dropped, and the stream ends with the reason once the peer reads
//! again.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use hyper::body::{Body as _, Frame};
use prost::bytes::Bytes;
use tonic::{Status, body::Body, codegen::http::HeaderMap};

use super::{MessageParts, Pieces};
use crate::guests::{Charge, Evicted, Guest, Kind, Request};

/// Bytes of a large message that are passed to the transport at once: two HTTP/2 frames. Bytes that
/// were not passed on can still be dropped.
const CHUNK: usize = 32 << 10;

/// An encoded message, in parts that follow each other, and the charges for it.
pub(crate) struct Piece {
    pub(crate) parts: MessageParts,
    pub(crate) charges: Vec<Charge>,
}

/// The source of an answer.
enum Source {
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

impl Source {
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
    ended: bool,
    /// Resolves when the connection is evicted.
    evicted: Option<BoxFuture<'static, Evicted>>,
    _open: Request,
}

impl Sent {
    pub(super) fn pieces(pieces: Pieces, guest: Arc<Guest>, open: Request) -> Self {
        Self::new(Source::Pieces(pieces), guest, open)
    }

    /// An answer of one message that is encoded here. It must be read from now on, even if the
    /// transport never asks for it because the peer has no window.
    pub(super) fn whole(piece: Piece, guest: Arc<Guest>, open: Request) -> Self {
        let pieces: Pieces = Box::pin(stream::iter([Ok(piece)]));
        let mut sent = Self::new(Source::Pieces(pieces), guest, open);
        sent.answer.wait_for_transport();
        sent.watch();
        sent
    }

    pub(super) fn body(body: Body, guest: Arc<Guest>, open: Request) -> Self {
        Self::new(Source::Body(body), guest, open)
    }

    fn new(source: Source, guest: Arc<Guest>, open: Request) -> Self {
        let left = RestOfAnswer {
            source: Some(source),
            unasked: false,
            parts: MessageParts::default(),
            charges: Vec::new(),
        };
        let answer = UnreadAnswer { guest, left: Mutex::new(left), unread: Arc::default() };
        let answer = Arc::new(answer);
        Self { answer, watched: false, ended: false, evicted: None, _open: open }
    }

    fn watch(&mut self) {
        if !std::mem::replace(&mut self.watched, true) {
            self.answer.guest.guests().watch(&self.answer);
        }
    }

    fn end(&mut self, trailers: HeaderMap) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.ended = true;
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    /// Ready when the connection is evicted.
    fn poll_evicted(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let guest = &self.answer.guest;
        let evicted = self.evicted.get_or_insert_with(|| guest.evicted().boxed());
        let why = ready!(evicted.poll_unpin(context));
        self.evicted = None;
        Poll::Ready(self.answer.guest.status(why))
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
                if bytes.len() == CHUNK {
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
            Some(Source::Body(body)) => left.parts.is_empty() && body.is_end_stream(),
            Some(Source::Pieces(_)) | None => false,
        };
        self.ended || at_end
    }
}

/// An answer that the peer is reading.
pub(crate) struct UnreadAnswer {
    guest: Arc<Guest>,
    left: Mutex<RestOfAnswer>,
    unread: Arc<Outstanding>,
}

/// The rest of an answer.
struct RestOfAnswer {
    /// `None` after the answer was dropped because it was not read.
    source: Option<Source>,
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
        self.unread.moved(&self.guest);
    }

    /// The next chunk, or the end.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<NextFrame, Status>>> {
        let mut left = self.left();
        let RestOfAnswer { source, unasked, parts, charges } = &mut *left;
        if std::mem::take(unasked) {
            self.unread.moved(&self.guest);
            self.unread.chunks.fetch_sub(1, Relaxed);
        }
        let Some(source) = source else {
            let refusal = self.guest.refusal();
            let unread = || self.guest.status(Evicted::Unread);
            return Poll::Ready(Some(Err(refusal.unwrap_or_else(unread))));
        };
        if parts.is_empty() {
            ready!(self.guest.poll_reads(context));
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
                piece.charges.push(self.guest.take(more, Kind::Unread));
            }
            if let Some(small) = piece.parts.take_small(CHUNK) {
                return Poll::Ready(Some(Ok(NextFrame::Data(self.counted(small, piece.charges)))));
            }
            (*parts, *charges) = (piece.parts, piece.charges);
        }
        // A copy: the transport may keep the chunk for long, and must not keep the rest alive with it.
        let chunk = parts.next(CHUNK);
        let copied = vec![self.guest.take(chunk.len(), Kind::Unread)];
        if parts.is_empty() {
            charges.clear();
        }
        Poll::Ready(Some(Ok(NextFrame::Data(self.counted(chunk, copied)))))
    }

    /// Wraps bytes so that they count as unread until the last reference is dropped.
    fn counted(&self, bytes: impl AsRef<[u8]> + Send + 'static, charges: Vec<Charge>) -> Bytes {
        self.unread.moved(&self.guest);
        self.unread.chunks.fetch_add(1, Relaxed);
        let (unread, guest) = (Arc::clone(&self.unread), Arc::clone(&self.guest));
        Bytes::from_owner(CountedBytes { bytes, _charges: charges, unread, guest })
    }

    /// Drops the rest if the connection is evicted, or if nothing was read for too long. Returns
    /// whether it did. The transport does not ask for more while the peer has no window, so an
    /// evicted connection would keep the rest until it ends.
    pub(crate) fn take_back(&self) -> bool {
        let guests = self.guest.guests();
        let until = self.unread.moved_ms.load(Relaxed).saturating_add(guests.bounds().stall_ms);
        let read = self.unread.chunks.load(Relaxed) == 0 || guests.now_ms() < until;
        let evicted = self.guest.is_evicted();
        if !evicted && (read || self.guest.trusted()) {
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
            self.guest.lost(Evicted::Unread);
        }
        true
    }

    fn left(&self) -> MutexGuard<'_, RestOfAnswer> {
        // A poisoned lock is fine: the data is consistent whenever the lock is released, even by a
        // panic.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outstanding {
    fn moved(&self, guest: &Guest) {
        self.moved_ms.store(guest.guests().now_ms(), Relaxed);
    }
}

/// Bytes that were passed to the transport.
struct CountedBytes<T> {
    bytes: T,
    _charges: Vec<Charge>,
    unread: Arc<Outstanding>,
    guest: Arc<Guest>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for CountedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<T> Drop for CountedBytes<T> {
    fn drop(&mut self) {
        self.unread.moved(&self.guest);
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
