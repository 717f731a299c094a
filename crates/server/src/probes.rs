//! The HTTP listener: probes for process orchestrators, metrics for monitoring, and a page that
//! says where the API is.

use std::{fmt::Write as _, net::SocketAddr};

use abide_engine::{ClockStep, Damage, Health, RefusedCommit, StoreTrouble};
use axum::{
    Router,
    extract::State,
    http::{HeaderName, StatusCode, header::CONTENT_TYPE},
    response::Html,
    routing::get,
};
use tokio::sync::watch;

use crate::{handler::Handler, metrics};

#[derive(Clone)]
pub(crate) struct Probes {
    /// Whether every shard is in memory.
    pub(crate) ready: watch::Receiver<bool>,
    /// Address of the API.
    pub(crate) grpc_address: SocketAddr,
    /// Source of the metrics.
    pub(crate) handler: Handler,
}

pub(crate) fn router(probes: Probes) -> Router {
    Router::new()
        .route("/", get(landing))
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(figures))
        .with_state(probes)
}

/// Whether calls may be sent here, followed by what is wrong, one line each.
async fn readyz(State(probes): State<Probes>) -> (StatusCode, String) {
    readiness(*probes.ready.borrow(), &probes.handler.engine.health())
}

/// A server whose store accepts no writes still counts as ready: it answers reads, and fails other
/// calls at once. If it were taken out of rotation the reads would fail too, and no other server
/// can serve its runs.
fn readiness(serving: bool, health: &Health) -> (StatusCode, String) {
    let (status, word) = match (serving && health.failed.is_none(), health.takes_writes()) {
        (true, true) => (StatusCode::OK, "ready"),
        (true, false) => (StatusCode::OK, "degraded"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let why = if serving { "" } else { NOT_SERVING };
    (status, format!("{word}\n{why}{}", wrong(health)))
}

const NOT_SERVING: &str = "shards: not served: they are loading, the lease is lost, another node has \
    the same name, or the server is shutting down\n";

/// What is wrong, one line each: its name and its state.
fn wrong(health: &Health) -> String {
    let mut lines = String::new();
    let mut line = |name: &str, state: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{name}: {}", state.replace('\n', " "));
    };
    if let Some(why) = &health.failed {
        line("engine", format!("failed: {why}"));
    }
    if let Some(StoreTrouble { fault, reason, shards }) = &health.store {
        let kind = metrics::fault_name(*fault);
        line("store", format!("{kind}: {reason}; {shards} shards are read-only"));
    }
    if let Some(damage) = &health.damage {
        let Damage { reason, ago } = damage;
        line("store", format!("damaged: {reason}, {} s ago", ago.as_secs()));
    }
    if let Some(Damage { reason, ago }) = &health.unreadable {
        line("runs", format!("unreadable: {reason}, {} s ago", ago.as_secs()));
    }
    if let Some(RefusedCommit { reason, ago }) = &health.refusal {
        line("store", format!("refused a commit: {reason}, {} s ago", ago.as_secs()));
    }
    if health.set_aside > 0 {
        line(
            "runs",
            format!("set aside: {}, because the store refused their writes", health.set_aside),
        );
    }
    if let Some(ClockStep { step, ago }) = health.clock {
        line("clock", format!("set: by {step}, {} s ago", ago.as_secs()));
    }
    lines
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use abide_engine::{StoreFault, clock::Step};

    use super::*;

    #[test]
    fn each_thing_that_is_wrong_has_a_line() {
        assert_eq!(wrong(&Health::default()), "");
        let step = Step { by: Duration::from_secs(3600), forwards: false };
        let health = Health {
            failed: Some("store stopped: i/o error".into()),
            store: Some(StoreTrouble {
                fault: StoreFault::Full,
                reason: "the disk of the store is full".into(),
                shards: 64,
            }),
            damage: Some(Damage {
                reason: "store corrupt:\na page".into(),
                ago: Duration::from_secs(7),
            }),
            unreadable: Some(Damage {
                reason: "run 1: an unknown event".into(),
                ago: Duration::from_secs(9),
            }),
            refusal: Some(RefusedCommit {
                reason: "a row is too large".into(),
                ago: Duration::from_secs(9),
            }),
            set_aside: 2,
            clock: Some(ClockStep { step, ago: Duration::from_secs(42) }),
        };
        let expected = "engine: failed: store stopped: i/o error\n\
            store: full: the disk of the store is full; 64 shards are read-only\n\
            store: damaged: store corrupt: a page, 7 s ago\n\
            runs: unreadable: run 1: an unknown event, 9 s ago\n\
            store: refused a commit: a row is too large, 9 s ago\n\
            runs: set aside: 2, because the store refused their writes\n\
            clock: set: by -3600.000s, 42 s ago\n";
        assert_eq!(wrong(&health), expected);
    }

    #[test]
    fn a_server_that_only_reads_is_worth_calls_and_one_that_does_not_serve_is_not() {
        let full = || StoreTrouble { fault: StoreFault::Full, reason: "full".into(), shards: 1 };
        let well = Health::default();
        let degraded = Health { store: Some(full()), ..Health::default() };
        let failed = Health { failed: Some("stopped".into()), ..Health::default() };
        let line = |serving, health: &Health| {
            let (status, text) = readiness(serving, health);
            (status.as_u16(), text.lines().next().unwrap().to_owned())
        };
        assert_eq!(line(true, &well), (200, "ready".into()));
        assert_eq!(line(true, &degraded), (200, "degraded".into()));
        for (serving, health) in [(false, &well), (false, &degraded), (true, &failed)] {
            assert_eq!(line(serving, health), (503, "not ready".into()));
        }
    }
}
