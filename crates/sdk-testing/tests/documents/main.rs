//! What users wrote that they need of waiting, sentence by sentence, through the real engine. One file
//! per document and theme; each test is named after what the document says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

mod d000_patterns;
mod d000_updatable_timer;
mod d001_optional_timers;
mod d001_timer_origins;
mod d002_blocked_runs;
mod d002_condition_waits;
mod d002_repair;
mod d003_approval;
mod d003_inbox;
mod d004_durable_sleep;
mod d004_lost_wakes;
mod d004_wakes_and_crashes;
mod foreign;
mod glass;
mod site;
