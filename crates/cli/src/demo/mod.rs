//! The workflows that `abide dev` includes: small, complete, and worth reading as examples. One
//! file each.

mod approval;
mod hello;
mod reminder;

use abide::{Client, Worker};

pub(crate) use self::{approval::Approval, reminder::Reminder};

/// What to try first: a wait for a person, shown in the list, and ended by a decision.
pub(crate) const COMMANDS: [&str; 3] = [
    "workflow start --type approval --id order-1 --input '\"a new desk\"'",
    "approvals list",
    "approvals decide order-1 approve --by Ada",
];

/// A worker with all demo workflows.
pub(crate) fn worker(client: &Client) -> Worker {
    Worker::new(client)
        .identity("demo")
        .workflow::<hello::hello>()
        .workflow::<Approval>()
        .workflow::<Reminder>()
        .activity(hello::greet)
}
