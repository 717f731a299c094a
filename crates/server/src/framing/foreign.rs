//! Streams that the transport reads and buffers itself, for clients that ask for the schema. They
//! may send little, and not slowly.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

use super::refused;
use crate::connections::{Charge, ChargeKind, Connection, Evicted};

/// Total bytes that may arrive on one stream.
const BYTES_MAX: usize = 64 << 10;

/// A request body that the transport reads.
pub(super) struct Foreign {
    body: Incoming,
    connection: Arc<Connection>,
    received: usize,
    /// The transport may buffer everything that came.
    _charge: Charge,
    /// Rings when nothing has come for too long.
    stalled: Pin<Box<Sleep>>,
}

impl Foreign {
    pub(super) fn new(body: Incoming, connection: Arc<Connection>) -> Self {
        let stalled =
            Box::pin(sleep_until(Instant::now() + connection.connections().bounds().stall()));
        let charge = connection.take(BYTES_MAX, ChargeKind::Pending);
        Self { body, connection, received: 0, _charge: charge, stalled }
    }
}

impl Body for Foreign {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(frame)) => frame.map_err(|error| Status::from_error(error.into()))?,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {
                let lost = |()| Some(Err(this.connection.lost(Evicted::Unfinished)));
                return this.stalled.poll_unpin(context).map(lost);
            }
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        this.received = this.received.saturating_add(bytes);
        if this.received > BYTES_MAX {
            let why = format!("a stream of this service has at most {BYTES_MAX} bytes");
            return Poll::Ready(Some(Err(refused(&why))));
        }
        this.stalled
            .as_mut()
            .reset(Instant::now() + this.connection.connections().bounds().stall());
        Poll::Ready(Some(Ok(frame)))
    }
}
