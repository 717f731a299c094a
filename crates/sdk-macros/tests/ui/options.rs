//! Options that do not exist, or have no sense.

use abide_sdk_macros::{activity, workflow};

struct Unknown;

#[workflow]
impl Unknown {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal(nmae = "x")]
    fn decide(&mut self) {}
}

struct Named;

#[workflow(name = order)]
impl Named {
    #[run]
    async fn run(ctx: &Context<Self>) {}
}

struct Quoted;

#[workflow]
impl Quoted {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[update(validate = "check")]
    fn amend(&mut self) {}
}

struct Hasty;

#[workflow(unfinished_handlers = "hurry")]
impl Hasty {
    #[run]
    async fn run(ctx: &Context<Self>) {}
}

#[activity(retries = 3)]
async fn charge() {}

#[activity(name = "")]
async fn refund() {}

fn main() {}
