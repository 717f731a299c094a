//! Several nodes under random faults. Requests reach the store late or never, writes are applied
//! after they were reported as failed, shards close slowly, processes are paused, killed, restarted
//! and asked to leave, no two clocks agree, and leases differ. At no moment may a shard be served by two nodes whose
//! leases are valid by their own clocks; when the faults end, all shards are served, in fair shares.

use std::{collections::BTreeMap, time::Duration};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use super::cluster::{LEASE, Registry, options};
use crate::{
    lease::{Lease, LeaseMessage, LeaseOptions, LeaseOutput},
    queue::tests::random::Random,
};

const STEP_MS: u64 = 50;
const FAULTY_STEPS: u64 = 2_000;
const QUIET_STEPS: u64 = 1_200;
const SEEDS: u64 = 16;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Something in flight: a row to be written, a read to be done, or an answer.
enum Flight {
    Read,
    Put { row: RegistryRow, reported: bool },
    Answer(LeaseMessage),
}

struct Process {
    lease: Lease,
    /// Speed of its clock in thousandths, and what it showed at the start.
    clock: (u64, Duration),
    paused_until: u64,
    /// By when, in milliseconds.
    flights: Vec<(u64, Flight)>,
    left: bool,
}

impl Process {
    fn monotonic(&self, now_ms: u64) -> Duration {
        self.clock.1 + Duration::from_micros(now_ms * self.clock.0)
    }

    fn serving(&self, shard: ShardId, now_ms: u64) -> bool {
        self.lease.serves(shard) && self.lease.may_answer(self.monotonic(now_ms))
    }
}

