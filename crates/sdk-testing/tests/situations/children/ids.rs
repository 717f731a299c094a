//! Ids of children that were used before.

use abide::{ClientError, ReusePolicy, prelude::*};
use abide_core::event::DeliveryFailure;
use abide_sdk_testing::TestEnvironment;

use super::{Kid, PAGE, Parent, environment, failure, messages, start};

/// Asks for a child under a policy, and tells why it was not started.
#[derive(Default)]
struct Chooser;

#[workflow]
impl Chooser {
    #[run]
    async fn run(ctx: &Context<Self>, policy: String) -> abide::Result<String> {
        let reuse = match policy.as_str() {
            "allow" => ReusePolicy::Allow,
            "if failed" => ReusePolicy::AllowIfFailed,
            _ => ReusePolicy::Reject,
        };
        match ctx.child::<Kid>("kid", "7").reuse(reuse).await {
            Ok(number) => Ok(number.to_string()),
            Err(Error::Child(failed)) => Ok(format!("{:?}", failed.not_started)),
            Err(error) => Err(error),
        }
    }
}

/// A workflow of the child's id does this first.
async fn used(env: &TestEnvironment, plan: &str) {
    env.worker(|worker| worker.workflow::<Chooser>().workflow::<Kid>()).await.unwrap();
    let kid = env.client().start::<Kid>("kid", plan.to_owned()).await.unwrap();
    if plan != "stay" {
        drop::<Result<u32, ClientError>>(kid.result().await);
    }
}

#[tokio::test]
async fn an_id_that_was_used() {
    let exists = format!("{:?}", Some(DeliveryFailure::AlreadyExists));
    for (situation, before, policy, told) in [
        ("the id is in use", "stay", "allow", exists.as_str()),
        ("the id was used, and may be", "8", "allow", "7"),
        ("the id was used by one who failed, `AllowIfFailed`", "fail", "if failed", "7"),
        ("the id was used by one who completed, `AllowIfFailed`", "8", "if failed", &exists),
        ("the id was used, `Reject`", "fail", "reject", &exists),
    ] {
        let env = TestEnvironment::new().await;
        used(&env, before).await;
        let parent = env.client().start::<Chooser>("parent", policy.to_owned()).await.unwrap();
        assert_eq!(parent.result().await.unwrap(), told, "{situation}");
        PAGE.check(situation, &parent.history().await.unwrap());
    }
}

#[tokio::test]
async fn a_run_cannot_be_its_own_child() {
    /// Asks for itself.
    #[derive(Default)]
    struct Narcissus;

    #[workflow]
    impl Narcissus {
        #[run]
        async fn run(ctx: &Context<Self>) -> abide::Result<()> {
            ctx.child::<Self>(ctx.workflow_id().clone(), ()).await
        }
    }

    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Narcissus>()).await.unwrap();
    let parent = env.client().start::<Narcissus>("parent", ()).await.unwrap();
    let Err(ClientError::RunFailed(failure)) = parent.result().await else { panic!() };
    assert!(failure.message().ends_with("a workflow with that id already exists"));
    PAGE.check("a run asks for itself as a child", &parent.history().await.unwrap());
}

#[tokio::test]
async fn a_child_cannot_be_the_parent_of_its_parent() {
    let env = environment().await;
    let parent = start(&env.client(), "start my parent").await;
    let failures = failure(&parent).await;
    let innermost = "it was not started: a workflow with that id already exists";
    assert_eq!(messages(&failures).last(), Some(&innermost));
    assert_eq!(failures.len(), 3, "the run, its child, and the parent as its child");
    PAGE.check("a child asks for its parent as a child", &parent.history().await.unwrap());
    // The circle did no harm: both are closed, and the id is free.
    let again = env.client().start::<Parent>("parent", "7").await.unwrap();
    assert_eq!(again.result().await.unwrap(), 7);
}
