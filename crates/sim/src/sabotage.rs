//! stub
use crate::checks::ledger::Ledger;
use abide_core::{ids::ShardId, replay::Completion, time::Timestamp};
use abide_shard::message::{Call, Fetch, Fetched, Message, Output};
use abide_store::{Batch, CommitError, memory::Tables};
#[derive(Debug, Default)]
pub struct Saboteur;
#[derive(PartialEq, Eq)]
pub enum CommitSabotage {
    None,
    AnswerOnly,
}
impl Saboteur {
    pub fn incoming(&mut self, _l: &Ledger, m: Message) -> Vec<Message> {
        vec![m]
    }
    pub fn take_early(&mut self) -> Vec<Output> {
        Vec::new()
    }
    pub fn clock(&mut self, c: Timestamp) -> Timestamp {
        c
    }
    pub fn outgoing(&mut self, _l: &Ledger, o: Output) -> Vec<Output> {
        vec![o]
    }
    pub fn batch(&mut self, _l: &Ledger, b: Batch) -> Batch {
        b
    }
    pub fn commits_early(&mut self) -> bool {
        false
    }
    pub fn commit(&mut self, _t: &Tables, _b: &Batch) -> CommitSabotage {
        CommitSabotage::None
    }
    pub fn commit_answer(&mut self, a: Result<(), CommitError>) -> Result<(), CommitError> {
        a
    }
    pub fn unfenced(&mut self, _t: &Tables, _b: &Batch) -> Option<Batch> {
        None
    }
    pub fn fetched(&mut self, _s: ShardId, _f: &Fetch, f: Fetched) -> Fetched {
        f
    }
    pub fn completion(&mut self, c: Completion) -> Completion {
        c
    }
    pub fn repeated(&mut self, c: Call, _attempts: u32) -> Call {
        c
    }
    pub fn torn(&mut self, _b: &Batch) -> Option<Box<Batch>> {
        None
    }
}
