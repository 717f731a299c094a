//! Every situation that the guide's tables describe, played through the real engine. One file per page.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

mod activities;
mod async_completion;
mod cancellation;
mod chains;
mod children;
mod errors;
mod gate;
mod local_activities;
mod messages;
mod parallel;
mod sagas;
#[path = "../documents/site.rs"]
#[allow(dead_code, reason = "the tests of the documents use all of it")]
mod site;
mod table;
mod testing;
mod updates;
mod versions;
