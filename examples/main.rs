//! All examples as one program: `cargo run -p abide-examples NAME` runs one of them, and without a
//! name it lists them. Each folder holds a complete program, to be read and copied; they share
//! nothing.

#[path = "accumulator/main.rs"]
mod accumulator;
#[path = "agent-approval/main.rs"]
mod agent_approval;
#[path = "agent-interrupt/main.rs"]
mod agent_interrupt;
#[path = "agent-model/main.rs"]
mod agent_model;
#[path = "approval/main.rs"]
mod approval;
#[path = "approval-data/main.rs"]
mod approval_data;
#[path = "approval-deadline/main.rs"]
mod approval_deadline;
#[path = "approval-escalation/main.rs"]
mod approval_escalation;
#[path = "approval-levels/main.rs"]
mod approval_levels;
#[path = "async-completion/main.rs"]
mod async_completion;
#[path = "batch-iterator/main.rs"]
mod batch_iterator;
#[path = "bounded-parallel/main.rs"]
mod bounded_parallel;
#[path = "callback/main.rs"]
mod callback;
#[path = "child/main.rs"]
mod child;
#[path = "claim-check/main.rs"]
mod claim_check;
#[path = "cleanup/main.rs"]
mod cleanup;
mod comparison;
#[path = "continue-as-new/main.rs"]
mod continue_as_new;
#[path = "cron/main.rs"]
mod cron;
#[path = "deadline/main.rs"]
mod deadline;
#[path = "debounce/main.rs"]
mod debounce;
#[path = "delayed-retry/main.rs"]
mod delayed_retry;
#[path = "delayed-start/main.rs"]
mod delayed_start;
#[path = "dependency-injection/main.rs"]
mod dependency_injection;
#[path = "eager-start/main.rs"]
mod eager_start;
#[path = "early-return/main.rs"]
mod early_return;
#[path = "early-return-local/main.rs"]
mod early_return_local;
#[path = "embedded/main.rs"]
mod embedded;
#[path = "encryption/main.rs"]
mod encryption;
#[path = "entity/main.rs"]
mod entity;
#[path = "extensions/main.rs"]
mod extensions;
#[path = "fan-out/main.rs"]
mod fan_out;
#[path = "fast-slow-retries/main.rs"]
mod fast_slow_retries;
#[path = "first-success/main.rs"]
mod first_success;
#[path = "hello/main.rs"]
mod hello;
#[path = "idempotent-transaction/main.rs"]
mod idempotent_transaction;
#[path = "interceptor/main.rs"]
mod interceptor;
#[path = "local-activity/main.rs"]
mod local_activity;
#[path = "long-activity/main.rs"]
mod long_activity;
#[path = "map-reduce/main.rs"]
mod map_reduce;
#[path = "non-retryable/main.rs"]
mod non_retryable;
#[path = "parallel/main.rs"]
mod parallel;
#[path = "pick-first/main.rs"]
mod pick_first;
#[path = "polling-frequent/main.rs"]
mod polling_frequent;
#[path = "polling-infrequent/main.rs"]
mod polling_infrequent;
#[path = "polling-periodic/main.rs"]
mod polling_periodic;
#[path = "query/main.rs"]
mod query;
#[path = "resumable-activity/main.rs"]
mod resumable_activity;
#[path = "retry-alert/main.rs"]
mod retry_alert;
#[path = "retry-count/main.rs"]
mod retry_count;
#[path = "retry-time/main.rs"]
mod retry_time;
#[path = "saga/main.rs"]
mod saga;
#[path = "schedule/main.rs"]
mod schedule;
#[path = "signal/main.rs"]
mod signal;
#[path = "signal-with-start/main.rs"]
mod signal_with_start;
#[path = "sleep/main.rs"]
mod sleep;
#[path = "sliding-window/main.rs"]
mod sliding_window;
#[path = "update/main.rs"]
mod update;
#[path = "worker-queues/main.rs"]
mod worker_queues;

use std::env;

type Program = fn() -> anyhow::Result<()>;

/// All examples by the name of their folder.
const EXAMPLES: &[(&str, Program)] = &[
    ("accumulator", accumulator::main),
    ("agent-approval", agent_approval::main),
    ("agent-interrupt", agent_interrupt::main),
    ("agent-model", agent_model::main),
    ("approval", approval::main),
    ("approval-data", approval_data::main),
    ("approval-deadline", approval_deadline::main),
    ("approval-escalation", approval_escalation::main),
    ("approval-levels", approval_levels::main),
    ("async-completion", async_completion::main),
    ("batch-iterator", batch_iterator::main),
    ("bounded-parallel", bounded_parallel::main),
    ("callback", callback::main),
    ("child", child::main),
    ("claim-check", claim_check::main),
    ("cleanup", cleanup::main),
    ("continue-as-new", continue_as_new::main),
    ("cron", cron::main),
    ("deadline", deadline::main),
    ("debounce", debounce::main),
    ("delayed-retry", delayed_retry::main),
    ("delayed-start", delayed_start::main),
    ("dependency-injection", dependency_injection::main),
    ("eager-start", eager_start::main),
    ("early-return", early_return::main),
    ("early-return-local", early_return_local::main),
    ("embedded", embedded::main),
    ("encryption", encryption::main),
    ("entity", entity::main),
    ("extensions", extensions::main),
    ("fan-out", fan_out::main),
    ("fast-slow-retries", fast_slow_retries::main),
    ("first-success", first_success::main),
    ("hello", hello::main),
    ("idempotent-transaction", idempotent_transaction::main),
    ("interceptor", interceptor::main),
    ("local-activity", local_activity::main),
    ("long-activity", long_activity::main),
    ("map-reduce", map_reduce::main),
    ("non-retryable", non_retryable::main),
    ("parallel", parallel::main),
    ("pick-first", pick_first::main),
    ("polling-frequent", polling_frequent::main),
    ("polling-infrequent", polling_infrequent::main),
    ("polling-periodic", polling_periodic::main),
    ("query", query::main),
    ("resumable-activity", resumable_activity::main),
    ("retry-alert", retry_alert::main),
    ("retry-count", retry_count::main),
    ("retry-time", retry_time::main),
    ("saga", saga::main),
    ("schedule", schedule::main),
    ("signal", signal::main),
    ("signal-with-start", signal_with_start::main),
    ("sleep", sleep::main),
    ("sliding-window", sliding_window::main),
    ("update", update::main),
    ("worker-queues", worker_queues::main),
];

fn main() -> anyhow::Result<()> {
    let Some(name) = env::args().nth(1) else {
        println!("Say which: cargo run -p abide-examples NAME");
        for (name, _) in EXAMPLES {
            println!("  {name}");
        }
        return Ok(());
    };
    let mut programs = EXAMPLES.iter().chain(comparison::PROGRAMS);
    match programs.find(|(known, _)| *known == name) {
        Some((_, program)) => program(),
        None => anyhow::bail!("there is no example {name}; without a name, all are listed"),
    }
}
