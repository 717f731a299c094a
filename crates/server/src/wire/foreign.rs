//! Streams that the transport reads and buffers itself, for clients that ask for the schema. They
//! may send little.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::body::{Body, Bytes, Frame, Incoming};
use tonic::Status;

use super::refused;

/// Total bytes that may arrive on one stream.
const BYTES_MAX: usize = 64 << 10;

/// A request body that the transport reads.
pub(super) struct Foreign {
    body: Incoming,
    came: usize,
}

impl Foreign {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, came: 0 }
    }
}

impl Body for Foreign {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(|error| Status::from_error(error.into()))?;
        self.came = self.came.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if self.came > BYTES_MAX {
            let why = format!("a stream of this service has at most {BYTES_MAX} bytes");
            return Poll::Ready(Some(Err(refused(&why))));
        }
        Poll::Ready(Some(Ok(frame)))
    }
}
