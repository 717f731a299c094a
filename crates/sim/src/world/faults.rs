//! What breaks: processes, owners, clocks, streams, workers, queues.

use abide_shard::queue::Queues;

use super::{Event, World};
use crate::{
    checks::{Checked, rows},
    names::shards,
    programs::Build,
    schedule::{MILLIS, SECOND},
};

impl World {
    /// Something breaks.
    pub(super) fn break_something(&mut self) -> Checked {
        if self.calm {
            return Ok(());
        }
        self.counts.faults += 1;
        match self.rng.weighted(&[3, 3, 2, 2, 4, 3, 2, 2]) {
            0 => self.crash(),
            1 => self.take_over(),
            2 => {
                let seconds = self.rng.between(1, 30);
                self.jump(seconds * SECOND, true);
                Ok(())
            }
            3 => {
                let micros = self.rng.between(MILLIS, 2 * SECOND);
                self.jump(micros, false);
                Ok(())
            }
            4 => {
                let index = self.rng.index(self.workers.len());
                self.lose_stream(index)
            }
            5 => self.replace_worker(),
            6 => self.crash_one(),
            _ => self.restart_queues(),
        }
    }

    /// The server's process dies: machines, queues, streams and messages are gone. Commits that were
    /// on their way are lost or made, and nobody hears of it.
    pub(super) fn crash(&mut self) -> Checked {
        self.trace.note(None, || format!("{:>12} the process dies", self.now));
        let made = self.rng.chance(500);
        let mut commits = Vec::new();
        self.schedule.retain(|event| match event {
            Event::Commit(slot, batch) => {
                commits.push((*slot, batch.clone()));
                false
            }
            Event::ToSlot(..) | Event::ToShard(..) | Event::Forget(_) | Event::Tick(..) => false,
            Event::Reply(..) | Event::Open(_) => false,
            Event::Worker(..) | Event::Client(_) | Event::ClientTimeout(..) | Event::Fault => true,
        });
        commits.sort_by_key(|(slot, _)| *slot);
        for (slot, batch) in commits {
            if made && self.rng.chance(500) {
                let torn = self.saboteur.torn(&batch);
                self.apply(slot, torn.as_ref().unwrap_or(&batch))?.ok();
            }
        }
        rows::rows_are_the_projection(&self.ledger, &self.tables, shards())?;
        self.reopening.clear();
        self.cut_all_streams();
        self.queues = Queues::new(self.settings.limits.queued_offers);
        let slots: Vec<_> = self.slots.keys().copied().collect();
        for slot in slots {
            self.drop_slot(slot)?;
        }
        for shard in shards() {
            self.reopen(shard);
        }
        Ok(())
    }

    /// One machine is gone, the others go on.
    fn crash_one(&mut self) -> Checked {
        let owners: Vec<_> = self.owners.values().copied().collect();
        match self.rng.pick(&owners).copied() {
            Some(slot) => self.drop_slot(slot),
            None => Ok(()),
        }
    }

    /// A new owner takes a shard while the old one still works.
    fn take_over(&mut self) -> Checked {
        let owned: Vec<_> = self.owners.keys().copied().collect();
        match self.rng.pick(&owned).copied() {
            Some(shard) => self.open(shard),
            None => Ok(()),
        }
    }

    /// Clocks jump.
    pub(super) fn jump(&mut self, micros: u64, forwards: bool) {
        self.skew = if forwards { self.skew + micros } else { self.skew.saturating_sub(micros) };
        if self.calm {
            self.clock_set.push((self.now, self.skew));
        }
        let slots: Vec<_> = self.slots.keys().copied().collect();
        for slot in slots {
            self.tick_soon(slot);
        }
    }

    /// A worker dies and another comes, at times with other code; the last right one stays right.
    fn replace_worker(&mut self) -> Checked {
        let index = self.rng.index(self.workers.len());
        let build = match self.rng.weighted(&[6, 2, 2]) {
            1 if self.workers_of(Build::Right) > 1 => Build::Before,
            2 if self.workers_of(Build::Right) > 1 => Build::Wrong,
            _ => Build::Right,
        };
        self.kill(index, build)
    }

    /// The queues forget everything; streams end with them, and shards are opened anew.
    fn restart_queues(&mut self) -> Checked {
        self.queues = Queues::new(self.settings.limits.queued_offers);
        for index in 0..self.workers.len() {
            self.lose_stream(index)?;
        }
        let slots: Vec<_> = self.owners.values().copied().collect();
        for slot in slots {
            self.drop_slot(slot)?;
        }
        Ok(())
    }
}
