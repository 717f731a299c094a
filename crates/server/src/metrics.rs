//! Metrics in the text format of Prometheus. They describe the engine and never the content of
//! runs.

use std::{
    fmt::{Display, Write as _},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use abide_core::operation::CallError;
use abide_engine::{CommitTimes, Figures, StoreFault};

use crate::{connections::Connections, handler::Handler};

/// The results of calls, as values of a label.
const RESULTS: [&str; 15] = [
    "ok",
    "invalid",
    "not_found",
    "already_exists",
    "refused",
    "update_aborted",
    "blocked",
    "stale_query",
    "set_aside",
    "unreadable",
    "not_served",
    "reset",
    "unavailable",
    "overloaded",
    "no_answer",
];

/// Counts calls by result.
#[derive(Debug, Default)]
pub(crate) struct Results([AtomicU64; RESULTS.len()]);

impl Results {
    /// Counts the result of one call.
    pub(crate) fn count<T>(&self, result: &Result<T, CallError>) {
        self.0[place(result.as_ref().err())].fetch_add(1, Relaxed);
    }

    fn samples(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RESULTS.into_iter().zip(self.0.iter().map(|counter| counter.load(Relaxed)))
    }
}

/// Index in [`RESULTS`] of a failure, or of success.
const fn place(failed: Option<&CallError>) -> usize {
    let Some(failed) = failed else { return 0 };
    match failed {
        CallError::Invalid(_) => 1,
        CallError::NotFound => 2,
        CallError::AlreadyExists { .. } => 3,
        CallError::Refused(_) => 4,
        CallError::UpdateAborted { .. } => 5,
        CallError::Blocked(_) => 6,
        CallError::StaleQuery => 7,
        CallError::SetAside(_) => 8,
        CallError::Unreadable { .. } => 9,
        CallError::NotServed => 10,
        CallError::Reset => 11,
        CallError::Unavailable(_) => 12,
        CallError::Overloaded => 13,
        CallError::NoAnswer(_) => 14,
    }
}

/// All metrics of a server.
pub(crate) fn text(handler: &Handler) -> String {
    let figures = handler.engine.figures();
    let mut page = MetricsPage::default();
    page.figure("abide_info", "gauge", "Version of the server.");
    page.sample("abide_info", Some(("version", env!("CARGO_PKG_VERSION"))), 1);
    standing(&mut page, &figures);
    let (calls, completions) = handler.results();
    page.figure("abide_calls_total", "counter", "Answered calls of clients.");
    for (result, count) in calls.samples() {
        page.sample("abide_calls_total", Some(("result", result)), count);
    }
    let help = "Answered completions and heartbeats of workers.";
    page.figure("abide_completions_total", "counter", help);
    for (result, count) in completions.samples() {
        page.sample("abide_completions_total", Some(("result", result)), count);
    }
    let help = "Open streams of calls, workers, other nodes, followed histories and waits.";
    page.one("abide_streams", "gauge", help, handler.connections.open_streams());
    connected(&mut page, &handler.connections);
    work(&mut page, &figures);
    commits(&mut page, &figures.commits);
    let help = "Errors of the store.";
    page.figure("abide_store_faults_total", "counter", help);
    for (fault, count) in &figures.faults {
        page.sample("abide_store_faults_total", Some(("kind", fault_name(*fault))), count);
    }
    trouble(&mut page, &figures);
    page.0
}

/// Metrics that a person should look into unless they are zero.
fn trouble(page: &mut MetricsPage, figures: &Figures) {
    let help = "Shards that are read-only because the store does not accept writes.";
    page.one("abide_shards_read_only", "gauge", help, figures.read_only);
    let help = "Runs that were set aside because the store refused their writes twice.";
    page.one("abide_runs_set_aside", "gauge", help, figures.set_aside);
    let help = "Runs that could not be read.";
    page.one("abide_runs_unreadable_total", "counter", help, figures.unreadable);
    let help = "Children that did not start because the store refused them, and invalid effects.";
    page.one("abide_effects_refused_total", "counter", help, figures.refused_effects);
    let help = "Clock steps of a second or more.";
    page.one("abide_clock_steps_total", "counter", help, figures.clock_steps);
}

/// Metrics of the server's role in the cluster.
fn standing(page: &mut MetricsPage, figures: &Figures) {
    page.one("abide_shards", "gauge", "Shards that this node serves, of 64.", figures.shards);
    let help = "1 if the server may serve its shards: it is the only node, or its lease is valid.";
    page.one("abide_joined", "gauge", help, u8::from(figures.joined));
    if let Some(left) = figures.lease_left {
        let help = "Seconds until the lease expires if it is not renewed.";
        page.one("abide_lease_seconds", "gauge", help, left.as_secs_f64());
    }
    page.one("abide_peers", "gauge", "Other nodes that have not left.", figures.nodes);
    page.one("abide_peer_links", "gauge", "Other nodes that are reachable.", figures.links);
    let help = "Calls that were forwarded to other nodes.";
    page.one("abide_forwarded_calls_total", "counter", help, figures.forwarded);
}

/// Metrics of connections and their bytes in flight.
fn connected(page: &mut MetricsPage, connections: &Connections) {
    page.one("abide_connections", "gauge", "Open gRPC connections.", connections.count());
    let help = "Bytes of incomplete messages, pending requests and unread answers.";
    page.one("abide_bytes_in_flight", "gauge", help, connections.bytes());
    let help = "Connections and streams that were closed or refused to protect the server.";
    page.figure("abide_evictions_total", "counter", help);
    for (why, count) in connections.evictions.samples() {
        page.sample("abide_evictions_total", Some(("kind", why.label())), count);
    }
    let help = "TLS handshakes that failed; the log names addresses and reasons.";
    let failed = connections.failed_handshakes.count();
    page.one("abide_tls_handshakes_failed_total", "counter", help, failed);
}

/// Metrics of the work done for runs.
fn work(page: &mut MetricsPage, figures: &Figures) {
    page.one("abide_workers", "gauge", "Workers that are connected to this node.", figures.workers);
    let help = "Tasks, queries and activities that this node delivered to workers.";
    page.one("abide_tasks_given_total", "counter", help, figures.given);
    let help = "Tasks in memory that wait for a worker; the store may hold more.";
    page.figure("abide_tasks_waiting", "gauge", help);
    page.sample("abide_tasks_waiting", Some(("kind", "workflow")), figures.tasks_waiting);
    page.sample("abide_tasks_waiting", Some(("kind", "activity")), figures.activities_waiting);
    let help = "Timers, deadlines and retries that became due.";
    page.one("abide_timers_fired_total", "counter", help, figures.timers_fired);
    let help =
        "Times that a thread waited for the node's queues and links, which one uses at a time.";
    page.one("abide_node_waits_total", "counter", help, figures.node_waits);
    let help = "Rows appended to the logs of runs.";
    page.one("abide_transitions_total", "counter", help, figures.transitions);
}

fn commits(page: &mut MetricsPage, times: &CommitTimes) {
    let name = "abide_commit_seconds";
    page.figure(name, "histogram", "How long the store took to answer a shard's commit.");
    let bucket = format!("{name}_bucket");
    for (bound, count) in &times.within {
        page.sample(&bucket, Some(("le", &bound.as_secs_f64().to_string())), count);
    }
    page.sample(&bucket, Some(("le", "+Inf")), times.count);
    page.sample(&format!("{name}_sum"), None, times.total.as_secs_f64());
    page.sample(&format!("{name}_count"), None, times.count);
}

pub(crate) const fn fault_name(fault: StoreFault) -> &'static str {
    match fault {
        StoreFault::Stale => "stale",
        StoreFault::Refused => "refused",
        StoreFault::Unavailable => "unavailable",
        StoreFault::Full => "full",
        StoreFault::Unknown => "unknown",
        StoreFault::Stopped => "stopped",
        StoreFault::Read => "read",
        StoreFault::Damaged => "damaged",
        StoreFault::Registry => "registry",
        StoreFault::Upkeep => "upkeep",
    }
}

/// A page of metrics under construction. Names and labels are constants of ours, so nothing needs
/// escaping.
#[derive(Default)]
struct MetricsPage(String);

impl MetricsPage {
    /// Writes the `HELP` and `TYPE` lines of a metric.
    fn figure(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one value of the metric introduced last.
    fn sample(&mut self, name: &str, label: Option<(&str, &str)>, value: impl Display) {
        self.0.push_str(name);
        if let Some((label, content)) = label {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{{{label}=\"{content}\"}}");
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a metric that has a single value.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.figure(name, kind, help);
        self.sample(name, None, value);
    }
}
