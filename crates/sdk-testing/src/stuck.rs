//! Error for a test that waits for what cannot happen: which runs are open, and what they wait for.

use abide_core::{
    failure::Failure,
    ids::WorkflowKey,
    list::RunFilter,
    operation::{CallError, Describe, ListRuns, RunTarget},
    run::{Description, Liveness, ShownWait, WaitKey},
};
use abide_sdk::transport::{Transport, ask};

/// Maximum number of runs in the error.
const LOOKED_AT: usize = 20;

/// Error of a call that would wait forever.
pub(crate) async fn error(transport: &dyn Transport, reason: &str) -> CallError {
    let mut open = Vec::new();
    let runs = ListRuns { filter: RunFilter::default(), limit: Some(LOOKED_AT) };
    let runs = ask(transport, runs).await.map(|runs| runs.rows);
    for row in runs.unwrap_or_default() {
        let workflow = WorkflowKey { namespace: row.namespace, workflow: row.workflow };
        let target = RunTarget { workflow, run: Some(row.run) };
        if let Ok(run) = ask(transport, Describe { target }).await
            && run.closed_at.is_none()
        {
            open.push(shown(&run));
        }
    }
    if open.is_empty() {
        open.push("no run is open".into());
    }
    CallError::NoAnswer(format!("{reason}; {}", open.join("; ")))
}

/// A run and what it waits for.
fn shown(run: &Description) -> String {
    let mut kept_by = Vec::new();
    if let Some(trouble) = &run.trouble {
        kept_by.push(format!("its task fails: {}", in_full(&trouble.failure)));
    }
    for activity in &run.activities {
        let name = &activity.activity_type;
        kept_by.push(match &activity.last_failure {
            Some(failure) => {
                format!(
                    "attempt {} of activity {name} failed: {}",
                    activity.attempt.saturating_sub(1),
                    in_full(failure)
                )
            }
            None => format!("activity {name} of queue {} has not ended", activity.queue),
        });
    }
    let children = run.children.iter().map(|child| format!("child {} is open", child.workflow));
    kept_by.extend(children);
    // A wait for the next attempt is reported with its activity.
    let retried = |wait: &&ShownWait| matches!(wait.key, WaitKey::Activity(_));
    for wait in run.waits.iter().filter(|wait| !retried(wait)) {
        kept_by.push(format!(
            "it waits for {} {}",
            format!("{:?}", wait.kind).to_lowercase(),
            wait.name
        ));
    }
    if kept_by.is_empty() && run.liveness == Liveness::TaskWaiting {
        kept_by.push(format!("no worker of queue {} takes its task", run.queue));
    }
    let (workflow, name, run_id) = (&run.workflow, &run.workflow_type, run.run);
    format!("workflow {workflow} ({name}, run {run_id}): {}", kept_by.join(", "))
}

fn in_full(failure: &Failure) -> String {
    failure.chain().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join(", because: ")
}
