//! What a node knows about the others: the owner of each shard, the node to which a remote worker
//! is connected, and what is in flight between their queues. It only keeps records and decides
//! nothing.
//!
//! | in flight | ends when |
//! |---|---|
//! | an offer passed on to a node | the node answers, or a link to or from it is replaced: the work is offered again |
//! | a match reported to a node | the node sends the work or returns the worker, or a link is replaced: the worker gets its credit back |
//! | a match reported by a node | the shard answers it, the worker leaves that node, or a link is replaced |
//!
//! Both ends of a link drop their records on the same events, so neither waits for what the other
//! has lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{
    dispatch::{QueueKey, Worker},
    ids::{BuildId, RunId, SessionId, ShardId},
};

use crate::message::{Offer, Work};

/// What a node knows about the others. A node is identified by its address.
#[derive(Debug)]
pub(super) struct Neighbours {
    own: String,
    nodes: BTreeSet<String>,
    /// Owners of shards when the registry rows were last read.
    owners: BTreeMap<ShardId, String>,
    /// Nodes that announced a shard since then, with the time of the announcement.
    heard: BTreeMap<ShardId, (Duration, String)>,
    /// The nodes that reported each remote worker as connected, the latest report last: the worker is
    /// there. Reports of two nodes may arrive in the wrong order, so the earlier ones are kept until
    /// their node reports that the worker has left.
    homes: BTreeMap<SessionId, Vec<String>>,
    /// Nodes to which there is a link.
    linked: BTreeSet<String>,
    /// Credit lent by nodes to which there is no link yet, so no offer could be passed on to them.
    early: BTreeMap<String, BTreeMap<(QueueKey, Option<BuildId>), usize>>,
    /// Offers passed on to a node that has not answered yet.
    passed: BTreeMap<String, BTreeMap<(ShardId, RunId, Work), Offer>>,
    /// Matches of workers of this node, reported to a node that has not answered yet.
    lent: BTreeMap<String, BTreeMap<(RunId, Work, SessionId), Lent>>,
    /// Matches of remote workers that the shard has not answered yet. The node that made a match waits
    /// for the answer, also when the worker has moved since.
    borrowed: BTreeMap<SessionId, Vec<Borrowed>>,
}

/// Matches of one worker with one piece of work; a shard that was reset may offer the work twice.
#[derive(Debug)]
struct Lent {
    offer: Offer,
    worker: Worker,
    count: usize,
}

/// A match of a remote worker, and the node that made it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Borrowed {
    pub(super) node: String,
    pub(super) offer: Offer,
}

/// Credit that a node has to lend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spare {
    pub(super) queue: QueueKey,
    /// Build of the workers that gave the credit.
    pub(super) build: Option<BuildId>,
    /// Number of tasks that these workers can take.
    pub(super) credits: usize,
}

/// What changed since the last read of the rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    /// Shards with another owner.
    pub(super) moved: BTreeSet<ShardId>,
    /// All other nodes, if the set has changed.
    pub(super) nodes: Option<BTreeSet<String>>,
}

/// What was in flight with a node whose link is closed or replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// Workers that were connected there.
    pub(super) workers: Vec<SessionId>,
    /// Offers that the node has not answered.
    pub(super) offers: Vec<Offer>,
    /// Matches of local workers that the node has not answered.
    pub(super) lent: Vec<(Offer, Worker)>,
}

impl Neighbours {
    /// A node that knows no others yet.
    pub(super) fn new(own: String) -> Self {
        Self {
            own,
            nodes: BTreeSet::new(),
            owners: BTreeMap::new(),
            heard: BTreeMap::new(),
            homes: BTreeMap::new(),
            linked: BTreeSet::new(),
            early: BTreeMap::new(),
            passed: BTreeMap::new(),
            lent: BTreeMap::new(),
            borrowed: BTreeMap::new(),
        }
    }

    /// Takes over rows that were read at `read_at` or later; they include announcements from
    /// before.
    pub(super) fn read(
        &mut self,
        owners: &BTreeMap<ShardId, String>,
        nodes: &BTreeSet<String>,
        read_at: Duration,
    ) -> Changes {
        // Rows are read often and rarely change.
        let settled = self.heard.is_empty() && self.owners == *owners;
        let moved = if settled { BTreeSet::new() } else { self.rearrange(owners, read_at) };
        let others = nodes.iter().filter(|node| **node != self.own).cloned().collect();
        let nodes = (self.nodes != others).then(|| others.clone());
        self.nodes = others;
        Changes { moved, nodes }
    }

