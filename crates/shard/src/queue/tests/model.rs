//! Random messages against a naive model, and against a driver that must get all its work done.

use std::collections::{BTreeMap, VecDeque};

use super::{random::Random, *};

const SEEDS: u64 = 300;
const STEPS: usize = 150;

/// The rules without any index: everything is found by looking at everything.
#[derive(Default)]
struct Model {
    offers: Vec<Offer>,
    workers: Vec<(QueueKey, Worker, Load)>,
    builds: BTreeSet<(QueueKey, BuildId)>,
    matches: u64,
    outputs: Vec<QueueOutput>,
}

#[derive(Clone, Copy, Default)]
struct Load {
    matched: u64,
    credits: usize,
}

impl Model {
    fn handle(&mut self, message: QueueMessage) -> Vec<QueueOutput> {
        match message {
            QueueMessage::Offer(offer) => self.offer(offer),
            QueueMessage::Credit { queue, worker, credits } => self.credit(queue, worker, credits),
            QueueMessage::Unmatched(offer, worker) => {
                for (queue, known, load) in &mut self.workers {
                    if *queue == offer.queue && known.session == worker.session {
                        load.credits += 1;
                    }
                }
            }
            QueueMessage::Gone(session) => {
                self.workers.retain(|(_, worker, _)| worker.session != session);
            }
            QueueMessage::ShardClosed(shard) => self.offers.retain(|offer| offer.shard != shard),
            other => panic!("the model has one node: {other:?}"),
        }
        while self.pair() {}
        std::mem::take(&mut self.outputs)
    }

    fn offer(&mut self, offer: Offer) {
        match self.offers.iter_mut().find(|kept| same(kept, &offer)) {
            Some(kept) => *kept = offer,
            None => self.offers.push(offer),
        }
    }

    fn credit(&mut self, queue: QueueKey, worker: Worker, credits: usize) {
        if let Some(build) = &worker.build
            && self.builds.insert((queue.clone(), build.clone()))
        {
            self.outputs.push(QueueOutput::NewBuild(queue.clone(), build.clone()));
        }
        let same = |(key, known, _): &(QueueKey, Worker, Load)| {
            *key == queue && known.session == worker.session
        };
        let before = self.workers.iter().position(same).map(|index| self.workers.remove(index).2);
        let mut load = before.unwrap_or_default();
        load.credits += credits;
        self.workers.push((queue, worker, load));
    }

    fn pair(&mut self) -> bool {
        let mut order: Vec<_> = (0..self.offers.len()).collect();
        order.sort_by_key(|index| !matches!(self.offers[*index].work, Work::Query(_)));
        for index in order {
            let offer = &self.offers[index];
            let able = self.workers.iter_mut().filter(|(queue, worker, load)| {
                *queue == offer.queue
                    && load.credits > 0
                    && worker.build.as_ref().is_none_or(|build| !offer.except.contains(build))
            });
            let best = able.min_by_key(|(_, worker, load)| {
                let preferred = offer.prefer.as_ref() == Some(&worker.session);
                (!preferred, load.matched, worker.session.clone())
            });
            if let Some((_, worker, load)) = best {
                self.matches += 1;
                *load = Load { matched: self.matches, credits: load.credits - 1 };
                let worker = worker.clone();
                self.outputs.push(matched(self.offers.remove(index), worker));
                return true;
            }
        }
        false
    }
}

fn same(left: &Offer, right: &Offer) -> bool {
    name(left) == name(right)
}

fn name(offer: &Offer) -> (QueueKey, ShardId, RunId, Work) {
    (offer.queue.clone(), offer.shard, offer.run, offer.work)
}

const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];
const BUILDS: [&str; 3] = ["x", "y", "z"];

fn some_queue(random: &mut Random) -> QueueKey {
    queue(random.one_of(&["orders", "letters"]))
}

fn some_offer(random: &mut Random) -> Offer {
    let run = u8::try_from(random.below(12)).unwrap();
    let mut offer = if random.percent(20) { query(run) } else { task(run) };
    offer.queue = some_queue(random);
    if random.percent(40) {
        offer = preferring(offer, random.one_of(&SESSIONS));
    }
    let builds: Vec<_> = BUILDS.into_iter().filter(|_| random.percent(20)).collect();
    except(offer, &builds)
}

