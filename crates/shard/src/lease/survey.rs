//! What a node concludes from reading all rows: whether it may join, whether it still owns its row,
//! which shards to claim, open and close, and which nodes have been silent for too long.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use super::{
    Lease, NodeRow, NodeState, Standing, holdings::ShardClaim, round::Dead, share::share,
    watch::Sight,
};

/// A row as it was read. `row` is none if it cannot be decoded: such a node may hold every shard.
struct Member {
    version: u64,
    row: Option<NodeRow>,
}

impl Member {
    fn in_state(&self, state: NodeState) -> bool {
        self.row.as_ref().is_some_and(|row| row.state == state)
    }

    /// Length of its lease, if the row states it.
    fn lease(&self) -> Option<Duration> {
        self.row.as_ref().and_then(|row| row.lease)
    }

    fn lists(&self, shard: ShardId) -> bool {
        self.row.as_ref().is_none_or(|row| row.shards.contains(&shard))
    }
}

type Members = BTreeMap<String, Member>;

/// The node that should own each shard.
type Shares<'a> = BTreeMap<ShardId, &'a str>;

impl Lease {
    pub(super) fn survey(&mut self, rows: &[RegistryRow]) {
        let members: Members = rows
            .iter()
            .map(|row| {
                let member = Member { version: row.version, row: NodeRow::decode(&row.value).ok() };
                (row.name.clone(), member)
            })
            .collect();
        let own_lease = self.options.lease;
        let sights = members.iter().map(|(name, member)| Sight {
            name,
            version: member.version,
            lease: member.lease().map_or(own_lease, |lease| lease.max(own_lease)),
        });
        self.watches.see(sights, self.seen_at, self.options.watched_max());
        self.other_leases = self
            .others(&members)
            .filter_map(|(name, member)| Some((name.clone(), member.lease()?)))
            .filter(|(_, lease)| *lease != own_lease)
            .collect();
        // Rows are read often and shards rarely move.
        let addresses = addresses(&members);
        let known = self.addresses.iter().map(|(shard, node)| (*shard, node.as_str()));
        if !known.eq(addresses.iter().map(|(shard, node)| (*shard, *node))) {
            let owned = addresses.into_iter().map(|(shard, node)| (shard, node.to_owned()));
            self.addresses = owned.collect();
        }
        self.nodes = nodes(&members);
        match self.standing {
            Standing::Outside => self.join(&members),
            Standing::Member => self.stay(&members),
            Standing::Alone | Standing::Left => {}
        }
    }

    /// Writes this node's row, unless another process seems to be alive under its name, or a node
    /// with which it cannot share the shards.
    fn join(&mut self, members: &Members) {
        if self.leaving {
            return;
        }
        if let Some(name) = self.stranger_among(members).cloned() {
            let pause = self.options.retry_pause();
            self.round_at =
                self.seen_at + self.watches.left(&name).map_or(pause, |left| pause.min(left));
            self.name_taken = name == self.row_name();
            self.stranger = self.watches.renewed(&name).then_some(name);
            return;
        }
        self.stranger = None;
        let name = self.row_name();
        let own = members.get(&name);
        let free = own.is_none_or(|own| {
            own.in_state(NodeState::Gone)
                || self.wrote(own)
                || self.watches.left(&name) == Some(Duration::ZERO)
        });
        self.name_taken = !free;
        if free {
            self.version = own.map_or(0, |own| own.version);
            self.ask_renewal();
        } else {
            let pause = self.options.retry_pause();
            let left = self.watches.left(&name);
            self.round_at = self.seen_at + left.map_or(pause, |left| pause.min(left));
        }
    }

    fn wrote(&self, own: &Member) -> bool {
        own.row.as_ref().is_some_and(|row| row.incarnation == self.options.incarnation)
    }

    fn stay(&mut self, members: &Members) {
        let own = members.get(&self.row_name());
        let Some(own) = own.filter(|own| self.wrote(own) && !own.in_state(NodeState::Gone)) else {
            self.fence();
            return;
        };
        // Two nodes joined at the same time: the one with the greater name withdraws.
        if self.stranger_among(members).is_some_and(|name| *name < self.row_name()) {
            self.fence();
            return;
        }
        let was_unsure = std::mem::take(&mut self.unsure);
        let valid = self.may_answer(self.seen_at);
        let shares = shares(members);
        if valid && !self.leaving {
            self.rearrange(members, &shares);
        }
        self.adopt(own);
        let relist = own.row.as_ref().is_some_and(|row| row.shards != self.holdings.shards());
        self.taken_over = self.leaving && self.others_serve(members);
        if was_unsure || relist || !valid || self.taken_over {
            self.renew_now();
            return;
        }
        self.dead = self.expired(members);
        if self.dead.is_empty() {
            self.rest(members, &shares);
        } else {
            self.ask_expulsion();
        }
    }

