//! Tests of workflows: an engine whose time skips ahead, and replay of recorded histories.

pub use abide_sdk_testing::{
    Asked, FolderError, History, ReplayError, TestAttempt, TestEnvironment, TestWorker, asked,
    record, replay_folder, replay_history,
};
