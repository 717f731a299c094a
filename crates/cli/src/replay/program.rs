//! Starts the worker's program, which replays and reports. It may go on with other work, so it is
//! killed as soon as it has reported on every history.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt,
    fs::{self, File},
    path::Path,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use abide::__private::worker::{REPLAY_VARIABLE, ReplayFolder, ReplayReport};
use abide_command::Failed;
use tokio::process::{Child, Command};

use super::{ReplayEnd, Replayed, histories::History};

/// How often the report is read.
const GLANCE: Duration = Duration::from_millis(20);

/// Lines of the program's output that are shown if it reports nothing.
const LINES_MAX: usize = 10;

/// Why the program is no longer waited for.
enum Stopped {
    AllTold,
    Exited(ExitStatus),
    TimedOut(Duration),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllTold => f.write_str("there was nothing to replay"),
            Self::Exited(status) => write!(f, "it ended with {status}"),
            Self::TimedOut(timeout) => write!(f, "it exceeded the time limit of {timeout:?}"),
        }
    }
}

/// Lets the program replay the histories, and returns its report.
pub(super) async fn replay(
    words: &[OsString],
    timeout: Duration,
    folder: &Path,
    histories: Vec<History>,
) -> Result<Vec<Replayed>, Failed> {
    let files: Vec<_> = histories.iter().map(|history| history.file.clone()).collect();
    let meeting = ReplayFolder::request(folder, &files)?;
    let said = folder.join("said.txt");
    let mut child = start(words, &meeting, &said)?;
    let stopped = wait(&mut child, &meeting, files.len(), timeout).await?;
    // It may have ended by itself meanwhile.
    let _ended = child.kill().await;
    let reports = meeting.reports()?;
    if let Some(failed) = told_nothing(&words[0], &stopped, &reports, &said) {
        return Err(failed);
    }
    let replayed = |history: History| {
        let end = end_of(&history, &reports).unwrap_or_else(|| {
            let program = Path::new(&words[0]).display();
            ReplayEnd::NotReplayed(format!("{program} did not reach it: {stopped}"))
        });
        Replayed { history, end }
    };
    Ok(histories.into_iter().map(replayed).collect())
}

/// The outcome of a history; `None` if a worker has the workflow and did not report on it.
fn end_of(history: &History, reports: &[ReplayReport]) -> Option<ReplayEnd> {
    let mut known = false;
    for report in reports {
        match report {
            ReplayReport::Replayed { history: file, outcome } if *file == history.file => {
                return Some(ReplayEnd::Outcome(outcome.clone()));
            }
            ReplayReport::Replayed { .. } => {}
            ReplayReport::Worker { workflow_types, .. } => {
                known |= workflow_types.contains(&history.workflow_type);
            }
        }
    }
    (!known).then_some(ReplayEnd::UnknownType)
}

/// Starts the program. Its output is kept apart from ours.
fn start(words: &[OsString], meeting: &ReplayFolder, said: &Path) -> Result<Child, Failed> {
    let file = File::create(said)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(REPLAY_VARIABLE, meeting.path()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    command.spawn().map_err(|error| {
        let program = Path::new(&words[0]).display();
        Failed::usage(format_args!("cannot start {program}: {error}"))
    })
}

async fn wait(
    child: &mut Child,
    meeting: &ReplayFolder,
    wanted: usize,
    timeout: Duration,
) -> Result<Stopped, Failed> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Stopped::Exited(status));
        }
        if told(&meeting.reports()?) >= wanted {
            return Ok(Stopped::AllTold);
        }
        if Instant::now() >= deadline {
            return Ok(Stopped::TimedOut(timeout));
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Number of histories that were reported; two workers may have the same workflow.
fn told(reports: &[ReplayReport]) -> usize {
    let mut files = BTreeSet::new();
    for report in reports {
        if let ReplayReport::Replayed { history, .. } = report {
            files.insert(history);
        }
    }
    files.len()
}

/// The error for a program that reported no history.
fn told_nothing(
    program: &OsString,
    stopped: &Stopped,
    reports: &[ReplayReport],
    said: &Path,
) -> Option<Failed> {
    let program = Path::new(program).display();
    let has_workflows = |report: &ReplayReport| matches!(report, ReplayReport::Worker { workflow_types, .. } if !workflow_types.is_empty());
    if told(reports) > 0 || reports.iter().any(has_workflows) {
        return None;
    }
    if !reports.is_empty() {
        let what = format_args!("no worker of {program} registers a workflow");
        return Some(
            Failed::refused(what).hint("register the workflows of these histories with a worker"),
        );
    }
    let words = fs::read_to_string(said).unwrap_or_default();
    let lines: Vec<_> = words.lines().collect();
    let last = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n  ");
    let said = if last.is_empty() {
        "it printed nothing".into()
    } else {
        format!("it printed:\n  {last}")
    };
    let what = format_args!("no worker of {program} replayed a history: {stopped}; {said}");
    Some(Failed::refused(what).hint(
        "the program must call `Worker::run` of an abide version that supports `abide replay`; see --timeout",
    ))
}
