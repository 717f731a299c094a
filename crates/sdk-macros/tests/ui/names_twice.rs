//! Two definitions of one kind with the same name on the wire.

use abide_sdk_macros::workflow;

struct Signals;

#[workflow]
impl Signals {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[signal]
    fn paid(&mut self) {}

    #[signal(name = "paid")]
    fn settled(&mut self) {}
}

struct Updates;

#[workflow]
impl Updates {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[update(name = "pay")]
    fn pay_in_cash(&mut self) {}

    #[update(name = "pay")]
    fn pay_by_card(&mut self) {}
}

fn main() {}