    /// Takes over the owners of shards; returns the shards that have moved.
    fn rearrange(
        &mut self,
        owners: &BTreeMap<ShardId, String>,
        read_at: Duration,
    ) -> BTreeSet<ShardId> {
        let before: Vec<_> = ShardId::all().map(|shard| self.place(shard).cloned()).collect();
        self.owners.clone_from(owners);
        self.heard.retain(|_, (heard_at, _)| *heard_at >= read_at);
        let places = ShardId::all().zip(before);
        let moved = places.filter(|(shard, before)| self.place(*shard) != before.as_ref());
        moved.map(|(shard, _)| shard).collect()
    }

    /// A node announced that it has these shards in memory.
    pub(super) fn opened(&mut self, node: &str, shards: &BTreeSet<ShardId>, now: Duration) {
        self.heard.extend(shards.iter().map(|shard| (*shard, (now, node.to_owned()))));
    }

    /// The other node that serves the shard, as far as this node knows.
    pub(super) fn owner(&self, shard: ShardId) -> Option<&String> {
        self.place(shard).filter(|owner| **owner != self.own)
    }

    /// The shards that a node serves, as far as this node knows.
    pub(super) fn shards_of(&self, node: &str) -> BTreeSet<ShardId> {
        ShardId::all().filter(|shard| self.place(*shard).is_some_and(|at| at == node)).collect()
    }

    /// Addresses of all other nodes.
    pub(super) fn nodes(&self) -> &BTreeSet<String> {
        &self.nodes
    }

    /// A worker connected to another node. Returns whether it was connected remotely before, there
    /// or elsewhere: it has then lost what it had.
    pub(super) fn came(&mut self, session: SessionId, node: &str) -> bool {
        let homes = self.homes.entry(session).or_default();
        let before = !homes.is_empty();
        homes.retain(|home| home != node);
        homes.push(node.to_owned());
        before
    }

    /// A worker of another node takes work, so it is connected there. Returns whether it was
    /// elsewhere.
    pub(super) fn welcome(&mut self, session: &SessionId, node: &str) -> bool {
        self.home_of(session).is_none_or(|home| home != node) && self.came(session.clone(), node)
    }

    /// A worker has left a node. Returns whether it is at another one, as far as is known here.
    pub(super) fn left(&mut self, session: &SessionId, node: &str) -> bool {
        let elsewhere = self.home_of(session).is_some_and(|home| home != node);
        self.keep_borrowed(session, |borrowed| borrowed.node != node);
        if let Some(homes) = self.homes.get_mut(session) {
            homes.retain(|home| home != node);
            if homes.is_empty() {
                self.homes.remove(session);
            }
        }
        elsewhere
    }

    /// A worker connected to this node, and the others learn of it. Returns whether it was elsewhere.
    pub(super) fn came_home(&mut self, session: &SessionId) -> bool {
        self.borrowed.remove(session);
        self.homes.remove(session).is_some()
    }

    /// The other node to which a worker is connected.
    pub(super) fn home_of(&self, session: &SessionId) -> Option<&String> {
        self.homes.get(session)?.last()
    }

    /// A node has credit to lend. Returns the credit if it can be used at once; otherwise keeps it
    /// until there is a link to the node, which announces it only once.
    pub(super) fn lends(&mut self, node: &str, spare: Spare) -> Option<Spare> {
        if self.linked.contains(node) {
            return Some(spare);
        }
        let Spare { queue, build, credits } = spare;
        self.early.entry(node.to_owned()).or_default().insert((queue, build), credits);
        None
    }

    /// A link to a node is open; returns the credit that the node has already lent.
    pub(super) fn linked(&mut self, node: &str) -> Vec<Spare> {
        self.linked.insert(node.to_owned());
        let early = self.early.remove(node).unwrap_or_default().into_iter();
        early.map(|((queue, build), credits)| Spare { queue, build, credits }).collect()
    }

    /// The link to a node is closed.
    pub(super) fn unlinked(&mut self, node: &str) {
        self.linked.remove(node);
    }

    /// The nodes to which there is a link.
    pub(super) fn links(&self) -> &BTreeSet<String> {
        &self.linked
    }

    /// An offer was passed on to a node.
    pub(super) fn passed(&mut self, node: &str, offer: Offer) {
        let key = (offer.shard, offer.run, offer.work);
        self.passed.entry(node.to_owned()).or_default().insert(key, offer);
    }

    /// The node has answered the offer.
    pub(super) fn answered(&mut self, node: &str, offer: &Offer) {
        if let Some(passed) = self.passed.get_mut(node) {
            passed.remove(&(offer.shard, offer.run, offer.work));
        }
    }

