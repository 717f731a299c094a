//! Asynchronous completion: an activity starts something that ends elsewhere, hands out a token,
//! and frees its worker. Any process with the token can complete the activity, even days later.

use abide::{ClientError, prelude::*, testing::TestEnvironment};
use tokio::sync::mpsc;

/// A laboratory that takes samples, and calls back with the token that it was given.
struct Laboratory {
    samples: mpsc::UnboundedSender<(String, String)>,
}

#[activities]
impl Laboratory {
    #[activity]
    async fn analyse(&self, ctx: ActivityContext, sample: String) -> Result<String, ActivityError> {
        let token = ctx.token()?;
        self.samples.send((sample, token)).map_err(ActivityError::from_source)?;
        // Not a failure: the worker is done with it, and the attempt waits for its token.
        Err(ActivityError::completed_later())
    }
}

#[workflow]
async fn diagnosis(ctx: &Context, sample: String) -> abide::Result<String> {
    let analysed = ctx
        .activity(Laboratory::analyse, sample)
        // How long the laboratory may take. Then the sample is sent again, at most twice.
        .start_to_close(days(3))
        .retry(RetryPolicy::default().maximum_attempts(2))
        .await;
    match analysed {
        Err(Error::Activity(failed)) => Ok(format!("no result: {}", failed.failure)),
        other => other,
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let (samples, mut received) = mpsc::unbounded_channel();
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<diagnosis>().activities(Laboratory { samples })
    })
    .await?;
    let client = env.client();

    let diagnosis = diagnosis::start(&client, "diagnosis-1", "blood").await?;
    env.skip(days(2)).await;
    let Some((sample, token)) = received.recv().await else { anyhow::bail!("no sample came") };
    // In production this is another process; it needs the token and a client.
    client.activity(&token).complete(&format!("the {sample} is fine")).await?;
    println!("{}", diagnosis.result().await?);

    // It can be completed once; a second report is refused.
    let again = client.activity(&token).complete(&"the blood is not fine".to_owned()).await;
    println!("the second report is refused: {}", matches!(again, Err(ClientError::Refused(_))));

    // A laboratory that never answers.
    let diagnosis = diagnosis::start(&client, "diagnosis-2", "hair").await?;
    println!("{}", diagnosis.result().await?);
    Ok(())
}
