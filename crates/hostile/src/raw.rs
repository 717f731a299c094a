//! Calls whose messages are bytes, so that they can be anything.

use bytes::{Buf as _, BufMut as _, Bytes};
use tokio_stream::Stream;
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

/// Makes one call of a method, as in `/abide.v1.Abide/StartRun`.
pub async fn call(channel: &Channel, method: &str, message: Bytes) -> Result<Bytes, Status> {
    let mut grpc = ready(channel).await?;
    let path = path(method)?;
    Ok(grpc.unary(Request::new(message), path, Raw).await?.into_inner())
}

/// Opens a stream of a method; messages go out as they come.
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

/// Bytes as they are.
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
