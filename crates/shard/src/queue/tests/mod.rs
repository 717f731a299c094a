//! What a queue promises: each rule by an example, then all of them together on random input.

mod model;
mod pauses;
pub(crate) mod random;
mod rules;

use std::collections::BTreeSet;

use abide_core::{
    dispatch::{QueueKey, WorkKind, Worker},
    ids::{BuildId, RunId, SessionId, ShardId, WorkflowKey},
    time::Timestamp,
};

use super::{QueueMessage, QueueOutput, Queues};
use crate::message::{Offer, Work};

pub(super) fn queue(name: &str) -> QueueKey {
    QueueKey { namespace: "default".into(), queue: name.into(), kind: WorkKind::Workflow }
}

/// The workflow task of a run in the queue `orders`.
pub(super) fn task(run: u8) -> Offer {
    Offer {
        queue: queue("orders"),
        shard: ShardId::new(run % 4).unwrap(),
        workflow: WorkflowKey { namespace: "default".into(), workflow: run.to_string().into() },
        run: RunId::from_parts(Timestamp::EPOCH, run.into()),
        work: Work::Workflow,
        prefer: None,
        except: BTreeSet::new(),
    }
}

pub(super) fn query(run: u8) -> Offer {
    Offer { work: Work::Query(run.into()), ..task(run) }
}

pub(super) fn preferring(offer: Offer, session: &str) -> Offer {
    Offer { prefer: Some(session.into()), ..offer }
}

pub(super) fn except(offer: Offer, builds: &[&str]) -> Offer {
    Offer { except: builds.iter().map(|build| BuildId::from(*build)).collect(), ..offer }
}

pub(super) fn worker(session: &str) -> Worker {
    Worker { session: session.into(), identity: format!("{session}@host"), build: None }
}

pub(super) fn built(session: &str, build: &str) -> Worker {
    Worker { build: Some(build.into()), ..worker(session) }
}

/// Queues with short ways to say what happens to `orders`; each answers what came of it.
pub(super) struct Bench(Queues);

impl Bench {
    pub(super) fn new(offers_max: usize) -> Self {
        Self(Queues::new(offers_max, usize::MAX))
    }

    /// Queues whose workers have at most so many matches in flight.
    pub(super) fn cautious(in_flight_max: usize) -> Self {
        Self(Queues::new(100, in_flight_max))
    }

    pub(super) fn handle(&mut self, message: QueueMessage) -> Vec<QueueOutput> {
        self.0.handle(message);
        std::iter::from_fn(|| self.0.poll()).collect()
    }

    pub(super) fn offer(&mut self, offer: Offer) -> Vec<QueueOutput> {
        self.handle(QueueMessage::Offer(offer))
    }

    pub(super) fn credit(&mut self, worker: Worker, credits: usize) -> Vec<QueueOutput> {
        self.handle(QueueMessage::Credit { queue: queue("orders"), worker, credits })
    }

    pub(super) fn unmatched(&mut self, offer: Offer, worker: Worker) -> Vec<QueueOutput> {
        self.handle(QueueMessage::Unmatched(offer, worker))
    }

    /// The worker that another node gets for an offer, and what else came of it.
    pub(super) fn lend(&mut self, offer: &Offer) -> (Option<Worker>, Vec<QueueOutput>) {
        let worker = self.0.lend(offer);
        (worker, std::iter::from_fn(|| self.0.poll()).collect())
    }

    pub(super) fn gone(&mut self, session: &str) -> Vec<QueueOutput> {
        self.handle(QueueMessage::Gone(SessionId::from(session)))
    }

    pub(super) fn shard_closed(&mut self, shard: u8) -> Vec<QueueOutput> {
        self.handle(QueueMessage::ShardClosed(ShardId::new(shard).unwrap()))
    }
}

pub(super) fn matched(offer: Offer, worker: Worker) -> QueueOutput {
    QueueOutput::Match(offer, worker)
}

pub(super) fn refill() -> QueueOutput {
    QueueOutput::Refill(queue("orders"))
}

pub(super) fn new_build(build: &str) -> QueueOutput {
    QueueOutput::NewBuild(queue("orders"), build.into())
}
