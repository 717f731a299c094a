//! Encryption: the engine stores and carries data that it cannot read. Keys stay with clients and
//! workers, and are replaced while runs are open.

use abide::{
    Worker,
    codec::{Codecs, Key, KeyRing},
    embedded::Embedded,
    prelude::*,
};

#[activity]
async fn admit(patient: String) -> String {
    format!("{patient} has a bed")
}

#[derive(Default)]
struct Stay;

#[workflow]
impl Stay {
    #[run]
    async fn run(ctx: &Context<Self>, patient: String) -> abide::Result<String> {
        let admitted = ctx.activity(admit, patient).await?;
        let diagnosis = ctx.receive(Self::DISCHARGE).await?;
        Ok(format!("{admitted}, and had {diagnosis}"))
    }

    #[signal]
    fn discharge(diagnosis: String);
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    // Real keys come from a file or a secret manager: `KeyRing::parse`, or a `KeyProvider`.
    let (old, new) = (Key::generate("2025"), Key::generate("2026"));

    let codecs = Codecs::new().compress().encrypt(KeyRing::new(old.clone()));
    let client = engine.client().with_codecs(codecs);
    let worker = Worker::new(&client).workflow::<Stay>().activity(admit).spawn();
    Stay::start(&client, "stay-7", "Ada").await?;
    worker.stop().await?;

    // From now on the new key encrypts, and both decrypt.
    let codecs = Codecs::new().compress().encrypt(KeyRing::new(new).with_decryption_key(old)?);
    let client = engine.client().with_codecs(codecs);
    Worker::new(&client).workflow::<Stay>().activity(admit).spawn();
    let stay = client.handle::<Stay>("stay-7");
    stay.discharge("the measles").await?;
    println!("{}", stay.result().await?);

    // What the engine has: a client without keys sees it.
    let stored = engine.client().handle::<Stay>("stay-7").history().await?;
    let stored = format!("{stored:?}");
    println!("the engine reads the name: {}", stored.contains("Ada"));
    println!("the engine reads the diagnosis: {}", stored.contains("measles"));
    println!("both keys were used: {}", stored.contains("2025") && stored.contains("2026"));
    Ok(())
}
