//! First success: several mirrors are asked concurrently. The first success wins, failures are
//! skipped, and only if all fail does the step fail, with all the reasons.

use abide::{prelude::*, testing::TestEnvironment};

#[activity]
async fn download(mirror: String, file: String) -> Result<String, ActivityError> {
    match (&*mirror, &*file) {
        ("north", _) => Err(ActivityError::new("north is down").non_retryable()),
        (_, "secret.pdf") => {
            Err(ActivityError::new(format!("{mirror} has no {file}")).non_retryable())
        }
        _ => Ok(format!("{file} from {mirror}")),
    }
}

#[workflow]
async fn fetch(ctx: &Context, file: String) -> abide::Result<String> {
    let mirrors = ["north", "south"].map(|mirror| {
        // A mirror that is down is not retried forever: there is another.
        ctx.activity(download, (mirror, &file)).retry(RetryPolicy::default().maximum_attempts(3))
    });
    // The others are cancelled as soon as one has succeeded.
    match first_success(mirrors).await {
        Ok(file) => Ok(file),
        // In the order of the mirrors.
        Err(failures) => {
            let reasons: Vec<_> = failures.iter().map(reason).collect();
            Err(Error::new(reasons.join("; ")))
        }
    }
}

fn reason(error: &Error) -> String {
    match error {
        Error::Activity(failed) => failed.failure.to_string(),
        other => other.to_string(),
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| worker.workflow::<fetch>().activity(download)).await?;
    for file in ["map.pdf", "secret.pdf"] {
        let fetch = fetch::start(&env.client(), file, file).await?;
        match fetch.result().await {
            Ok(found) => println!("{found}"),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
