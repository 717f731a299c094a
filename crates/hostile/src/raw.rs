//! Calls whose messages are raw bytes, so that they can be anything.

use std::iter;

use bytes::{Buf as _, BufMut as _, Bytes};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{
    Request, Status, Streaming,
    body::Body,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{
        Service as _,
        http::{self, uri::PathAndQuery},
    },
    transport::Channel,
};

/// Makes a single call of a method such as `/abide.v1.Abide/StartRun`.
pub async fn call(channel: &Channel, method: &str, message: Bytes) -> Result<Bytes, Status> {
    let mut grpc = ready(channel).await?;
    let path = path(method)?;
    Ok(grpc.unary(Request::new(message), path, Raw).await?.into_inner())
}

/// Opens a stream of a method; messages are sent as they come.
pub async fn stream(
    channel: &Channel,
    method: &str,
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Streaming<Bytes>, Status> {
    let mut grpc = ready(channel).await?;
    let path = path(method)?;
    Ok(grpc.streaming(Request::new(messages), path, Raw).await?.into_inner())
}

fn path(method: &str) -> Result<PathAndQuery, Status> {
    method.parse().map_err(|_| Status::invalid_argument(format!("{method} is no method")))
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok(grpc)
}

/// Begins a message of this length, sends that much of it, and then nothing more. Returns how the
/// call ends.
pub async fn unfinished(
    mut channel: Channel,
    method: &'static str,
    (length, sent): (u32, usize),
) -> Result<(), Status> {
    let header = iter::once(0).chain(length.to_be_bytes()).collect();
    let full = sent / ZEROES.len();
    let zeroes = iter::repeat_n(Bytes::from_static(&ZEROES), full);
    let rest = Bytes::from_static(&ZEROES[..sent % ZEROES.len()]);
    let chunks = iter::once(header).chain(zeroes).chain(iter::once(rest));
    let frames = tokio_stream::iter(chunks.map(|chunk| Ok::<_, Status>(Frame::data(chunk))));
    let body = Body::new(StreamBody::new(frames.chain(tokio_stream::pending())));
    let request = http::Request::post(format!("http://server{method}"))
        .version(http::Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body);
    let request = request.map_err(|error| Status::internal(error.to_string()))?;
    let ready = std::future::poll_fn(|context| channel.poll_ready(context)).await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let answered = channel.call(request).await;
    let answered = answered.map_err(|error| Status::from_error(error.into()))?;
    Status::from_header_map(answered.headers()).map_or(Ok(()), Err)
}

/// Content of unfinished messages.
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];

/// A codec that passes bytes through.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
