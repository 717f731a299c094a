//! Parallel execution: several activities at the same time. The run waits for all of them, and one
//! that fails does not affect the others.

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn make_thumbnail(photo: String) -> Result<String, ActivityError> {
    match photo.strip_suffix(".jpg") {
        Some(name) => Ok(format!("{name}-small.jpg")),
        // A retry would not help.
        None => Err(ActivityError::new("not a photo").non_retryable()),
    }
}

#[activity]
async fn count_faces(photos: Vec<String>) -> usize {
    photos.len() * 2
}

#[activity]
async fn write_title(owner: String) -> String {
    format!("Photos of {owner}")
}

#[workflow]
async fn album(ctx: &Context, owner: String, photos: Vec<String>) -> abide::Result<Vec<String>> {
    // Different steps concurrently: `join!` returns a tuple. Both succeed, or the run fails.
    let (title, faces) =
        join!(ctx.activity(write_title, owner), ctx.activity(count_faces, &photos));
    let mut report = vec![format!("{}: {} faces", title?, faces?)];

    // The same step for many items: `join_all` returns the results in the order of the photos,
    // regardless of which was ready first.
    let made = photos.iter().map(|photo| ctx.activity(make_thumbnail, photo));
    for (photo, made) in photos.iter().zip(join_all(made).await) {
        report.push(match made {
            Ok(thumbnail) => format!("{photo}: {thumbnail}"),
            // A photo that failed is reported; the album continues without it.
            Err(Error::Activity(failed)) => format!("{photo}: {}", failed.failure),
            // Not the photo's fault, such as a cancel request.
            Err(error) => return Err(error),
        });
    }
    Ok(report)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<album>();
    let worker = worker.activity(make_thumbnail).activity(count_faces).activity(write_title);
    worker.spawn();

    let photos = ["beach.jpg", "notes.txt", "sunset.jpg"].map(str::to_owned).to_vec();
    let album = album::start(&engine.client(), "album-1", "Ada", photos).await?;
    for line in album.result().await? {
        println!("{line}");
    }
    Ok(())
}
