//! What workflows say to each other: signals and cancel requests.

use abide::{ClientError, prelude::*};
use abide_sdk_testing::TestEnvironment;

use super::{Kid, PAGE};

/// Speaks to others.
#[derive(Default)]
struct Speaker;

#[workflow]
impl Speaker {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<u32> {
        match plan.as_str() {
            "signal the child" => {
                let kid = Kid::child(ctx, "kid", "stay").queue("kids").start().await?;
                kid.go(5).await?;
                kid.result().await
            }
            "cancel the child" => {
                let kid = ctx.child::<Kid>("kid", "stay").start().await?;
                kid.cancel().await?;
                kid.result().await
            }
            "signal the other" => {
                ctx.external::<Kid>("other").go(6).await?;
                Ok(1)
            }
            "cancel the other" => {
                ctx.external::<Kid>("other").cancel().await?;
                Ok(1)
            }
            "signal myself" => {
                ctx.external::<Self>(ctx.workflow_id().clone()).signal(Self::WORD, 9).await?;
                ctx.receive(Self::WORD).await
            }
            _ => {
                ctx.external::<Self>(ctx.workflow_id().clone()).cancel().await?;
                ctx.receive(Self::WORD).await
            }
        }
    }

    #[signal]
    fn word(number: u32);
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Speaker>().workflow::<Kid>()).await.unwrap();
    env.worker(|worker| worker.queue("kids").workflow::<Kid>()).await.unwrap();
    env
}

/// Plays a situation and gives what the caller sees.
async fn play(env: &TestEnvironment, plan: &str, situation: &str) -> Result<u32, ClientError> {
    let speaker = env.client().start::<Speaker>("speaker", plan.to_owned()).await.unwrap();
    let result = speaker.result().await;
    PAGE.check(situation, &speaker.history().await.unwrap());
    result
}

/// The message of a run that failed.
fn message(result: Result<u32, ClientError>) -> String {
    let Err(ClientError::RunFailed(failure)) = result else { panic!("{result:?}") };
    failure.message().to_owned()
}

#[tokio::test]
async fn a_child_is_signalled() {
    let env = environment().await;
    let result = play(&env, "signal the child", "the child is signalled").await;
    assert_eq!(result.unwrap(), 5);
}

#[tokio::test]
async fn a_child_is_cancelled() {
    let env = environment().await;
    let result = play(&env, "cancel the child", "the child is cancelled by its parent").await;
    assert_eq!(message(result), "child kid of type Kid failed: it was cancelled");
}

#[tokio::test]
async fn another_workflow_has_a_signal() {
    let env = environment().await;
    let other = env.client().start::<Kid>("other", "stay").queue("kids").await.unwrap();
    let result = play(&env, "signal the other", "another workflow is signalled").await;
    assert_eq!((result.unwrap(), other.result().await.unwrap()), (1, 6));
}

#[tokio::test]
async fn another_workflow_is_cancelled() {
    let env = environment().await;
    let other = env.client().start::<Kid>("other", "stay").await.unwrap();
    let result = play(&env, "cancel the other", "another workflow is cancelled").await;
    assert_eq!(result.unwrap(), 1);
    assert_eq!(other.result().await, Err(ClientError::RunCancelled(Vec::new())));
}

#[tokio::test]
async fn another_workflow_that_is_not_there() {
    let unknown = "workflow other was not reached: there is no such workflow";
    let closed = "workflow other was not reached: it is closed";
    for (plan, situation, told) in [
        ("signal the other", "the workflow to be signalled is unknown", unknown),
        ("cancel the other", "the workflow to be cancelled is unknown", unknown),
        ("signal the other", "the workflow to be signalled is closed", closed),
        ("cancel the other", "the workflow to be cancelled is closed", closed),
    ] {
        let env = environment().await;
        if told == closed {
            let other = env.client().start::<Kid>("other", "7").await.unwrap();
            other.result().await.unwrap();
        }
        assert_eq!(message(play(&env, plan, situation).await), told);
    }
}

#[tokio::test]
async fn a_run_speaks_to_itself() {
    let env = environment().await;
    let result = play(&env, "signal myself", "a run signals itself").await;
    assert_eq!(result.unwrap(), 9);
    let result = play(&env, "cancel myself", "a run cancels itself").await;
    assert_eq!(result, Err(ClientError::RunCancelled(Vec::new())));
}
