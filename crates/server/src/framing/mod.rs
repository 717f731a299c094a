//! The traffic of a connection, measured and bounded. The message of a request is read as a whole
//! before it is handled; an answer is written as fast as the client reads it.
//!
//! The streams of calls and workers, and those that follow runs, keep no buffers between messages.
//! The transport's own buffers would stay large for days after one large message.

mod foreign;
mod frames;
mod parts;
mod sent;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use abide_core::operation::CallError;
use abide_proto::{error, generated::ErrorDetail};
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream, Empty},
};
use http_body_util::Full;
use hyper::body::Incoming;
use prost::{Message, Name};
use tonic::{
    Extensions, Request, Response, Status,
    body::Body,
    codegen::{Service as _, http},
    service::Routes,
};

use self::{foreign::Foreign, frames::SenderKind};
pub(crate) use self::{
    frames::{IncomingFrames, MessageStream},
    parts::MessageParts,
    sent::{Piece, Sent, UnreadAnswer},
};
use crate::{
    connections::{self, Charge, Connection},
    lock::lock,
};

/// Methods that read their frames with [`incoming`].
const OWN: [&str; 3] = ["/abide.v1.Abide/Calls", "/abide.v1.Workers/Connect", LINK];

/// The method for frames of other nodes, which may be larger than all others.
const LINK: &str = "/abide.v1.Peers/Link";

/// Prefix of the methods whose streams the transport reads, for clients that ask for the schema.
const FOREIGN: &str = "/grpc.reflection.";

/// Answers one request, with its bytes accounted to the connection.
pub(crate) async fn answer(
    mut routes: Routes,
    connection: Arc<Connection>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Sent>, Infallible> {
    let open = connection.begin();
    if let Some(refusal) = connection.refusal() {
        return Ok(refuse(refusal, connection, open));
    }
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Arc::clone(&connection));
    let path = parts.uri.path();
    let mut received = None;
    let body = if OWN.contains(&path) {
        let sender = if path == LINK { SenderKind::Node } else { SenderKind::Client };
        let frames = IncomingFrames::new(body, Arc::clone(&connection), sender);
        parts.extensions.insert(Handed::new(frames));
        Body::empty()
    } else if path.starts_with(FOREIGN) {
        Body::new(Foreign::new(body, Arc::clone(&connection)))
    } else {
        match IncomingFrames::new(body, Arc::clone(&connection), SenderKind::Client).only().await {
            Ok(None) => Body::empty(),
            Ok(Some(message)) => {
                let (framed, charge) = message.hand_over(path);
                received = Some(charge);
                Body::new(Full::new(framed))
            }
            Err(status) => return Ok(refuse(status, connection, open)),
        }
    };
    let mut response = routes.call(http::Request::from_parts(parts, body)).await?;
    // The request is answered, so its bytes are no longer needed.
    drop(received);
    let extensions = response.extensions_mut();
    let pieces = extensions.remove::<Handed<Pieces>>().and_then(|pieces| pieces.take());
    let whole = extensions.remove::<Handed<Piece>>().and_then(|whole| whole.take());
    Ok(response.map(|body| match (pieces, whole) {
        (Some(pieces), _) => Sent::pieces(pieces, connection, open),
        (None, Some(piece)) => Sent::whole(piece, connection, open),
        (None, None) => Sent::body(body, connection, open),
    }))
}

fn refuse(
    status: Status,
    connection: Arc<Connection>,
    open: connections::Request,
) -> http::Response<Sent> {
    status.into_http::<Body>().map(|body| Sent::body(body, connection, open))
}

/// The parts of an answer that is encoded here.
type Pieces = BoxStream<'static, Result<Piece, Status>>;

/// A value attached to a request or an answer, to be taken once.
struct Handed<T>(Arc<Mutex<Option<T>>>);

impl<T> Handed<T> {
    fn new(handed: T) -> Self {
        Self(Arc::new(Mutex::new(Some(handed))))
    }

    fn take(&self) -> Option<T> {
        lock(&self.0).take()
    }
}

impl<T> Clone for Handed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The connection that a request came on.
pub(crate) fn connection(extensions: &Extensions) -> Result<Arc<Connection>, Status> {
    let connection = extensions.get::<Arc<Connection>>().cloned();
    connection.ok_or_else(|| Status::internal("the request came on no connection"))
}

/// The messages that arrive on a stream of requests.
pub(crate) fn incoming<T: Name + Default + 'static, U>(
    request: &mut Request<U>,
) -> Result<MessageStream<T>, Status> {
    let frames = request.extensions_mut().remove::<Handed<IncomingFrames>>();
    let frames = frames.and_then(|frames| frames.take());
    frames.map(MessageStream::new).ok_or_else(|| Status::internal("the stream has no frames"))
}

/// A message to be sent, and the charges for its bytes until it is read.
pub(crate) struct Sending<T> {
    pub(crate) message: T,
    pub(crate) charges: Vec<Charge>,
}

impl<T: Message> From<Sending<T>> for Piece {
    fn from(Sending { message, charges }: Sending<T>) -> Self {
        Self { parts: MessageParts::framed(&message, &[]), charges }
    }
}

/// Answers with a stream of messages, which are encoded here. The stream that the transport gets is
/// empty.
pub(crate) fn outgoing<T>(
    messages: impl Stream<Item = Result<impl Into<Piece>, Status>> + Send + 'static,
) -> Response<Empty<Result<T, Status>>> {
    let mut response = Response::new(stream::empty());
    let pieces: Pieces = Box::pin(messages.map(|message| message.map(Into::into)));
    response.extensions_mut().insert(Handed::new(pieces));
    response
}

/// Answers with a message that is encoded here. The message that the transport gets is empty.
pub(crate) fn encoded<T: Message + Default>(piece: Piece) -> Response<T> {
    let mut response = Response::new(T::default());
    response.extensions_mut().insert(Handed::new(piece));
    response
}

/// An answer whose bytes count until it is read. A large one is encoded at once, because as a message
/// it may take several times as much memory.
pub(crate) fn charged<T: Message + Default>(
    message: T,
    connection: &Arc<Connection>,
) -> Response<T> {
    match connection.answered(message.encoded_len()) {
        Some(charge) => encoded(Sending { message, charges: vec![charge] }.into()),
        None => Response::new(message),
    }
}

/// The status for a request or stream that the server has no room for. Nothing was changed.
pub(crate) fn refused(why: &str) -> Status {
    let overloaded = error::to_detail(CallError::Overloaded);
    error::to_status(ErrorDetail { message: why.to_owned(), ..overloaded })
}
