//! Activities that share no state, or nothing at all.

use abide_sdk_macros::activities;

struct Mailer;

#[activities]
impl Mailer {
    #[activity]
    async fn send(self, to: String) {}
}

#[activities]
impl Mailer {
    #[activity]
    async fn send(to: String) {}
}

/// Both are told at once.
#[activities]
impl Mailer {
    #[activity]
    async fn send(&self, to: &str) {}

    #[activity]
    async fn attach(&self, ctx: &ActivityContext) {}
}

#[activities]
impl Mailer {
    async fn send(&self) {}
}

#[activities]
impl Clone for Mailer {
    fn clone(&self) -> Self {
        Self
    }
}

fn main() {}
