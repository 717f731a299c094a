//! The protocol between `abide replay` and a worker's program. Only the program has the code of the
//! workflows, so the command starts it with a variable that names a folder; its workers then replay
//! the histories in the folder's request, append to its report, and never connect.

use std::{
    env, fs,
    fs::OpenOptions,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use abide_core::{codec, event::Event};
use serde::{Deserialize, Serialize};

use crate::{
    codec::CodecError,
    registry::Registry,
    replay::{self, ReplayError},
};

/// The environment variable that names the folder. A worker that finds it replays instead of
/// working.
pub const REPLAY_VARIABLE: &str = "ABIDE_REPLAY";

/// Why nothing can be expected of a worker under `abide replay`.
pub(super) const REPLAYS_ONLY: &str = "the program was started by `abide replay`, so that its workers replay histories and take no tasks";

const REQUEST: &str = "request.json";
const REPORT: &str = "report.jsonl";

/// The folder through which `abide replay` and the program exchange request and report.
#[derive(Clone, Debug)]
pub struct ReplayFolder(PathBuf);

/// One line of the report that workers write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayReport {
    /// A worker starts; it writes this line before it replays.
    Worker {
        /// The queue of the worker.
        queue: String,
        /// The types of the workflows that it has registered.
        workflow_types: Vec<String>,
    },
    /// A worker that has the workflow registered has replayed a history.
    Replayed {
        /// The history file, as the request names it.
        history: PathBuf,
        /// Whether the code matches the history.
        outcome: ReplayOutcome,
    },
}

/// The result of replaying one history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// The code takes the same steps as the history.
    Fits,
    /// The code takes other steps; the text is a short diff.
    Mismatch(String),
    /// The code panicked, or did what workflow code must not do; the text says what.
    Fault(String),
    /// The file cannot be read, or is not a complete history.
    Unreadable(String),
}

impl ReplayFolder {
    /// Writes a request to replay these files into the folder, for one program.
    pub fn request(folder: &Path, histories: &[PathBuf]) -> io::Result<Self> {
        fs::write(folder.join(REQUEST), serde_json::to_vec(histories)?)?;
        fs::write(folder.join(REPORT), "")?;
        Ok(Self(folder.to_owned()))
    }

    /// The path of the folder: the value of [`REPLAY_VARIABLE`].
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The complete lines that workers have reported so far.
    pub fn reports(&self) -> io::Result<Vec<ReplayReport>> {
        let text = fs::read_to_string(self.0.join(REPORT))?;
        // The last line may be incomplete while a worker writes it.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let read = |line: &str| serde_json::from_str(line).map_err(io::Error::from);
        whole.lines().map(read).collect()
    }

    /// The folder that this program was started with, if any.
    pub(crate) fn of_program() -> Option<Self> {
        env::var_os(REPLAY_VARIABLE).filter(|path| !path.is_empty()).map(|path| Self(path.into()))
    }

    /// Replays the requested histories whose workflows are registered; returns how many those were.
    pub(super) fn replay(
        &self,
        queue: &str,
        registry: &Registry,
        decode: &impl Fn(&mut Vec<Event>) -> Result<(), CodecError>,
    ) -> io::Result<usize> {
        let histories: Vec<PathBuf> = serde_json::from_slice(&fs::read(self.0.join(REQUEST))?)?;
        let workflow_types = registry.workflow_types().map(str::to_owned).collect();
        self.tell(&ReplayReport::Worker { queue: queue.to_owned(), workflow_types })?;
        let mut replayed = 0;
        for history in histories {
            if let Some(outcome) = outcome(registry, &history, decode) {
                replayed += 1;
                self.tell(&ReplayReport::Replayed { history, outcome })?;
            }
        }
        Ok(replayed)
    }

    /// Appends a line in one write, because other workers of the program write at the same time.
    fn tell(&self, report: &ReplayReport) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        OpenOptions::new().append(true).open(self.0.join(REPORT))?.write_all(&line)
    }
}

/// The result of one history; none if its workflow is not registered here.
fn outcome(
    registry: &Registry,
    file: &Path,
    decode: &impl Fn(&mut Vec<Event>) -> Result<(), CodecError>,
) -> Option<ReplayOutcome> {
    let events = fs::read(file).map_err(|error| error.to_string()).and_then(|bytes| {
        codec::decode_events(bytes.into()).map_err(|error| ReplayError::from(error).to_string())
    });
    let events = events.and_then(|mut events| {
        decode(&mut events).map_err(|error| error.to_string())?;
        Ok(events)
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
        Err(ReplayError::Fault { failure, .. }) => ReplayOutcome::Fault(failure.to_string()),
        Err(error @ (ReplayError::Unreadable(_) | ReplayError::NotWhole(_))) => {
            ReplayOutcome::Unreadable(error.to_string())
        }
    })
}
