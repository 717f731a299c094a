//! Closed-loop clients: each sends its next batch when the last one is acknowledged. One thread
//! drives them all, so that the store is what is measured.

use std::{
    mem::take,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use abide_store::{Batch, CommitError, Pending, Store};

use crate::{latencies::Latencies, raw_log::RawLog, workload::Repeat};

pub trait Target {
    /// Completes when the batch is durable.
    fn submit(&self, batch: Batch) -> Pending<'_, (), CommitError>;
}

impl<S: Store> Target for S {
    fn submit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        self.commit(batch)
    }
}

impl Target for RawLog {
    fn submit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        self.append(&batch)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After this many transitions.
    Transitions(u64),
}

#[derive(Clone, Debug)]
pub struct Measured {
    /// Acknowledged batches.
    pub transitions: u64,
    pub elapsed: Duration,
    /// Latency of each batch.
    pub latencies: Latencies,
}

impl Measured {
    /// Batches per second.
    pub fn rate(&self) -> f64 {
        self.transitions as f64 / self.elapsed.as_secs_f64()
    }
}

/// Clients that can continue, and the thread that drives them.
struct Ready {
    clients: Mutex<Vec<usize>>,
    driver: Thread,
}

impl Ready {
    fn take(&self) -> Vec<usize> {
        take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wakes one client.
struct Signal {
    client: usize,
    ready: Arc<Ready>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        let mut clients = self.ready.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let first = clients.is_empty();
        clients.push(self.client);
        drop(clients);
        if first {
            self.ready.driver.unpark();
        }
    }
}

/// Drives the clients until it is time to stop and every batch is acknowledged.
///
/// # Errors
/// The first error that a client got.
pub fn drive(
    target: &impl Target,
    clients: &mut [Repeat],
    until: Until,
) -> Result<Measured, CommitError> {
    let started = Instant::now();
    let ready = Arc::new(Ready {
        clients: Mutex::new((0..clients.len()).collect()),
        driver: thread::current(),
    });
    let wakers: Vec<Waker> = (0..clients.len())
        .map(|client| Waker::from(Arc::new(Signal { client, ready: Arc::clone(&ready) })))
        .collect();
    let mut pending: Vec<Option<(Pending<'_, (), CommitError>, Instant)>> =
        (0..clients.len()).map(|_| None).collect();
    let (mut latencies, mut sent, mut open) = (Vec::new(), 0_u64, 0_usize);
    loop {
        for client in ready.take() {
            let mut context = Context::from_waker(&wakers[client]);
            loop {
                if let Some((future, since)) = &mut pending[client] {
                    let Poll::Ready(answer) = future.as_mut().poll(&mut context) else { break };
                    answer?;
                    latencies.push(since.elapsed());
                    pending[client] = None;
                    open -= 1;
                }
                let stop = match until {
                    Until::Elapsed(limit) => started.elapsed() >= limit,
                    Until::Transitions(limit) => sent >= limit,
                };
                if stop {
                    break;
                }
                let batch = clients[client].next_batch();
                pending[client] = Some((target.submit(batch), Instant::now()));
                (sent, open) = (sent + 1, open + 1);
            }
        }
        if open == 0 {
            break;
        }
        thread::park();
    }
    let elapsed = started.elapsed();
    Ok(Measured { transitions: sent, elapsed, latencies: latencies.into() })
}
