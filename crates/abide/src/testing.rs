//! Tests of workflows: an engine whose time skips ahead, and replay of recorded histories.

pub use abide_sdk_testing::{
    Asked, FolderError, History, Mock, MockResult, ReplayError, TestAttempt, TestEnvironment,
    TestWorker, Waiting, asked, record, replay_file, replay_folder, replay_history,
};
