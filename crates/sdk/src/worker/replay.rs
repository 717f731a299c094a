//! What `abide replay` asks of a worker's program, and what the program tells it. The code of workflows
//! is in the program only, so it is started with a variable that names a folder; its workers then
//! replay the histories that the folder's request names, add to its report, and never connect.

use std::{
    env, fs,
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use abide_core::codec;
use serde::{Deserialize, Serialize};

use crate::{
    registry::Registry,
    replay::{self, ReplayError},
};

/// The variable that names the folder.
pub const REPLAY_VARIABLE: &str = "ABIDE_REPLAY";

const REQUEST: &str = "request.json";
const REPORT: &str = "report.jsonl";

/// The folder in which program and command meet.
#[derive(Clone, Debug)]
pub struct ReplayFolder(PathBuf);

/// What a worker tells, one line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayReport {
    /// A worker begins.
    Worker {
        /// Its queue.
        queue: String,
        /// The workflows that it has.
        workflow_types: Vec<String>,
    },
    /// A worker that has the workflow has replayed a history.
    Replayed {
        /// The file.
        history: PathBuf,
        /// What came of it.
        outcome: ReplayOutcome,
    },
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// The code takes the steps of the history.
    Fits,
    /// The code takes other steps: a small diff.
    Mismatch(String),
    /// The code panicked, or did what workflow code must not do.
    Fault(String),
    /// The file cannot be read, or is no whole history.
    Unreadable(String),
}

impl ReplayFolder {
    /// A folder for one program, with a request to replay these files.
    pub fn request(folder: &Path, histories: &[PathBuf]) -> io::Result<Self> {
        fs::write(folder.join(REQUEST), serde_json::to_vec(histories)?)?;
        fs::write(folder.join(REPORT), "")?;
        Ok(Self(folder.to_owned()))
    }

    /// Where it is: the value of [`REPLAY_VARIABLE`].
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What was told so far.
    pub fn reports(&self) -> io::Result<Vec<ReplayReport>> {
        let text = fs::read_to_string(self.0.join(REPORT))?;
        // The last line may not be whole yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let read = |line: &str| serde_json::from_str(line).map_err(io::Error::from);
        whole.lines().map(read).collect()
    }

    /// The folder that this program was started with, if it was.
    pub(super) fn of_program() -> Option<Self> {
        env::var_os(REPLAY_VARIABLE).filter(|path| !path.is_empty()).map(|path| Self(path.into()))
    }

    /// Replays what is asked for and what the registry has; tells how many histories that were.
    pub(super) fn replay(&self, queue: &str, registry: &Registry) -> io::Result<usize> {
        let histories: Vec<PathBuf> = serde_json::from_slice(&fs::read(self.0.join(REQUEST))?)?;
        let workflow_types = registry.workflow_types().map(str::to_owned).collect();
        self.tell(&ReplayReport::Worker { queue: queue.to_owned(), workflow_types })?;
        let mut replayed = 0;
        for history in histories {
            if let Some(outcome) = outcome(registry, &history) {
                replayed += 1;
                self.tell(&ReplayReport::Replayed { history, outcome })?;
            }
        }
        Ok(replayed)
    }

    /// Adds a line in one write, because other workers of the program tell at the same time.
    fn tell(&self, report: &ReplayReport) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        OpenOptions::new().append(true).open(self.0.join(REPORT))?.write_all(&line)
    }
}

/// What came of one history; nothing if it is for another worker.
fn outcome(registry: &Registry, file: &Path) -> Option<ReplayOutcome> {
    let events = fs::read(file).map_err(|error| error.to_string()).and_then(|bytes| {
        codec::decode_events(bytes.into()).map_err(|error| ReplayError::from(error).to_string())
    });
    let replayed = match events {
        Ok(events) => replay::replay(registry, events),
        Err(error) => return Some(ReplayOutcome::Unreadable(error)),
    };
    Some(match replayed {
        Ok(()) => ReplayOutcome::Fits,
        Err(ReplayError::OtherWorkflow { .. }) => return None,
        Err(ReplayError::Mismatch { mismatch, .. }) => {
            ReplayOutcome::Mismatch(mismatch.to_string())
        }
        Err(ReplayError::Fault { fault, .. }) => ReplayOutcome::Fault(fault.failure.message),
        Err(error @ (ReplayError::Unreadable(_) | ReplayError::NotWhole(_))) => {
            ReplayOutcome::Unreadable(error.to_string())
        }
    })
}