    /// A match of a local worker was reported to a node.
    pub(super) fn lent(&mut self, node: &str, offer: Offer, worker: Worker) {
        let key = (offer.run, offer.work, worker.session.clone());
        let lent = self.lent.entry(node.to_owned()).or_default();
        lent.entry(key).or_insert(Lent { offer, worker, count: 0 }).count += 1;
    }

    /// The node sent the work or returned the worker. Returns whether the match was still in
    /// flight.
    pub(super) fn settle(
        &mut self,
        node: &str,
        run: RunId,
        work: Work,
        session: &SessionId,
    ) -> bool {
        let key = (run, work, session.clone());
        let Some(lent) = self.lent.get_mut(node) else { return false };
        let Some(matched) = lent.get_mut(&key) else { return false };
        matched.count -= 1;
        if matched.count == 0 {
            lent.remove(&key);
        }
        true
    }

    /// A node reported a match of one of its workers.
    pub(super) fn borrowed(&mut self, node: &str, offer: Offer, session: SessionId) {
        let borrowed = Borrowed { node: node.to_owned(), offer };
        self.borrowed.entry(session).or_default().push(borrowed);
    }

    /// A shard answers a match. Returns the match if another node made it; of two equal ones, that of
    /// the node where the worker is.
    pub(super) fn take_borrowed(
        &mut self,
        run: RunId,
        work: Work,
        session: &SessionId,
    ) -> Option<Borrowed> {
        let home = self.home_of(session).cloned();
        let matches = self.borrowed.get_mut(session)?;
        let equal = |borrowed: &Borrowed| (borrowed.offer.run, borrowed.offer.work) == (run, work);
        let at_home =
            |borrowed: &Borrowed| equal(borrowed) && home.as_ref() == Some(&borrowed.node);
        let index = matches.iter().position(at_home).or_else(|| matches.iter().position(equal))?;
        let taken = matches.remove(index);
        self.keep_borrowed(session, |_| true);
        Some(taken)
    }

    fn keep_borrowed(&mut self, session: &SessionId, keep: impl Fn(&Borrowed) -> bool) {
        if let Some(matches) = self.borrowed.get_mut(session) {
            matches.retain(keep);
            if matches.is_empty() {
                self.borrowed.remove(session);
            }
        }
    }

    /// The stream of a local worker has ended: its credit is gone.
    pub(super) fn forget_lent(&mut self, session: &SessionId) {
        for lent in self.lent.values_mut() {
            lent.retain(|(_, _, lent), _| lent != session);
        }
    }

    /// A link to or from the node was closed or replaced: messages may be lost. Takes all that was
    /// in flight.
    pub(super) fn lose(&mut self, node: &str) -> Lost {
        let mut workers = Vec::new();
        self.homes.retain(|session, homes| {
            if homes.last().is_some_and(|home| home == node) {
                workers.push(session.clone());
            }
            homes.retain(|home| home != node);
            !homes.is_empty()
        });
        self.early.remove(node);
        self.borrowed.retain(|_, matches| {
            matches.retain(|borrowed| borrowed.node != node);
            !matches.is_empty()
        });
        let lent = self.lent.remove(node).unwrap_or_default().into_values();
        let lent = lent
            .flat_map(|Lent { offer, worker, count }| std::iter::repeat_n((offer, worker), count));
        Lost {
            workers,
            offers: self.passed.remove(node).unwrap_or_default().into_values().collect(),
            lent: lent.collect(),
        }
    }

