//! Files of the store are removed, emptied or cut while the server is stopped. It refuses to start
//! with less than it had, changes nothing, and continues when the files are back.

use std::{collections::BTreeMap, ffi::OsString, fs, io, path::Path};

use abide_core::codec::generated::{RunSpec, WorkflowKey};
use abide_proto::generated::{CountRunsRequest, StartRunRequest, abide_client::AbideClient};

use crate::{Arena, Finding, Report, Victim};

const RUNS: u64 = 40;

/// A name for the damage, a function that does it, and the expected error text.
type Harm = (&'static str, fn(&Path) -> io::Result<()>, &'static str);

const HARMS: [Harm; 6] = [
    ("the file is gone", |data| fs::remove_file(data.join("abide.db")), "is missing"),
    ("the file is empty", |data| fs::write(data.join("abide.db"), ""), "is empty"),
    ("the log is gone", |data| fs::remove_file(data.join("abide.db-wal")), "ends with row"),
    ("the log is cut in the middle", |data| cut(data, 2), "ends with row"),
    ("the log is cut at its end", |data| cut(data, 1), "ends with row"),
    ("only the log is left", only_the_log, "its log is here"),
];

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let data = arena.path("data");
    let start = async || arena.start_with(|config| config.data.clone_from(&data)).await;
    // The second process finds a file with all tables in it, so that the log holds only rows.
    start().await?.end().await?;
    let victim = start().await?;
    let mut client = AbideClient::new(victim.channel().await?);
    for number in 0..RUNS {
        client.start_run(request(number)).await?;
    }
    victim.end().await?;
    let whole = files(&data)?;
    for (what, harm, told) in HARMS {
        harm(&data)?;
        let harmed = files(&data)?;
        match start().await {
            Ok(_) => return Err(Finding::new(format!("{what}, and the server has started"))),
            Err(refused) if refused.to_string().contains(told) => {}
            Err(refused) => return Err(Finding::new(format!("{what}: {refused}"))),
        }
        let untouched = stored(&files(&data)?) == stored(&harmed);
        Finding::unless(untouched, || format!("{what}, and files were changed"))?;
        for (name, content) in &whole {
            fs::write(data.join(name), content)?;
        }
    }
    let victim = start().await?;
    let count = count(&victim).await?;
    Finding::unless(count == RUNS, || format!("{count} runs are left of {RUNS}"))?;
    victim.end().await?;
    Ok(Report::default().with("harms", HARMS.len()).with("runs", RUNS))
}

async fn count(victim: &Victim) -> Result<u64, Finding> {
    let mut client = AbideClient::new(victim.channel().await?);
    Ok(client.count_runs(CountRunsRequest::default()).await?.into_inner().count)
}

/// Keeps all of the log but its last byte, or about its first half.
fn cut(data: &Path, parts: usize) -> io::Result<()> {
    let log = fs::read(data.join("abide.db-wal"))?;
    fs::write(data.join("abide.db-wal"), &log[..log.len() / parts - 1])
}

fn only_the_log(data: &Path) -> io::Result<()> {
    fs::remove_file(data.join("abide.db"))?;
    fs::remove_file(data.join("abide.db.mark"))
}

/// The content of all files.
fn files(data: &Path) -> io::Result<BTreeMap<OsString, Vec<u8>>> {
    fs::read_dir(data)?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), fs::read(entry.path())?))
        })
        .collect()
}

/// The files that hold data. SQLite creates its index of the log, and an empty log, when it opens
/// the file.
fn stored(files: &BTreeMap<OsString, Vec<u8>>) -> BTreeMap<&OsString, &Vec<u8>> {
    files.iter().filter(|(name, content)| *name != "abide.db-shm" && !content.is_empty()).collect()
}

fn request(number: u64) -> StartRunRequest {
    let workflow =
        WorkflowKey { namespace: "default".into(), workflow: format!("workflow-{number}") };
    StartRunRequest {
        workflow: Some(workflow),
        spec: Some(RunSpec {
            workflow_type: "hello".into(),
            queue: "hello".into(),
            ..RunSpec::default()
        }),
        ..StartRunRequest::default()
    }
}
