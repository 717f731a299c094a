//! Recorded histories are checked against the code as it is now.

extern crate abide_sdk as abide;

use std::time::Duration;

use abide::client::HistoryEvent;
use abide::{
    Codecs,
    codec::{CodecProblem, Key, KeyRing},
    prelude::*,
};
use abide_core::event::Fact;
use abide_sdk_testing::{
    FolderError, ReplayError, TestEnvironment, decode_history, record, replay_folder,
    replay_history,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[activity]
async fn pack(item: String) -> String {
    format!("packed {item}")
}

#[derive(Default)]
struct Parcel;

#[workflow(name = "parcel")]
impl Parcel {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        ctx.sleep(DAY).await?;
        ctx.activity(pack, item).await
    }
}

/// The same workflow, changed: it packs first.
#[derive(Default)]
struct HastyParcel;

#[workflow(name = "parcel")]
impl HastyParcel {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        let packed = ctx.activity(pack, item).await?;
        ctx.sleep(DAY).await?;
        Ok(packed)
    }
}

/// The same workflow, broken.
#[derive(Default)]
struct BrokenParcel;

#[workflow(name = "parcel")]
impl BrokenParcel {
    #[run]
    async fn run(_ctx: &Context<Self>, item: String) -> abide::Result<String> {
        panic!("{item} is too large");
    }
}

#[derive(Default)]
struct Letter;

#[workflow]
impl Letter {
    #[run]
    async fn run(_ctx: &Context<Self>, text: String) -> String {
        text
    }
}

async fn recorded() -> Vec<HistoryEvent> {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Parcel>().activity(pack)).await.expect("it works");
    let start = env.client().start::<Parcel>("parcel-1", "a lamp");
    let parcel = start.await.expect("it is started");
    assert_eq!(parcel.result().await.expect("it completes"), "packed a lamp");
    parcel.history().await.expect("it has a history")
}

#[tokio::test]
async fn the_code_that_made_a_history_replays_it() {
    let events = recorded().await;
    replay_history::<Parcel>(events.as_slice()).unwrap();
    let bytes = record(&events);
    replay_history::<Parcel>(&bytes[..]).unwrap();
    replay_history::<Parcel>(bytes).unwrap();
}

#[tokio::test]
async fn the_history_of_an_open_run_replays_as_far_as_it_goes() {
    let events = recorded().await;
    let scheduled = |index: &usize| matches!(events[*index].fact(), Fact::TaskScheduled(_));
    let tasks: Vec<_> = (0..events.len()).filter(scheduled).collect();
    assert_eq!(tasks.len(), 3);
    for task in tasks {
        replay_history::<Parcel>(&events[..=task]).unwrap();
    }
}

#[tokio::test]
async fn a_change_of_order_is_shown_as_a_diff() {
    let error = replay_history::<HastyParcel>(recorded().await).unwrap_err();
    let expected = "workflow parcel does not fit its history: the code takes a different step \
                    than the history at event 5\n\
                    \x20              4 TaskCompleted\n\
                    - recorded     5 TimerStarted timer-1, sleep\n\
                    + code           ActivityScheduled activity-1, pack, at ";
    let line = error.to_string();
    let line = line.strip_prefix(expected).expect("it begins like that");
    assert!(line.starts_with(file!()), "{line}");
}

#[tokio::test]
async fn a_panic_is_told_as_what_it_is() {
    let error = replay_history::<BrokenParcel>(recorded().await).unwrap_err();
    assert!(matches!(error, ReplayError::Fault { .. }));
    assert!(error.to_string().contains("a lamp is too large"), "{error}");
}

#[tokio::test]
async fn what_is_no_history_of_the_workflow_is_refused() {
    let events = recorded().await;
    let error = replay_history::<Letter>(events.as_slice()).unwrap_err();
    assert_eq!(error.to_string(), "the history is of workflow parcel, not of Letter");
    let error = replay_history::<Parcel>(&events[1..]).unwrap_err();
    assert!(matches!(error, ReplayError::NotWhole(_)), "{error}");
    let mut holed = events.clone();
    holed.remove(3);
    let error = replay_history::<Parcel>(holed).unwrap_err();
    assert!(matches!(error, ReplayError::NotWhole(_)), "{error}");
    let error = replay_history::<Parcel>(&b"no history"[..]).unwrap_err();
    assert!(matches!(error, ReplayError::Unreadable(_)), "{error}");
}

#[tokio::test]
async fn all_histories_of_a_folder_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = record(&recorded().await);
    let empty = replay_folder::<Parcel>(folder.path()).unwrap_err();
    assert!(matches!(empty, FolderError::Empty(_)), "{empty}");
    for name in ["1.history", "2.history", "readme.md"] {
        std::fs::write(folder.path().join(name), &bytes).unwrap();
    }
    assert_eq!(replay_folder::<Parcel>(folder.path()).unwrap(), 2);
    std::fs::write(folder.path().join("3.history"), "no history").unwrap();
    let error = replay_folder::<HastyParcel>(folder.path()).unwrap_err().to_string();
    assert_eq!(error.matches("does not fit its history").count(), 2, "{error}");
    assert!(error.contains("3.history: the history cannot be read"), "{error}");
    let missing = replay_folder::<Parcel>(folder.path().join("missing")).unwrap_err();
    assert!(matches!(missing, FolderError::Unreadable { .. }), "{missing}");
}

#[tokio::test]
async fn an_encoded_history_is_decoded_before_it_is_replayed() {
    let codecs = Codecs::new().compress().encrypt(KeyRing::new(Key::generate("test")));
    let env = TestEnvironment::new().await.with_codecs(codecs.clone());
    env.worker(|worker| worker.workflow::<Parcel>().activity(pack)).await.unwrap();
    let parcel = env.client().start::<Parcel>("parcel", "a vase").await.unwrap();
    assert_eq!(parcel.result().await.unwrap(), "packed a vase");
    let raw = env.client().with_codecs(Codecs::new());
    let stored = raw.handle::<Parcel>("parcel").history().await.unwrap();
    assert!(!format!("{stored:?}").contains("vase"), "{stored:?}");
    let recorded = record(&stored);
    let events = decode_history(recorded.clone(), &codecs).await.unwrap();
    replay_history::<Parcel>(events).unwrap();
    let blind = decode_history(recorded, &Codecs::new()).await.unwrap_err();
    assert_eq!(blind.problem(), CodecProblem::Missing);
}