    /// Whether a leaving node holds nothing and other nodes list all shards. It does not wait if
    /// there are no others or they are too slow.
    fn others_serve(&self, members: &Members) -> bool {
        let others = || members.values().filter(|member| member.in_state(NodeState::Alive));
        let orphaned = |shard| !others().any(|member| member.lists(shard));
        self.holdings.is_empty()
            && (self.seen_at >= self.stays_until
                || others().next().is_none()
                || !ShardId::all().any(orphaned))
    }

    /// Adopts the stored row: a renewal of unknown outcome may have been written. Its claims count
    /// as listed from here on, for reads that begin later.
    fn adopt(&mut self, own: &Member) {
        if own.version == self.version {
            return;
        }
        self.version = own.version;
        if let Some(row) = &own.row {
            self.holdings.listed(&row.shards);
            if row.counter == self.counter {
                self.term = Some(self.options.term(self.asked_at));
            }
        }
    }

    fn rearrange(&mut self, members: &Members, shares: &Shares<'_>) {
        let name = self.row_name();
        for shard in ShardId::all() {
            let taken = members.iter().any(|(other, member)| *other != name && member.lists(shard));
            let ours = shares.get(&shard) == Some(&name.as_str());
            self.outputs.extend(self.holdings.judge(shard, ShardClaim { ours, taken }));
        }
    }

    /// Nodes that have not renewed their rows for a whole lease: their own, or this node's if that
    /// is longer.
    fn expired(&self, members: &Members) -> Vec<Dead> {
        let silent = |name| self.watches.left(name) == Some(Duration::ZERO);
        let others = self.others(members).filter(|(name, _)| silent(name));
        let dead = others.map(|(name, member)| Dead {
            name: name.clone(),
            version: member.version,
            row: member.row.clone(),
        });
        dead.collect()
    }

    /// The other nodes that are not gone.
    fn others<'a>(&self, members: &'a Members) -> impl Iterator<Item = (&'a String, &'a Member)> {
        let own = self.row_name();
        members
            .iter()
            .filter(move |(name, member)| **name != own && !member.in_state(NodeState::Gone))
    }

    /// Another node that may be alive and cannot be reached, because it or this node has no
    /// address. Nodes without one are named after the address on which they listen, which may be the
    /// same on two machines, so the row of this node's name may be another's.
    fn stranger_among<'a>(&self, members: &'a Members) -> Option<&'a String> {
        let apart = |member: &Member| {
            let row = member.row.as_ref();
            self.options.address.is_empty() || row.is_some_and(|row| row.address.is_empty())
        };
        let alive = |name: &String| self.watches.left(name) != Some(Duration::ZERO);
        let own = members.get_key_value(&self.row_name());
        let own = own.filter(|(_, row)| !row.in_state(NodeState::Gone) && !self.wrote(row));
        let mut others = self.others(members).chain(own);
        others.find(|(name, member)| apart(member) && alive(name)).map(|(name, _)| name)
    }

    /// Sets the time of the next round: soon while shards are still to be opened or handed over,
    /// and no later than the first possible expiry of another node.
    fn rest(&mut self, members: &Members, shares: &Shares<'_>) {
        let name = self.row_name();
        let settled = !self.leaving
            && shares.iter().all(|(shard, node)| *node != name || self.holdings.open(*shard));
        self.settled |= settled;
        let pause = match (self.curious, settled) {
            (true, _) => Duration::ZERO,
            (false, true) => self.options.watch_interval(),
            (false, false) => self.options.retry_pause(),
        };
        let death = self.others(members).filter_map(|(name, _)| self.watches.left(name));
        let pause = death.min().map_or(pause, |left| pause.min(left));
        let renewal_at = self.asked_at + self.options.renewal_interval();
        self.round_at = renewal_at.min(self.seen_at + pause);
    }
}

fn shares(members: &Members) -> Shares<'_> {
    let listed: BTreeMap<&str, &BTreeSet<ShardId>> = members
        .iter()
        .filter(|(_, member)| member.in_state(NodeState::Alive))
        .filter_map(|(name, member)| Some((name.as_str(), &member.row.as_ref()?.shards)))
        .collect();
    share(&listed)
}

fn nodes(members: &Members) -> BTreeSet<String> {
    let present = members.values().filter(|member| !member.in_state(NodeState::Gone));
    let addresses = present.filter_map(|member| Some(member.row.as_ref()?.address.clone()));
    addresses.filter(|address| !address.is_empty()).collect()
}

fn addresses(members: &Members) -> BTreeMap<ShardId, &str> {
    let mut addresses = BTreeMap::new();
    for row in members.values().filter_map(|member| member.row.as_ref()) {
        for shard in &row.shards {
            addresses.entry(*shard).or_insert(row.address.as_str());
        }
    }
    addresses
}
