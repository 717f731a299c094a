//! Codecs from end to end: nothing readable reaches the engine, code sees what it always sees, and a
//! missing key stops work without failing it.

use std::{collections::BTreeMap, fs, path::Path};

use abide::{
    ActivityContext, ActivityError, Client, ClientError, Codecs, Context, RawPayload, RetryPolicy,
    client::{RefusalKind, UpdateHandle},
    codec::{
        Codec, CodecError, CodecProblem, Compress, Key, KeyRing, LocalFolder, Offload, Payload,
        encoded_payload,
    },
    future::BoxFuture,
};
use abide_core::event::Fact;
use abide_embedded::Embedded;
use abide_sdk::{activity, workflow};
use tempfile::tempdir;

use crate::world::Running;

/// Stands in everything that users write, and must not be found in what the engine stores.
const SECRET: &str = "Rumpelstilzchen";

fn secret(what: &str) -> String {
    format!("{SECRET} {what}")
}

#[activity]
async fn spin(ctx: ActivityContext, straw: String) -> Result<String, ActivityError> {
    if ctx.attempt() == 1 {
        ctx.heartbeat(&secret("heartbeat"))?;
        return Err(ActivityError::new(secret("message")).details(&secret("details")));
    }
    let progress: Option<String> = ctx.heartbeat_details()?;
    assert_eq!(progress, Some(secret("heartbeat")));
    Ok(format!("{straw} as gold"))
}

#[activity]
async fn count(gold: String) -> usize {
    gold.len()
}

#[derive(Default)]
struct Guest;

#[workflow]
impl Guest {
    #[run]
    async fn run(ctx: &Context<Self>, invited_by: String) -> abide::Result<String> {
        let gift: String = ctx.receive(Self::GIFT).await?;
        Ok(format!("{invited_by} got {gift}"))
    }

    #[signal]
    fn gift(gift: String);
}

#[derive(Default)]
struct Mill {
    names: Vec<String>,
}

#[workflow]
impl Mill {
    #[run]
    async fn run(ctx: &Context<Self>, straw: String, days: u32) -> abide::Result<Vec<String>> {
        let gold = ctx.activity(spin, straw.clone()).await?;
        let length = ctx.local_activity(count, gold.clone()).await?;
        assert_eq!(length, gold.len());
        let noted: String = ctx.side_effect(|| secret("side effect"))?;
        let guest = ctx.child::<Guest>(format!("guest-{days}"), noted.clone()).start().await?;
        guest.signal(Guest::GIFT, secret("gift")).await?;
        let thanks = guest.result().await?;
        assert_eq!(thanks, format!("{noted} got {}", secret("gift")));
        if days > 1 {
            return Err(ctx.continue_as_new((gold, days - 1)));
        }
        let name: String = ctx.receive(Self::NAME).await?;
        ctx.write(|mill| mill.names.extend([name, gold]));
        ctx.receive(Self::CLOSE).await?;
        Ok(ctx.read(|mill| mill.names.clone()))
    }

    #[signal]
    fn name(name: String);

    #[signal]
    fn close();

    #[query]
    fn heard(&self, prefix: String) -> Vec<String> {
        self.names.iter().map(|name| format!("{prefix} {name}")).collect()
    }

    #[update]
    fn rename(&mut self, name: String) -> Result<String, String> {
        if name.is_empty() {
            return Err(secret("refusal"));
        }
        self.names.push(name.clone());
        Ok(format!("{name} noted"))
    }
}

fn keys(id: &str) -> KeyRing {
    KeyRing::new(Key::new(id, &[7; 32]).unwrap())
}

fn encrypting(folder: &Path) -> Codecs {
    let blobs = LocalFolder::open(folder.join("blobs")).unwrap();
    let offload = Offload::new(blobs).from_size(150);
    let compress = Compress::new().from_size(40);
    let codecs = Codecs::new().with(compress).encrypt(keys("k")).with(offload);
    codecs.hide_failure_texts()
}

/// Whether any file below the folder has the secret in it.
fn readable(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => readable(&path),
        false => {
            let bytes = fs::read(path).unwrap();
            bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        }
    })
}