struct Simulation {
    seed: u64,
    random: Random,
    registry: Registry,
    processes: BTreeMap<&'static str, Process>,
    /// Writes that arrive though nobody waits for them: they were given up, or their process killed.
    late_writes: Vec<(u64, RegistryRow)>,
    now_ms: u64,
    incarnations: u64,
    faulty: bool,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            registry: Registry::default(),
            processes: BTreeMap::new(),
            late_writes: Vec::new(),
            now_ms: 0,
            incarnations: 0,
            faulty: true,
        }
    }

    fn start(&mut self, name: &'static str) {
        self.incarnations += 1;
        let speed = 950 + self.random.below(101);
        let lease = self.random.one_of(&[LEASE / 2, LEASE]);
        let process = Process {
            lease: Lease::new(LeaseOptions { lease, ..options(name, self.incarnations) }),
            clock: (speed, Duration::from_secs(self.random.below(1_000))),
            paused_until: 0,
            flights: Vec::new(),
            left: false,
        };
        self.processes.insert(name, process);
        self.tell(name, LeaseMessage::Tick);
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        if self.faulty && self.random.percent(1) {
            self.fault();
        }
        let now_ms = self.now_ms;
        for (_, row) in self.late_writes.extract_if(.., |(at, _)| *at <= now_ms) {
            self.registry.put(row);
        }
        for name in NAMES {
            self.arrive(name);
            self.wake(name);
        }
        self.check();
    }

    fn fault(&mut self) {
        let name = self.random.one_of(&NAMES);
        let Some(process) = self.processes.get_mut(name) else { return self.start(name) };
        match self.random.below(6) {
            _ if process.left => self.start(name),
            0 => self.kill(name),
            1 => {
                self.kill(name);
                self.start(name);
            }
            2 => self.tell(name, LeaseMessage::Leave),
            3 => {
                let shard = self.random.one_of(&ShardId::all().collect::<Vec<_>>());
                if process.lease.serves(shard) {
                    self.tell(name, LeaseMessage::ShardReleased(shard));
                }
            }
            _ => process.paused_until = self.now_ms + self.random.below(40_000),
        }
    }

    fn kill(&mut self, name: &str) {
        let flights = self.processes.remove(name).into_iter().flat_map(|process| process.flights);
        self.late_writes.extend(flights.filter_map(|(at, flight)| match flight {
            Flight::Put { row, .. } => Some((at, row)),
            Flight::Read | Flight::Answer(_) => None,
        }));
    }

    fn arrive(&mut self, name: &'static str) {
        let now_ms = self.now_ms;
        let Some(process) = self.processes.get_mut(name) else { return };
        let paused = process.paused_until > now_ms;
        let arrived: Vec<_> = process
            .flights
            .extract_if(.., |(at, flight)| {
                *at <= now_ms && !(paused && matches!(flight, Flight::Answer(_)))
            })
            .collect();
        for (_, flight) in arrived {
            let answer = match flight {
                Flight::Answer(message) => {
                    self.tell(name, message);
                    continue;
                }
                Flight::Read if self.fails() => LeaseMessage::ReadFailed,
                Flight::Read => LeaseMessage::Registry(self.registry.rows()),
                Flight::Put { row, reported: true } => {
                    LeaseMessage::Written(self.registry.put(row))
                }
                Flight::Put { row, reported: false } => {
                    let at = self.now_ms + self.delay() * self.random.below(20);
                    self.late_writes.push((at, row));
                    LeaseMessage::WriteFailed
                }
            };
            self.send(name, Flight::Answer(answer));
        }
    }

    fn wake(&mut self, name: &'static str) {
        let Some(process) = self.processes.get(name) else { return };
        let due = process.lease.wake_at().is_some_and(|at| at <= process.monotonic(self.now_ms));
        if due && process.paused_until <= self.now_ms {
            self.tell(name, LeaseMessage::Tick);
        }
    }

    fn tell(&mut self, name: &'static str, message: LeaseMessage) {
        let now_ms = self.now_ms;
        let Some(process) = self.processes.get_mut(name) else { return };
        process.lease.handle(process.monotonic(now_ms), message);
        let outputs: Vec<_> = std::iter::from_fn(|| process.lease.poll()).collect();
        for output in outputs {
            let flight = match output {
                LeaseOutput::ReadRegistry => Flight::Read,
                LeaseOutput::PutRegistry(row) => Flight::Put { row, reported: !self.fails() },
                LeaseOutput::Close(shard) => Flight::Answer(LeaseMessage::ShardReleased(shard)),
                LeaseOutput::Open(_) | LeaseOutput::Lost => continue,
                LeaseOutput::Tell => {
                    self.tell_others(name);
                    continue;
                }
                LeaseOutput::Left => {
                    self.processes.get_mut(name).unwrap().left = true;
                    continue;
                }
            };
            self.send(name, flight);
        }
    }

    /// What nodes tell each other may be lost.
    fn tell_others(&mut self, name: &str) {
        for other in NAMES.into_iter().filter(|other| *other != name) {
            if self.processes.contains_key(other) && !self.fails() {
                self.send(other, Flight::Answer(LeaseMessage::Look));
            }
        }
    }

    fn send(&mut self, name: &'static str, flight: Flight) {
        let at = self.now_ms + self.delay();
        self.processes.get_mut(name).unwrap().flights.push((at, flight));
    }

    fn fails(&mut self) -> bool {
        self.faulty && self.random.percent(10)
    }

    /// Usually nothing to speak of, sometimes most of a lease.
    fn delay(&mut self) -> u64 {
        if self.faulty && self.random.percent(5) { self.random.below(8_000) } else { 1 }
    }

    fn check(&self) {
        for shard in ShardId::all() {
            let now_ms = self.now_ms;
            let serving = self.processes.iter().filter(|(_, node)| node.serving(shard, now_ms));
            let names: Vec<_> = serving.map(|(name, _)| name).collect();
            let seed = self.seed;
            assert!(names.len() <= 1, "seed {seed}, {now_ms} ms: shard {shard} at {names:?}");
        }
    }

    fn served(&self, name: &str) -> usize {
        let Some(process) = self.processes.get(name) else { return 0 };
        ShardId::all().filter(|shard| process.serving(*shard, self.now_ms)).count()
    }

    fn run(&mut self) {
        for name in NAMES {
            self.start(name);
        }
        let mut served = 0;
        for _ in 0..FAULTY_STEPS {
            self.step();
            served += NAMES.iter().map(|name| self.served(name)).sum::<usize>();
        }
        assert!(served > 64 * 500, "seed {}: faults left little to check: {served}", self.seed);
        self.faulty = false;
        for _ in 0..QUIET_STEPS {
            self.step();
        }
        let staying = |process: &&Process| !process.left;
        let count = self.processes.values().filter(staying).count();
        let mut served: Vec<_> = NAMES.iter().map(|name| self.served(name)).collect();
        served.sort_unstable_by(|left, right| right.cmp(left));
        let fair: Vec<_> = (0..NAMES.len())
            .map(
                |index| {
                    if index < count { 64 / count + usize::from(index < 64 % count) } else { 0 }
                },
            )
            .collect();
        assert_eq!(served, fair, "seed {}", self.seed);
    }
}

#[test]
fn no_shard_is_served_twice_and_all_are_served_in_the_end() {
    assert!(Duration::from_millis(QUIET_STEPS * STEP_MS) > 5 * LEASE);
    for seed in 0..SEEDS {
        Simulation::new(seed).run();
    }
}
