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
