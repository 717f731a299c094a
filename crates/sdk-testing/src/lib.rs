//! Tests of workflows.
//!
//! [`TestEnvironment`] is a whole engine in memory with real workers and a real client. Its clock
//! skips to the next due time when everything is idle, so that long sleeps and timeouts take no
//! time:
//!
//! ```
//! # extern crate abide_sdk as abide;
//! use std::time::Duration;
//!
//! use abide::prelude::*;
//! use abide_sdk_testing::{TestEnvironment, replay_history};
//!
//! #[activity]
//! async fn remind(who: String) -> Result<String, std::io::Error> {
//!     Err(std::io::Error::other(format!("no mail for {who} from a test")))
//! }
//!
//! #[derive(Default)]
//! struct Trial;
//!
//! #[workflow]
//! impl Trial {
//!     #[run]
//!     async fn run(ctx: &Context<Self>, who: String) -> abide::Result<String> {
//!         ctx.sleep(Duration::from_secs(30 * 24 * 3600)).await?;
//!         ctx.activity(remind, who).await
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnvironment::new().await;
//! env.replace_activity(remind, |_, who| async move { Ok::<_, ActivityError>(format!("{who}!")) });
//! env.worker(|worker| worker.workflow::<Trial>()).await?;
//!
//! let begun = env.now();
//! let trial = env.client().start::<Trial>("trial-1", "Ann".to_owned()).await?;
//! assert_eq!(trial.result().await?, "Ann!");
//! assert!(env.now().saturating_since(begun) >= Duration::from_secs(30 * 24 * 3600));
//!
//! // Replaying a recorded history shows whether existing runs can continue with the current code.
//! replay_history::<Trial>(trial.history().await?)?;
//! # Ok(())
//! # }
//! ```

mod asked;
mod attempt;
mod child;
mod engine;
mod environment;
mod faults;
mod held;
mod mock;
mod observed;
mod replay;
mod stuck;
mod time;
mod waiting;
mod worker;

pub use self::{
    asked::{Asked, asked},
    attempt::TestAttempt,
    environment::TestEnvironment,
    mock::{Mock, MockResult},
    replay::{
        FolderError, History, ReplayError, decode_history, record, replay_file, replay_folder,
        replay_history,
    },
    waiting::Waiting,
    worker::TestWorker,
};