    fn place(&self, shard: ShardId) -> Option<&String> {
        self.heard.get(&shard).map(|(_, node)| node).or_else(|| self.owners.get(&shard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(number: u8) -> ShardId {
        ShardId::new(number).unwrap()
    }

    fn shards(numbers: &[u8]) -> BTreeSet<ShardId> {
        numbers.iter().map(|number| shard(*number)).collect()
    }

    fn rows(owners: &[(u8, &str)]) -> BTreeMap<ShardId, String> {
        owners.iter().map(|(number, node)| (shard(*number), (*node).to_owned())).collect()
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn offer(run: u8) -> Offer {
        Offer {
            queue: QueueKey {
                namespace: "default".into(),
                queue: "queue".into(),
                kind: abide_core::dispatch::WorkKind::Workflow,
            },
            shard: shard(1),
            workflow: abide_core::ids::WorkflowKey {
                namespace: "default".into(),
                workflow: "w".into(),
            },
            run: RunId::from_slice(&[run; 16]).unwrap(),
            work: Work::Workflow,
            prefer: None,
            except: BTreeSet::new(),
        }
    }

    fn worker(session: &str) -> Worker {
        Worker { session: session.into(), identity: "worker".into(), build: None }
    }

    #[test]
    fn who_says_that_it_serves_a_shard_is_believed_until_newer_rows_are_read() {
        let mut neighbours = Neighbours::new("own".into());
        let nodes = ["own".to_owned(), "a".into(), "b".into()].into();
        let changes = neighbours.read(&rows(&[(1, "a"), (2, "a"), (3, "own")]), &nodes, seconds(1));
        assert_eq!(changes.moved, shards(&[1, 2, 3]));
        assert_eq!(changes.nodes, Some(["a".to_owned(), "b".into()].into()));
        assert_eq!(neighbours.owner(shard(3)), None, "that is this node");
        neighbours.opened("b", &shards(&[1]), seconds(5));
        assert_eq!(neighbours.owner(shard(1)), Some(&"b".into()));
        assert_eq!(
            (neighbours.shards_of("a"), neighbours.shards_of("b")),
            (shards(&[2]), shards(&[1]))
        );
        // Rows that were asked for before it was heard may be older.
        let older = rows(&[(1, "a"), (2, "a"), (3, "own")]);
        let changes = neighbours.read(&older, &nodes, seconds(4));
        assert_eq!(changes, Changes { moved: shards(&[]), nodes: None });
        let changes = neighbours.read(&older, &nodes, seconds(6));
        assert_eq!(changes.moved, shards(&[1]));
    }

    #[test]
    fn the_late_word_of_a_node_about_a_worker_that_has_moved_on_counts_for_nothing() {
        let mut neighbours = Neighbours::new("own".into());
        assert!(!neighbours.came("w".into(), "a"));
        assert!(neighbours.came("w".into(), "b"), "what it had at the other node is lost");
        assert!(neighbours.left(&"w".into(), "a"));
        assert_eq!(neighbours.home_of(&"w".into()), Some(&"b".into()));
        assert!(neighbours.came_home(&"w".into()));
        assert!(!neighbours.left(&"w".into(), "b"));
    }

    #[test]
    fn reports_about_a_worker_that_come_in_the_wrong_order_do_not_hide_where_it_is() {
        let mut neighbours = Neighbours::new("own".into());
        neighbours.came("w".into(), "b");
        // It was at `a` before, which this node learns late.
        assert!(neighbours.came("w".into(), "a"));
        assert!(!neighbours.left(&"w".into(), "a"));
        assert_eq!(neighbours.home_of(&"w".into()), Some(&"b".into()));
        assert_eq!(neighbours.lose("b").workers, ["w".into()]);
        assert_eq!(neighbours.home_of(&"w".into()), None);
    }

    #[test]
    fn a_match_is_settled_as_often_as_it_was_told() {
        let mut neighbours = Neighbours::new("own".into());
        for _ in 0..2 {
            neighbours.lent("a", offer(1), worker("w"));
        }
        let mut settle = || neighbours.settle("a", offer(1).run, Work::Workflow, &"w".into());
        assert_eq!([settle(), settle(), settle()], [true, true, false]);
    }

    #[test]
    fn what_a_node_lends_before_there_is_a_link_to_it_is_used_when_there_is() {
        let mut neighbours = Neighbours::new("own".into());
        let spare = |credits| Spare { queue: offer(1).queue, build: None, credits };
        assert_eq!(neighbours.lends("a", spare(3)), None);
        assert_eq!(neighbours.lends("a", spare(2)), None);
        assert_eq!(neighbours.linked("a"), [spare(2)], "what it said last");
        assert_eq!(neighbours.lends("a", spare(1)), Some(spare(1)));
        neighbours.unlinked("a");
        assert_eq!(neighbours.lends("a", spare(4)), None);
        neighbours.lose("a");
        assert_eq!(neighbours.linked("a"), [], "it begins anew, and says what it lends");
    }

    #[test]
    fn what_was_under_way_with_a_lost_node_is_given_back_once() {
        let mut neighbours = Neighbours::new("own".into());
        neighbours.came("far".into(), "a");
        neighbours.passed("a", offer(1));
        neighbours.passed("a", offer(2));
        neighbours.answered("a", &offer(2));
        neighbours.lent("a", offer(3), worker("near"));
        neighbours.lent("a", offer(4), worker("gone"));
        neighbours.forget_lent(&"gone".into());
        let lost = neighbours.lose("a");
        assert_eq!(lost.workers, ["far".into()]);
        assert_eq!(lost.offers, [offer(1)]);
        assert_eq!(lost.lent, [(offer(3), worker("near"))]);
        let again = neighbours.lose("a");
        assert_eq!(again, Lost { workers: vec![], offers: vec![], lent: vec![] });
    }
}
