//! What becomes of a child when its parent closes first, in each way in which a run can close.

use abide::{ParentClosePolicy, RetryPolicy, list::RunStatus, prelude::*};
use abide_sdk_testing::TestEnvironment;

use super::{Kid, KidHandle, PAGE};

/// Starts a child and closes.
#[derive(Default)]
struct Leaver;

#[workflow]
impl Leaver {
    #[run]
    async fn run(
        ctx: &Context<Self>,
        kid: String,
        policy: String,
        way: String,
    ) -> abide::Result<()> {
        if ctx.started().previous.is_some() {
            return ctx.sleep(years(1)).await;
        }
        let policy = match policy.as_str() {
            "Terminate" => ParentClosePolicy::Terminate,
            "RequestCancel" => ParentClosePolicy::RequestCancel,
            _ => ParentClosePolicy::Abandon,
        };
        ctx.child::<Kid>(kid.clone(), "stay").parent_close(policy).start().await?;
        match way.as_str() {
            "completes" => Ok(()),
            "fails" | "is retried" => Err(Error::new("no luck")),
            "continues as new" => Err(ctx.continue_as_new((kid, String::new(), String::new()))),
            _ => ctx.sleep(years(1)).await,
        }
    }
}

const WAYS: [(&str, RunStatus); 7] = [
    ("completes", RunStatus::Completed),
    ("fails", RunStatus::Failed),
    ("is retried", RunStatus::Failed),
    ("continues as new", RunStatus::ContinuedAsNew),
    ("is cancelled", RunStatus::Cancelled),
    ("is terminated", RunStatus::Terminated),
    ("times out", RunStatus::TimedOut),
];

/// Lets a parent close, and gives its child.
async fn leave(env: &TestEnvironment, policy: &str, (way, status): (&str, RunStatus)) -> KidHandle {
    let kid = format!("kid of one who {way}");
    let input = (kid.clone(), policy.to_owned(), way.to_owned());
    let start = env.client().start::<Leaver>(format!("parent who {way}"), input);
    let start = match way {
        "is retried" => start.retry(RetryPolicy::default()),
        "times out" => start.run_timeout(minutes(1)),
        _ => start,
    };
    let parent = start.await.unwrap();
    env.skip(seconds(1)).await;
    match way {
        "is cancelled" => parent.cancel().await.unwrap(),
        "is terminated" => parent.terminate("enough").await.unwrap(),
        _ => {}
    }
    env.skip(minutes(2)).await;
    let first = parent.clone().run(parent.run_id().unwrap());
    assert_eq!(first.describe().await.unwrap().status, status, "the parent {way}");
    let kid = env.client().handle::<Kid>(kid);
    let run = kid.describe().await.unwrap().run;
    kid.run(run)
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Leaver>().workflow::<Kid>()).await.unwrap();
    env
}

#[tokio::test]
async fn the_child_is_terminated() {
    let env = environment().await;
    for way in WAYS {
        let kid = leave(&env, "Terminate", way).await;
        PAGE.check("the child, when its parent closes, `Terminate`", &kid.history().await.unwrap());
    }
}

#[tokio::test]
async fn the_child_is_asked_to_cancel_itself() {
    let env = environment().await;
    for way in WAYS {
        let kid = leave(&env, "RequestCancel", way).await;
        let history = kid.history().await.unwrap();
        PAGE.check("the child, when its parent closes, `RequestCancel`", &history);
    }
}

#[tokio::test]
async fn the_child_goes_on() {
    let env = environment().await;
    for way in WAYS {
        let kid = leave(&env, "Abandon", way).await;
        kid.signal(Kid::GO, 4).await.unwrap();
        assert_eq!(kid.result().await.unwrap(), 4);
        PAGE.check("the child, when its parent closes, `Abandon`", &kid.history().await.unwrap());
    }
}
