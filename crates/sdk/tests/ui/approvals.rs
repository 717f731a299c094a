//! Approvals where there are none, and choices that cannot be written.

extern crate abide_sdk as abide;

use abide::{Context, approval::{Approvals, Request}};
use abide_sdk_macros::workflow;

#[derive(Default)]
struct Missing;

#[workflow(approvals = approvals)]
impl Missing {
    #[run]
    async fn run(_ctx: &Context<Self>) {}
}

#[derive(Default)]
struct Mistyped {
    approvals: Vec<String>,
}

#[workflow(approvals = approvals)]
impl Mistyped {
    #[run]
    async fn run(_ctx: &Context<Self>) {}
}

#[derive(Default)]
struct Forgotten {
    _approvals: Approvals,
}

#[workflow]
impl Forgotten {
    #[run]
    async fn run(ctx: &Context<Self>) {
        let _ = ctx.approval(Request::new("a"));
    }
}

#[derive(Clone)]
enum Review {
    Accept,
}

fn review() {
    let _ = Request::new("a").choices([Review::Accept]);
}

fn main() {
    review();
}
