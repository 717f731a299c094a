//! Validators that write, or do not fit.

use abide_sdk_macros::workflow;

struct Mutable;

#[workflow]
impl Mutable {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[update(validate = check)]
    fn amend(&mut self, amount: u32) {}

    fn check(&mut self, amount: &u32) -> Result<(), String> {
        Ok(())
    }
}

struct Other;

#[workflow]
impl Other {
    #[run]
    async fn run(ctx: &Context<Self>) {}

    #[update(validate = check)]
    fn amend(&mut self, amount: u32) {}

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}
