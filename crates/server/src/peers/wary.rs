//! A channel to a peer that has yet to prove that it is a node: until then it may answer little.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use futures_util::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use hyper::body::{Bytes, Frame};
use tonic::{
    Status,
    body::Body,
    codegen::{Service, http},
    transport::{Channel, Error},
};

/// Bytes that the peer may send before its proof, which has a few hundred.
const UNPROVEN_BYTES: usize = 64 << 10;

#[derive(Clone)]
pub(super) struct Wary {
    channel: Channel,
    proven: Arc<AtomicBool>,
}

impl Wary {
    /// The channel, and how to tell it that the peer is a node.
    pub(super) fn new(channel: Channel) -> (Self, Arc<AtomicBool>) {
        let proven = Arc::<AtomicBool>::default();
        (Self { channel, proven: Arc::clone(&proven) }, proven)
    }
}

impl Service<http::Request<Body>> for Wary {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let proven = Arc::clone(&self.proven);
        let bounded = |answer: http::Response<Body>| {
            answer.map(|body| Body::new(Bounded { body, left: UNPROVEN_BYTES, proven }))
        };
        self.channel.call(request).map_ok(bounded).boxed()
    }
}

/// An answer that is short until its sender is a proven node.
struct Bounded {
    body: Body,
    left: usize,
    proven: Arc<AtomicBool>,
}

impl hyper::body::Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        if !self.proven.load(Relaxed) {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(left) = self.left.checked_sub(bytes) else {
                let why =
                    format!("the peer sent {UNPROVEN_BYTES} bytes and did not prove to be a node");
                return Poll::Ready(Some(Err(Status::resource_exhausted(why))));
            };
            self.left = left;
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    async fn read(bytes: usize, proven: bool) -> Result<usize, Status> {
        let body = Body::new(Full::new(Bytes::from(vec![0; bytes])));
        let proven = Arc::new(AtomicBool::new(proven));
        let bounded = Bounded { body, left: UNPROVEN_BYTES, proven };
        bounded.collect().await.map(|read| read.to_bytes().len())
    }

    #[tokio::test]
    async fn a_peer_sends_much_only_after_its_proof() {
        assert_eq!(read(UNPROVEN_BYTES, false).await.expect("little"), UNPROVEN_BYTES);
        let refused = read(UNPROVEN_BYTES + 1, false).await.expect_err("too much");
        assert!(refused.message().contains("did not prove"), "{refused}");
        let all = 10 * UNPROVEN_BYTES;
        assert_eq!(read(all, true).await.expect("it is a node"), all);
    }
}
