//! Tests of workflows.
//!
//! [`TestEnvironment`] is a whole engine in memory with real workers and a real client. Its clock
//! skips to the next due time when everything is idle, so that long sleeps and timeouts take no
//! time:
//!
//! ```
//! # extern crate abide_sdk as abide;
//! use abide::prelude::*;
//! use abide_sdk_testing::{TestEnvironment, replay_history};
//!
//! #[activity]
//! async fn remind(who: String) -> Result<String, std::io::Error> {
//!     Err(std::io::Error::other(format!("no mail for {who} from a test")))
//! }
//!
//! #[workflow]
//! async fn trial(ctx: &Context, who: String) -> abide::Result<String> {
//!     ctx.sleep(days(30)).await?;
//!     ctx.activity(remind, who).await
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnvironment::new().await;
//! env.replace_activity(remind, |_, who| async move { Ok::<_, ActivityError>(format!("{who}!")) });
//! env.worker(|worker| worker.workflow::<trial>()).await?;
//!
//! let begun = env.now();
//! let ann = trial::start(&env.client(), "trial-1", "Ann").await?;
//! assert_eq!(ann.result().await?, "Ann!");
//! assert!(env.now().saturating_since(begun) >= days(30));
//!
//! // Replaying a recorded history shows whether existing runs can continue with the current code.
//! replay_history::<trial>(ann.history().await?)?;
//! # Ok(())
//! # }
//! ```

mod attempt;
mod child;
mod engine;
mod environment;
mod faults;
mod held;
mod lock;
mod mock;
mod observed;
mod replay;
mod steps;
mod stuck;
mod time;
mod waiting;
mod worker;

pub use self::{
    attempt::TestAttempt,
    environment::TestEnvironment,
    mock::{Mock, MockResult, typed_error},
    replay::{
        FolderError, History, ReplayError, Replayer, decode_history, record, replay_file,
        replay_folder, replay_history,
    },
    steps::{Step, steps},
    waiting::Waiting,
    worker::TestWorker,
};
/// What is wrong with a recorded history, and what a replay that does not fit says.
pub use abide_core::codec::DecodeError;
pub use abide_sdk::replay::Mismatch;
