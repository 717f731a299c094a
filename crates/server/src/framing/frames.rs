//! Reads messages: a header of five bytes with the length, then the message. A message larger than
//! a few packets waits until there is room for all of it, and only its sender waits. A stalled
//! message is given up. Messages of other nodes are neither counted nor given up; until the sender
//! has proven to be a node, it may send little.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use abide_core::limits::InvalidField;
use abide_proto::{
    codec,
    parts::{self, PartCount},
};
use futures_util::{FutureExt as _, Stream, future::BoxFuture};
use hyper::body::{Body, Incoming};
use prost::{
    Name,
    bytes::{Buf as _, BufMut as _, Bytes, BytesMut},
};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::{Code, Status};

use crate::{
    connections::{Charge, ChargeKind, Connection, Evicted},
    handler::status,
};

/// A flag and the length precede each message.
const HEADER: usize = 5;

/// Up to this size a message does not wait for room.
const SMALL: usize = 64 << 10;

/// A frame between nodes may hold a task with a long history beside what a client or worker sent.
const NODE_FACTOR: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SenderKind {
    /// A client or a worker.
    Client,
    /// A peer that claims to be another node of the cluster.
    Node,
}

pub(crate) struct IncomingFrames<B = Incoming> {
    body: B,
    connection: Arc<Connection>,
    sender: SenderKind,
    /// Received bytes that are not consumed yet.
    received: Bytes,
    header: BytesMut,
    message: Option<Unfinished>,
    /// A pending request for room for the next message, and the message's length.
    waiting: Option<(BoxFuture<'static, Charge>, usize)>,
    /// Resolves when the connection is evicted.
    evicted: Option<BoxFuture<'static, Evicted>>,
    moved_at: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A message of which only a part has arrived.
struct Unfinished {
    bytes: BytesMut,
    length: usize,
    charge: Charge,
}

/// A complete message. It counts as in flight until dropped.
pub(crate) struct Received {
    /// The message with its header.
    framed: Bytes,
    charge: Charge,
}

impl Received {
    fn message(&self) -> &[u8] {
        &self.framed[HEADER..]
    }

    /// The message with its header, to be decoded and handled, and the charge for it until then.
    pub(super) fn hand_over(self, method: &str) -> (Bytes, Charge) {
        let parts = parts::of_request(method, self.message());
        (self.framed, self.charge.into_pending(parts))
    }
}

impl<B> IncomingFrames<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    pub(super) fn new(body: B, connection: Arc<Connection>, sender: SenderKind) -> Self {
        Self {
            body,
            connection,
            sender,
            received: Bytes::new(),
            header: BytesMut::new(),
            message: None,
            waiting: None,
            evicted: None,
            moved_at: Instant::now(),
            alarm: None,
        }
    }

    /// The only message of the request, which must begin in time.
    pub(super) async fn only(mut self) -> Result<Option<Received>, Status> {
        std::future::poll_fn(|context| match self.poll_next(context) {
            Poll::Ready(next) => Poll::Ready(next.transpose()),
            // The sender is not late: the server does not read while the message waits for room.
            Poll::Pending if self.waiting.is_some() => Poll::Pending,
            Poll::Pending => self.poll_stalled(context).map(Err),
        })
        .await
    }

    /// The next message, or `None` at the end of the request.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Received, Status>>> {
        loop {
            if let Some((room, length)) = &mut self.waiting {
                let length = *length;
                match room.poll_unpin(context) {
                    Poll::Ready(charge) => {
                        self.waiting = None;
                        self.moved_at = Instant::now();
                        self.begin(length, charge);
                    }
                    Poll::Pending => return self.poll_evicted(context).map(|it| Some(Err(it))),
                }
            }
            match self.advance() {
                Ok(Some(received)) => return Poll::Ready(Some(Ok(received))),
                Ok(None) if self.waiting.is_some() => continue,
                Ok(None) => {}
                Err(status) => return Poll::Ready(Some(Err(status))),
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers of a request carry nothing.
                    if let Ok(data) = frame.into_data() {
                        self.received = data;
                        self.moved_at = Instant::now();
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(Status::from_error(error.into()))));
                }
                Poll::Ready(None) => return Poll::Ready(self.ended().map(Err)),
                Poll::Pending => {
                    if let Poll::Ready(status) = self.poll_evicted(context) {
                        return Poll::Ready(Some(Err(status)));
                    }
                    if !self.begun() || self.known_node() {
                        return Poll::Pending;
                    }
                    return self.poll_stalled(context).map(|status| Some(Err(status)));
                }
            }
        }
    }

    /// Consumes received bytes until a message is complete or no bytes are left.
    fn advance(&mut self) -> Result<Option<Received>, Status> {
        if self.message.is_none() && self.waiting.is_none() {
            let missing = HEADER - self.header.len();
            self.header.put(self.received.split_to(missing.min(self.received.len())));
            if self.header.len() < HEADER {
                return Ok(None);
            }
            let length = self.check_header()?;
            if length > SMALL && !self.known_node() {
                self.waiting = Some((Arc::clone(&self.connection).room(length).boxed(), length));
                return Ok(None);
            }
            let counted = if self.known_node() { 0 } else { length };
            let charge = self.connection.take(counted, ChargeKind::Arriving);
            self.begin(length, charge);
        }
        let Some(message) = &mut self.message else { return Ok(None) };
        let missing = message.length - message.bytes.len();
        message.bytes.put(self.received.split_to(missing.min(self.received.len())));
        if message.bytes.len() < message.length {
            return Ok(None);
        }
        let whole = self.message.take();
        Ok(whole
            .map(|Unfinished { bytes, charge, .. }| Received { framed: bytes.freeze(), charge }))
    }

    /// The length of the next message, which must be within the bound.
    fn check_header(&self) -> Result<usize, Status> {
        let mut header = &*self.header;
        if header.get_u8() != 0 {
            return Err(Status::new(
                Code::Unimplemented,
                "compressed messages are not supported; send it uncompressed",
            ));
        }
        let length = usize::try_from(header.get_u32()).unwrap_or(usize::MAX);
        let bounds = self.connection.connections().bounds();
        let limit = match self.sender {
            SenderKind::Client => bounds.message_bytes,
            SenderKind::Node if self.connection.trusted() => {
                bounds.message_bytes.saturating_mul(NODE_FACTOR)
            }
            SenderKind::Node => SMALL,
        };
        if length > limit {
            let problem = format!("has {length} bytes, the limit is {limit}");
            return Err(status(InvalidField::new("request", problem)));
        }
        Ok(length)
    }

    fn begin(&mut self, length: usize, charge: Charge) {
        let mut bytes = BytesMut::with_capacity(HEADER + length);
        bytes.put(std::mem::take(&mut self.header));
        self.message = Some(Unfinished { bytes, length: HEADER + length, charge });
    }

    /// Whether the sender has proven to be another node of the cluster.
    fn known_node(&self) -> bool {
        self.sender == SenderKind::Node && self.connection.trusted()
    }

    /// Whether a message, or its header, has arrived in part.
    fn begun(&self) -> bool {
        self.message.is_some() || !self.header.is_empty()
    }

    fn ended(&self) -> Option<Status> {
        self.begun().then(|| {
            status(InvalidField::new("request", "ends within a message; send the whole message"))
        })
    }

    /// Ready when the connection is evicted.
    fn poll_evicted(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let connection = &self.connection;
        let evicted = self.evicted.get_or_insert_with(|| connection.evicted().boxed());
        let why = ready!(evicted.poll_unpin(context));
        self.evicted = None;
        Poll::Ready(self.connection.status(why))
    }

    /// Ready when an incomplete message has made no progress for too long.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let until = self.moved_at + self.connection.connections().bounds().stall();
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(until)));
        while alarm.poll_unpin(context).is_ready() {
            if until <= alarm.deadline() {
                return Poll::Ready(self.connection.lost(Evicted::Unfinished));
            }
            alarm.as_mut().reset(until);
        }
        Poll::Pending
    }
}

