//! The histories to replay: files as they are, or fetched from an engine into files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use abide::client::HistoryEvent;
use abide::{Client, Codecs};
use abide_command::Failed;
use abide_core::{
    codec,
    event::{Event, Fact},
    list::RunFilter,
};

use crate::workflow::{count_runs, pages};

pub(super) struct History {
    pub(super) file: PathBuf,
    /// Its name for people: the file, or the workflow's id.
    pub(super) name: String,
    pub(super) workflow: String,
    pub(super) run: String,
    pub(super) workflow_type: String,
    pub(super) events: usize,
}

/// All histories to replay.
pub(super) struct Gathered {
    pub(super) histories: Vec<History>,
    pub(super) fetched: Option<Fetched>,
}

/// How many runs were fetched, and how many there are.
pub(super) struct Fetched {
    pub(super) runs: usize,
    pub(super) of: u64,
}

/// The histories in these files, and in the files of these folders.
pub(super) fn of_files(named: &[PathBuf]) -> Result<Gathered, Failed> {
    let mut histories = Vec::new();
    for path in named {
        for file in files(path)? {
            let events = read(&file)?;
            let name = file.display().to_string();
            let file = file.canonicalize().map_err(|error| unreadable(&file, error))?;
            histories.push(History::new(file, name, &events)?);
        }
    }
    Ok(Gathered { histories, fetched: None })
}

/// Fetches the histories of the newest runs that match the filter.
pub(super) async fn fetch(
    client: &Client,
    filter: RunFilter,
    limit: usize,
    folder: &Path,
) -> Result<Gathered, Failed> {
    // Histories stay as they are stored: the worker that replays them has the codecs.
    let client = &client.clone().with_codecs(Codecs::new());
    let of = count_runs(client, filter.clone()).await?;
    let mut histories = Vec::new();
    for (number, row) in pages(client, filter, limit).await?.into_iter().enumerate() {
        let handle = client.handle_untyped(row.workflow.clone()).run(row.run);
        let events = HistoryEvent::all_recorded(handle.history().await?);
        let file = folder.join(format!("{number}.history"));
        fs::write(&file, codec::encode_events(&events))?;
        histories.push(History::new(file, row.workflow.to_string(), &events)?);
    }
    if histories.is_empty() {
        return Err(Failed::refused("no run matches the filter: nothing to replay")
            .hint("check the filter with `abide workflow list` and the same options"));
    }
    let fetched = Some(Fetched { runs: histories.len(), of });
    Ok(Gathered { histories, fetched })
}

impl History {
    fn new(file: PathBuf, name: String, events: &[Event]) -> Result<Self, Failed> {
        let Some(Fact::RunStarted(started)) = events.first().map(|event| &event.body.fact) else {
            return Err(Failed::usage(format_args!(
                "{name} is not a full history: it does not begin with RunStarted"
            ))
            .hint("record it with `abide workflow history ID --record FILE`"));
        };
        Ok(Self {
            file,
            name,
            workflow: started.workflow.to_string(),
            run: started.run.to_string(),
            workflow_type: started.spec.workflow_type.clone(),
            events: events.len(),
        })
    }
}

/// The file itself, or the histories in a folder, sorted by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failed> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, error))? {
        files.push(entry.map_err(|error| unreadable(path, error))?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "history"));
    files.sort();
    if files.is_empty() {
        let what = format_args!("{} contains no .history files", path.display());
        return Err(Failed::usage(what));
    }
    Ok(files)
}

fn read(file: &Path) -> Result<Vec<Event>, Failed> {
    let bytes = fs::read(file).map_err(|error| unreadable(file, error))?;
    codec::decode_events(bytes.into()).map_err(|error| {
        Failed::usage(format_args!("{} is not a history: {error}", file.display()))
            .hint("record it again with `abide workflow history ID --record FILE`")
    })
}

fn unreadable(path: &Path, error: std::io::Error) -> Failed {
    Failed::usage(format_args!("cannot read {}: {error}", path.display()))
}