fn some_worker(random: &mut Random) -> Worker {
    let session = random.one_of(&SESSIONS);
    match random.below(4) {
        0 => worker(session),
        _ => built(session, random.one_of(&BUILDS)),
    }
}

fn some_message(random: &mut Random) -> QueueMessage {
    match random.below(100) {
        0..50 => QueueMessage::Offer(some_offer(random)),
        50..80 => QueueMessage::Credit {
            queue: some_queue(random),
            worker: some_worker(random),
            credits: usize::try_from(random.below(4)).unwrap(),
        },
        80..88 => QueueMessage::Unmatched(some_offer(random), some_worker(random)),
        88..96 => QueueMessage::Gone(random.one_of(&SESSIONS).into()),
        _ => QueueMessage::ShardClosed(random.one_of(&ShardId::all().take(4).collect::<Vec<_>>())),
    }
}

#[test]
fn the_machine_agrees_with_the_model() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (mut bench, mut model) = (Bench::new(1_000), Model::default());
        for step in 0..STEPS {
            let message = some_message(&mut random);
            let expected = model.handle(message.clone());
            assert_eq!(
                bench.handle(message.clone()),
                expected,
                "seed {seed} step {step} {message:?}"
            );
        }
    }
}

/// Shards that remember all their work, as rows do, and offer it again when they are asked to. It
/// checks each output against what was said before.
struct Driver {
    bench: Bench,
    rows: BTreeMap<(QueueKey, ShardId, RunId, Work), Offer>,
    credits: BTreeMap<(QueueKey, SessionId), usize>,
    refills: usize,
}

impl Driver {
    fn handle(&mut self, message: QueueMessage) {
        self.note(&message);
        let mut outputs = VecDeque::from(self.bench.handle(message));
        while let Some(output) = outputs.pop_front() {
            match output {
                QueueOutput::NewBuild(..) => {}
                output @ (QueueOutput::Pass(..) | QueueOutput::Spare { .. }) => {
                    panic!("there is one node: {output:?}")
                }
                QueueOutput::Match(offer, worker) => self.matched(&offer, &worker),
                QueueOutput::Refill(queue) => {
                    self.refills += 1;
                    assert!(self.refills < 100_000, "refills never end");
                    let rows: Vec<_> = self.rows.values().cloned().collect();
                    for offer in rows.into_iter().filter(|offer| offer.queue == queue) {
                        outputs.extend(self.bench.offer(offer));
                    }
                }
            }
        }
    }

    fn note(&mut self, message: &QueueMessage) {
        match message {
            QueueMessage::Offer(offer) => {
                self.rows.insert(name(offer), offer.clone());
            }
            QueueMessage::Credit { queue, worker, credits } => {
                let session = worker.session.clone();
                *self.credits.entry((queue.clone(), session)).or_default() += credits;
            }
            QueueMessage::Unmatched(offer, worker) => {
                let key = (offer.queue.clone(), worker.session.clone());
                if let Some(credits) = self.credits.get_mut(&key) {
                    *credits += 1;
                }
            }
            QueueMessage::Gone(session) => self.credits.retain(|(_, known), _| known != session),
            QueueMessage::ShardClosed(shard) => self.rows.retain(|_, row| row.shard != *shard),
            other => panic!("the model has one node: {other:?}"),
        }
    }

    fn matched(&mut self, offer: &Offer, worker: &Worker) {
        assert!(self.rows.remove(&name(offer)).is_some(), "matched twice: {offer:?}");
        let credits = self.credits.get_mut(&(offer.queue.clone(), worker.session.clone())).unwrap();
        *credits = credits.checked_sub(1).expect("a match needs a credit");
        assert!(worker.build.as_ref().is_none_or(|build| !offer.except.contains(build)));
    }
}

#[test]
fn small_queues_lose_no_work() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let offers_max = usize::try_from(1 + random.below(4)).unwrap();
        let mut driver = Driver {
            bench: Bench::new(offers_max),
            rows: BTreeMap::new(),
            credits: BTreeMap::new(),
            refills: 0,
        };
        for _ in 0..STEPS {
            driver.handle(some_message(&mut random));
        }
        for name in ["orders", "letters"] {
            let credit =
                QueueMessage::Credit { queue: queue(name), worker: worker("e"), credits: 1_000 };
            driver.handle(credit);
        }
        assert!(driver.rows.is_empty(), "seed {seed}: left over {:?}", driver.rows);
    }
}
