//! Parents and children.

use abide::prelude::*;
use abide_sdk_testing::TestEnvironment;

use crate::table::page;

page!("children.md", "children.rs");

/// Gives a number back, twice as large.
#[derive(Default)]
struct Double;

#[workflow]
impl Double {
    #[run]
    async fn run(_ctx: &Context<Self>, number: u32) -> abide::Result<u32> {
        Ok(number * 2)
    }
}

/// Lets a child do the work.
#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>, number: u32) -> abide::Result<u32> {
        ctx.child::<Double>("double", number).await
    }
}

#[tokio::test]
async fn the_child_completes() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Parent>().workflow::<Double>()).await.unwrap();
    let parent = env.client().start::<Parent>("parent", 4).await.unwrap();
    assert_eq!(parent.result().await.unwrap(), 8);
    PAGE.check("the child completes", &parent.history().await.unwrap());
}
