//! Fan-out with children: a large piece of work is split into parts, and each part is a workflow
//! with its own history, id and failures. The parent starts all of them and combines the results.

use abide::{embedded::Embedded, prelude::*};

/// Number of addresses per child. A history should have at most some thousand events, so a part may
/// have some hundred activities.
const PART: usize = 4;

#[activity]
async fn send_newsletter(address: String) -> Result<(), ActivityError> {
    match address.ends_with("@closed") {
        true => Err(ActivityError::new("no such mailbox").non_retryable()),
        false => Ok(()),
    }
}

/// Returns the addresses that could not be reached.
#[workflow]
async fn sending(ctx: &Context, addresses: Vec<String>) -> abide::Result<Vec<String>> {
    let sent = addresses.iter().map(|address| ctx.activity(send_newsletter, address));
    let mut unreached = Vec::new();
    for (address, sent) in addresses.iter().zip(join_all(sent).await) {
        match sent {
            Ok(()) => {}
            Err(Error::Activity(_)) => unreached.push(address.clone()),
            Err(error) => return Err(error),
        }
    }
    if unreached.len() == addresses.len() {
        return Err(Error::new("nobody could be reached"));
    }
    Ok(unreached)
}

#[workflow]
async fn newsletter(ctx: &Context, addresses: Vec<String>) -> abide::Result<Vec<String>> {
    // An id that names the parent, so that it is found in lists and cannot be started twice.
    let parts = addresses.chunks(PART).enumerate().map(|(number, part)| {
        let id = format!("{}/part-{number}", ctx.workflow_id());
        sending::child(ctx, id, part.to_vec())
    });
    // All concurrently, with the results in the order of the parts.
    let mut report = Vec::new();
    for (number, part) in join_all(parts).await.into_iter().enumerate() {
        report.push(match part {
            Ok(unreached) => format!("part {number}: {} unreached", unreached.len()),
            // A part that fails does not fail the others.
            Err(Error::Child(failed)) => format!("part {number}: {}", failed.failure),
            Err(error) => return Err(error),
        });
    }
    Ok(report)
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<newsletter>().workflow::<sending>();
    worker.activity(send_newsletter).spawn();

    let addresses = (1..=10).map(|number| match number {
        3 | 9 | 10 => format!("reader-{number}@closed"),
        _ => format!("reader-{number}@home"),
    });
    let client = engine.client();
    let newsletter = newsletter::start(&client, "newsletter-1", addresses.collect()).await?;
    for line in newsletter.result().await? {
        println!("{line}");
    }
    Ok(())
}
