//! Claim check: data that is too large for a history is stored elsewhere, and only a reference is
//! passed around. A value has at most 2 MB, and all inputs and results of a workflow stay in its
//! history. With a codec that stores large payloads outside, activities and workflows do not notice.

use abide::{
    Binary, ClientError,
    codec::{Codecs, LocalFolder},
    embedded::Embedded,
    prelude::*,
};

/// Stands for large data.
const FILM: usize = 3_000_000;

#[activity]
async fn download(_address: String) -> Binary {
    Binary::from(vec![1; FILM])
}

#[activity]
async fn measure(film: Binary) -> usize {
    film.len()
}

#[workflow]
async fn film(ctx: &Context, address: String) -> abide::Result<usize> {
    let film = ctx.activity(download, address).await?;
    ctx.activity(measure, film).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    // Stands for a store that clients and workers on all machines reach, such as a bucket: implement
    // `BlobStore` for it.
    let folder = std::env::temp_dir().join(format!("films-{}", std::process::id()));
    let codecs = Codecs::new().offload(LocalFolder::open(&folder)?);

    let engine = Embedded::in_memory().await.with_codecs(codecs);
    engine.worker().workflow::<film>().activity(download).activity(measure).spawn();
    let film = film::start(&engine.client(), "film", "film.example.org").await?;
    println!("the film has {} bytes", film.result().await?);
    let history = film.describe().await?.history_bytes;
    println!("its history has less than 5 kB: {}", history < 5_000);
    // Objects are named by their content: the result of one activity and the input of the other are
    // the same object.
    println!("objects in the store: {}", folder.read_dir()?.count());
    std::fs::remove_dir_all(&folder)?;

    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<film>().activity(download).activity(measure).spawn();
    let film = film::start(&engine.client(), "film", "film.example.org").await?;
    match film.result().await {
        Err(ClientError::RunFailed(failure)) => println!("without a store: {failure}"),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}
