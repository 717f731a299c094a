//! Tests of workflows: an engine whose time skips ahead, and replay of recorded histories.

pub use abide_sdk_testing::{
    DecodeError, FolderError, History, Mismatch, Mock, MockResult, ReplayError, Replayer, Step,
    TestAttempt, TestEnvironment, TestWorker, Waiting, decode_history, record, replay_file,
    replay_folder, replay_history, steps, typed_error,
};
