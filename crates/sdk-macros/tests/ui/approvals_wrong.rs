//! Approvals in a field that is not an `Approvals`, and names that approvals already define.

use abide_sdk_macros::workflow;

struct Quoted;

#[workflow(approvals = "approvals")]
impl Quoted {
    #[run]
    async fn run(ctx: &Context<Self>) {}
}

struct Within;

#[workflow(approvals = self.approvals)]
impl Within {
    #[run]
    async fn run(ctx: &Context<Self>) {}
}

struct Taken;

#[workflow(approvals = approvals)]
impl Taken {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal]
    fn decide(&mut self, decision: String) {}
}

struct TakenOnTheWire;

#[workflow(approvals = approvals)]
impl TakenOnTheWire {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal(name = "decision")]
    fn vote(&mut self, decision: String) {}
}

fn main() {}
