//! The HTTP listener: probes for orchestrators of processes, figures for monitoring, and a page that says
//! where the API is.

use std::net::SocketAddr;

use axum::{
    Router,
    extract::State,
    http::{HeaderName, StatusCode, header::CONTENT_TYPE},
    response::Html,
    routing::get,
};
use tokio::sync::watch;

use crate::{handler::Handler, metrics};

/// What the pages show.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Every shard is in memory.
    pub(crate) ready: watch::Receiver<bool>,
    /// Where the API is.
    pub(crate) grpc_address: SocketAddr,
    /// Whose figures are shown.
    pub(crate) handler: Handler,
}

/// The pages.
pub(crate) fn router(probes: Probes) -> Router {
    Router::new()
        .route("/", get(landing))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(figures))
        .with_state(probes)
}

async fn readyz(State(probes): State<Probes>) -> (StatusCode, &'static str) {
    if *probes.ready.borrow() {
        (StatusCode::OK, "ready\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "not ready: shards are being read, the lease is lost, the name is another server's, or the server stops\n",
        )
    }
}

async fn figures(State(probes): State<Probes>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::text(&probes.handler))
}

async fn landing(State(probes): State<Probes>) -> Html<String> {
    Html(format!(
        "<!doctype html><title>Abide</title><h1>Abide</h1>\
         <p>The gRPC API <code>abide.v1</code> listens on <code>{}</code>, with reflection and \
         health.</p><p>Probes: <a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a>. \
         Figures: <a href=\"/metrics\">/metrics</a>.</p>",
        probes.grpc_address
    ))
}
