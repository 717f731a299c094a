//! Messages over the size bound. The transport refuses them in words of its own before they are read;
//! callers get the field, the size and the bound, as for every other bound.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use abide_core::limits::InvalidField;
use futures_util::future::BoxFuture;
use tonic::{
    Code, Status,
    body::Body,
    codegen::{Service, http},
    server::NamedService,
};

use crate::handler::status;

/// A service whose refusals for size are reworded.
#[derive(Clone)]
pub(crate) struct Reworded<S>(pub(crate) S);

impl<S> Service<http::Request<Body>> for Reworded<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answered = self.0.call(request);
        Box::pin(async move {
            let response = answered.await?;
            let refused = Status::from_header_map(response.headers()).as_ref().and_then(over_size);
            Ok(refused.map_or(response, |invalid| status(invalid).into_http()))
        })
    }
}

impl<S: NamedService> NamedService for Reworded<S> {
    const NAME: &'static str = S::NAME;
}

/// The status of a stream that could not be read, reworded if it is for size.
pub(crate) fn reword(failed: Status) -> Status {
    over_size(&failed).map_or(failed, status)
}

/// What the transport means, if it refused a message for its size.
fn over_size(refused: &Status) -> Option<InvalidField> {
    if refused.code() != Code::OutOfRange {
        return None;
    }
    let (_, sizes) = refused.message().split_once("message length too large: found ")?;
    let (size, limit) = sizes.strip_suffix(" bytes")?.split_once(" bytes, the limit is: ")?;
    Some(InvalidField::new("request", format!("has {size} bytes, the limit is {limit}")))
}