/// The messages that arrive on a stream, each with the number of its parts.
pub(crate) struct MessageStream<T> {
    frames: IncomingFrames,
    message: std::marker::PhantomData<fn() -> T>,
}

impl<T: Name + Default + 'static> MessageStream<T> {
    pub(super) fn new(frames: IncomingFrames) -> Self {
        Self { frames, message: std::marker::PhantomData }
    }
}

impl<T: Name + Default + 'static> Stream for MessageStream<T> {
    type Item = Result<(T, PartCount), Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.frames.poll_next(context));
        Poll::Ready(next.map(|received| codec::decode_counted(received?.message())))
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use futures_util::{StreamExt as _, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::time::timeout;

    use super::*;
    use crate::{Bounds, connections::Connections};

    #[tokio::test(start_paused = true)]
    async fn a_message_that_waits_for_room_is_not_stalled() {
        let connections = Connections::new(Arc::new(Bounds::default()));
        let stall = connections.bounds().stall();
        let place = connections.place(([127, 0, 0, 1], 1).into()).await.expect("a place");
        let all = Arc::clone(&place.connection).room(usize::MAX).await;
        let mut header = BytesMut::new();
        header.put_u8(0);
        header.put_u32(1 << 20);
        let begun = stream::iter([Ok::<_, Infallible>(Frame::data(header.freeze()))]);
        let body = StreamBody::new(begun.chain(stream::pending()));
        let frames = IncomingFrames::new(body, Arc::clone(&place.connection), SenderKind::Client);
        let mut only = std::pin::pin!(frames.only());
        assert!(timeout(10 * stall, &mut only).await.is_err(), "it still waits");
        drop(all);
        let begun = Instant::now();
        let status = only.await.err().expect("the rest never comes");
        assert!(status.message().contains("bounds.stall_ms"), "{status}");
        assert!(begun.elapsed() >= stall - Duration::from_millis(1));
    }
}