/// Everything that carries user data, on an engine on files below this folder.
async fn everything(folder: &Path, codecs: Codecs) {
    let engine = Embedded::open(folder.join("abide.db")).await.unwrap().with_codecs(codecs);
    let worker = engine.worker().workflow::<Mill>().workflow::<Guest>();
    // No run is kept in memory, so every task replays its whole history.
    let worker = worker.activity(spin).activity(count).max_cached_runs(0);
    let running = Running::start(worker);
    let client = engine.client();
    let start = client.start::<Mill>("mill", (secret("straw"), 2)).memo("note", &secret("memo"));
    let mill = start.await.unwrap();
    for _ in 0..2 {
        mill.signal(Mill::NAME, secret("signal")).key("once").await.unwrap();
    }
    // The signal may have gone to the first run, which passes it on.
    let heard = loop {
        let heard = mill.query(Mill::HEARD, secret("query")).await.unwrap();
        if !heard.is_empty() {
            break heard;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(heard[0], format!("{} {}", secret("query"), secret("signal")));
    for _ in 0..2 {
        let renamed = mill.update(Mill::RENAME, secret("update")).id("rename").await.unwrap();
        assert_eq!(renamed, format!("{} noted", secret("update")));
    }
    let known: UpdateHandle<String> = mill.update_by_id(Mill::RENAME, "rename");
    assert_eq!(known.result().await.unwrap(), format!("{} noted", secret("update")));
    let refused = mill.update(Mill::RENAME, String::new()).await.unwrap_err();
    assert!(refused.to_string().contains(&secret("refusal")), "{refused}");
    let described = mill.describe().await.unwrap();
    assert_eq!(
        described.memo::<RawPayload>("note").unwrap().unwrap().0.data,
        format!("\"{}\"", secret("memo"))
    );
    mill.signal(Mill::CLOSE, ()).await.unwrap();
    let names = mill.result().await.unwrap();
    assert_eq!(names[0], secret("signal"));
    assert!(names.contains(&secret("update")), "{names:?}");
    let first = client.handle::<Mill>("mill").run(mill.run_id().unwrap());
    let history = first.history().await.unwrap();
    let failed = history.iter().find_map(|event| match event.fact() {
        Fact::ActivityStarted(started) => started.last_failure.clone(),
        _ => None,
    });
    assert_eq!(failed.unwrap().message, secret("message"));
    running.stop().await;
    engine.shutdown().await;
}

#[tokio::test]
async fn nothing_readable_reaches_the_engine() {
    let folder = tempdir().unwrap();
    everything(folder.path(), encrypting(folder.path())).await;
    assert!(!readable(folder.path()));
    assert!(folder.path().join("blobs").read_dir().unwrap().count() > 0, "some were large");
}

/// The test before would find what is readable.
#[tokio::test]
async fn without_codecs_all_of_it_is_readable() {
    let folder = tempdir().unwrap();
    everything(folder.path(), Codecs::new()).await;
    assert!(readable(folder.path()));
}

#[derive(Default)]
struct Errand;

#[activity]
async fn buy(item: String) -> String {
    format!("one {item}")
}

#[workflow]
impl Errand {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        ctx.activity(buy, item).retry(RetryPolicy::once()).await
    }
}

/// Waits until the run's task has failed for this reason.
async fn troubled(client: &Client, reason: &str) {
    let errand = client.handle::<Errand>("errand");
    loop {
        if let Some(trouble) = errand.describe().await.unwrap().trouble {
            assert!(trouble.failure.message().contains(reason), "{}", trouble.failure.message());
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_run_whose_key_is_missing_waits_for_it() {
    let engine = Embedded::in_memory().await;
    let client = engine.client().with_codecs(Codecs::new().encrypt(keys("new")));
    let start = client.start::<Errand>("errand", "bread");
    start.memo("note", &secret("memo")).await.unwrap();
    let worker_with = |codecs: Codecs| {
        let worker = abide::Worker::new(&engine.client().with_codecs(codecs));
        Running::start(worker.workflow::<Errand>().activity(buy))
    };
    let without = worker_with(Codecs::new());
    troubled(&engine.client(), "this program has no codecs").await;
    without.stop().await;
    let with_key = worker_with(Codecs::new().encrypt(keys("new")));
    client.handle::<Errand>("errand").repair().await.unwrap();
    assert_eq!(client.handle::<Errand>("errand").result().await.unwrap(), "one bread");
    let blind = engine.client().with_codecs(Codecs::new().encrypt(keys("old")));
    // Without codecs data is as it is, for programs that only look.
    let none = engine.client().handle::<Errand>("errand");
    let note = none.describe().await.unwrap().memo::<RawPayload>("note").unwrap().unwrap();
    assert_eq!(note.0.metadata["key-id"], "new");
    assert!(matches!(none.result().await, Err(ClientError::Payload(_))));
    match blind.handle::<Errand>("errand").result().await {
        Err(ClientError::Codec(error)) => assert_eq!(error.problem(), CodecProblem::Missing),
        other => panic!("{other:?}"),
    }
    with_key.stop().await;
}

/// An activity has one attempt, and a worker without its key does not use it up.
#[tokio::test]
async fn an_activity_whose_key_is_missing_is_handed_back() {
    let engine = Embedded::in_memory().await;
    let codecs = Codecs::new().encrypt(keys("new"));
    let client = engine.client().with_codecs(codecs.clone());
    let wrong = abide::Worker::new(&engine.client()).activity(buy);
    let wrong = Running::start(wrong);
    let workflows = Running::start(abide::Worker::new(&client).workflow::<Errand>());
    let errand = client.start::<Errand>("errand", "bread").await.unwrap();
    loop {
        let activities = errand.describe().await.unwrap().activities;
        if let Some(failure) = activities.first().and_then(|it| it.last_failure.clone()) {
            assert!(failure.message().contains("this program has no codecs"), "{failure:?}");
            break;
        }
        tokio::task::yield_now().await;
    }
    wrong.stop().await;
    let right = Running::start(abide::Worker::new(&client).activity(buy));
    assert_eq!(errand.result().await.unwrap(), "one bread");
    workflows.stop().await;
    right.stop().await;
}

/// A caller with a wrong key is told so; the run goes on.
#[tokio::test]
async fn an_update_that_cannot_be_decoded_is_rejected() {
    let folder = tempdir().unwrap();
    let engine = Embedded::in_memory().await;
    let client = engine.client().with_codecs(encrypting(folder.path()));
    let worker = abide::Worker::new(&client).workflow::<Mill>().workflow::<Guest>();
    let running = Running::start(worker.activity(spin).activity(count));
    let mill = client.start::<Mill>("mill", (secret("straw"), 1)).await.unwrap();
    let stranger = engine.client().with_codecs(Codecs::new().encrypt(keys("strange")));
    let refused = stranger.handle::<Mill>("mill").update(Mill::RENAME, "x").await;
    match refused {
        // The reason itself is encoded with a key that the stranger does not have.
        Err(ClientError::Codec(error)) => assert_eq!(error.problem(), CodecProblem::Missing),
        other => panic!("{other:?}"),
    }
    mill.signal(Mill::NAME, "ok").await.unwrap();
    mill.signal(Mill::CLOSE, ()).await.unwrap();
    assert_eq!(mill.result().await.unwrap()[0], "ok");
    running.stop().await;
}

/// The same key for other content is still refused, although the engine cannot read either.
#[tokio::test]
async fn a_key_that_is_used_for_other_content_is_refused() {
    let engine = Embedded::in_memory().await.with_codecs(Codecs::new().encrypt(keys("k")));
    let client = engine.client();
    let mill = client.start::<Mill>("mill", (secret("straw"), 1)).await.unwrap();
    mill.signal(Mill::NAME, "one").key("once").await.unwrap();
    mill.signal(Mill::NAME, "one").key("once").await.unwrap();
    let other = mill.signal(Mill::NAME, "two").key("once").await;
    let Err(ClientError::Refused(refusal)) = other else { panic!("{other:?}") };
    assert_eq!(refusal.kind(), RefusalKind::KeyReused);
}

/// Sends whatever it is given as this encoding, with bytes that cannot be decoded.
struct Forge(&'static str);

impl Codec for Forge {
    fn name(&self) -> &str {
        self.0
    }

    fn reads(&self, _: &str) -> bool {
        false
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(
            async move { Ok(payloads.iter().map(|_| encoded_payload(self.0, "{}")).collect()) },
        )
    }

    fn decode(&self, _: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async { Err(CodecError::missing(self.0, "it reads nothing")) })
    }
}

fn forger(engine: &Embedded, encoding: &'static str) -> GuestHandle {
    engine.client().with_codecs(Codecs::new().with(Forge(encoding))).handle::<Guest>("guest")
}

/// Anyone who may send signals could stop the run otherwise.
#[tokio::test]
async fn a_forged_signal_stops_nothing() {
    let codecs = Codecs::new().compress().encrypt(keys("k"));
    let engine = Embedded::in_memory().await.with_codecs(codecs);
    let running = Running::start(engine.worker().workflow::<Guest>().max_cached_runs(0));
    let guest = engine.client().start::<Guest>("guest", "Ada").await.unwrap();
    for encoding in ["codec/zlib", "codec/aes-256-gcm"] {
        forger(&engine, encoding).signal(Guest::GIFT, "bomb").await.unwrap();
    }
    guest.signal(Guest::GIFT, "book").await.unwrap();
    assert_eq!(guest.result().await.unwrap(), "Ada got book");
    let viewer = engine.client().with_codecs(Codecs::new());
    let history = viewer.handle::<Guest>("guest").history().await.unwrap();
    let marked = |fact: &Fact| matches!(fact, Fact::MarkerRecorded(_));
    assert_eq!(history.iter().filter(|event| marked(event.fact())).count(), 2);
    running.stop().await;
}

/// A key or a codec may still come, so this waits; an operator may decide that none will.
#[tokio::test]
async fn a_signal_of_an_unknown_encoding_waits_until_it_is_skipped() {
    let engine = Embedded::in_memory().await;
    let worker = |codecs: Codecs| {
        let client = engine.client().with_codecs(codecs);
        Running::start(abide::Worker::new(&client).workflow::<Guest>())
    };
    let guest = engine.client().start::<Guest>("guest", "Ada").await.unwrap();
    forger(&engine, "codec/unheard-of").signal(Guest::GIFT, "bomb").await.unwrap();
    guest.signal(Guest::GIFT, "book").await.unwrap();
    let waiting = worker(Codecs::new());
    let trouble = loop {
        if let Some(trouble) = guest.describe().await.unwrap().trouble {
            break trouble.failure.to_string();
        }
        tokio::task::yield_now().await;
    };
    assert!(trouble.contains("signal gift of event") && trouble.contains("codec"), "{trouble}");
    waiting.stop().await;
    let skipping = worker(Codecs::new().skip_unreadable_signals());
    guest.repair().await.unwrap();
    assert_eq!(guest.result().await.unwrap(), "Ada got book");
    skipping.stop().await;
}

/// A reference is valid JSON: a handler that takes any JSON must not get it.
#[tokio::test]
async fn a_worker_without_codecs_takes_no_encoded_messages() {
    let engine = Embedded::in_memory().await;
    let worker = abide::Worker::new(&engine.client()).workflow::<Shelf>();
    let running = Running::start(worker);
    let shelf = engine.client().start::<Shelf>("shelf", ()).await.unwrap();
    let forger = engine.client().with_codecs(Codecs::new().with(Forge("codec/reference")));
    let forger = forger.handle::<Shelf>("shelf");
    let told = |error: ClientError| assert!(error.to_string().contains("no codecs"), "{error}");
    told(forger.update(Shelf::PUT, Thing::new()).await.unwrap_err());
    told(forger.query(Shelf::HAS, Thing::new()).await.unwrap_err());
    shelf.update(Shelf::PUT, book()).await.unwrap();
    assert_eq!(shelf.result().await.unwrap(), [book()]);
    running.stop().await;
}

/// Any JSON object of texts.
type Thing = BTreeMap<String, String>;

fn book() -> Thing {
    [("title".to_owned(), "Tales".to_owned())].into()
}

#[derive(Default)]
struct Shelf {
    things: Vec<Thing>,
}

#[workflow]
impl Shelf {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<Thing>> {
        ctx.wait_until(abide::condition!("shelf.used", |it| !it.things.is_empty())).await?;
        Ok(ctx.read(|shelf| shelf.things.clone()))
    }

    #[update]
    fn put(&mut self, thing: Thing) {
        self.things.push(thing);
    }

    #[query]
    fn has(&self, thing: Thing) -> bool {
        self.things.contains(&thing)
    }
}

#[activity]
async fn print_all() -> String {
    "page ".repeat(1_000_000)
}

#[workflow]
async fn printing(ctx: &Context) -> abide::Result<usize> {
    Ok(ctx.local_activity(print_all, ()).await?.len())
}

/// Five megabytes that compress to little.
#[tokio::test]
async fn the_size_of_a_local_result_is_that_of_what_is_recorded() {
    let engine = Embedded::in_memory().await.with_codecs(Codecs::new().compress());
    let running = Running::start(engine.worker().workflow::<printing>().activity(print_all));
    let printing = engine.client().start::<printing>("printing", ()).await.unwrap();
    assert_eq!(printing.result().await.unwrap(), 5_000_000);
    running.stop().await;
}
