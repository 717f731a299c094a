//! The rules of leases, one example each.

use std::{collections::BTreeSet, time::Duration};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use super::cluster::{Cluster, LEASE, Registry, options};
use crate::lease::{Lease, LeaseMessage, LeaseOptions, LeaseOutput, NodeRow, NodeState};

/// What the lease asks for, but for what it tells other nodes.
fn drain(lease: &mut Lease) -> Vec<LeaseOutput> {
    std::iter::from_fn(|| lease.poll()).filter(|output| *output != LeaseOutput::Tell).collect()
}

fn row(cluster: &Cluster, node: &str) -> NodeRow {
    NodeRow::decode(&cluster.registry.0[&format!("node/{node}")].value).unwrap()
}

#[test]
fn a_node_that_is_alone_serves_everything_and_asks_for_nothing() {
    let mut lease = Lease::alone(options("a", 1));
    lease.handle(Duration::ZERO, LeaseMessage::Tick);
    let expected: Vec<_> = ShardId::all().map(LeaseOutput::Open).collect();
    assert_eq!(drain(&mut lease), expected);
    assert_eq!(lease.wake_at(), None);
    assert!(lease.may_answer(Duration::from_secs(1_000_000)));
    lease.handle(Duration::ZERO, LeaseMessage::Leave);
    assert_eq!(drain(&mut lease).len(), 64);
    for shard in ShardId::all() {
        assert_eq!(drain(&mut lease), []);
        lease.handle(Duration::ZERO, LeaseMessage::ShardReleased(shard));
    }
    assert_eq!(drain(&mut lease), [LeaseOutput::Left]);
}

#[test]
fn a_shard_that_a_node_alone_lost_is_opened_again_after_a_pause() {
    let mut lease = Lease::alone(options("a", 1));
    lease.handle(Duration::ZERO, LeaseMessage::Tick);
    drain(&mut lease);
    let shard = ShardId::new(7).unwrap();
    lease.handle(Duration::ZERO, LeaseMessage::ShardReleased(shard));
    assert_eq!(drain(&mut lease), []);
    let pause = lease.wake_at().unwrap();
    assert_eq!(pause, LEASE / 20);
    lease.handle(pause, LeaseMessage::Tick);
    assert_eq!(drain(&mut lease), [LeaseOutput::Open(shard)]);
}

#[test]
fn a_single_member_lists_first_and_opens_then() {
    let mut lease = Lease::new(options("a", 1));
    let mut cluster = Cluster::default();
    let mut handle = |message| {
        lease.handle(Duration::ZERO, message);
        drain(&mut lease)
    };
    assert_eq!(handle(LeaseMessage::Tick), [LeaseOutput::ReadRegistry]);
    let mut outputs = handle(LeaseMessage::Registry(vec![]));
    let mut listed = Vec::new();
    while let [LeaseOutput::PutRegistry(row)] = &*outputs {
        listed.push(NodeRow::decode(&row.value).unwrap().shards.len());
        assert!(cluster.registry.put(row.clone()));
        assert_eq!(handle(LeaseMessage::Written(true)), [LeaseOutput::ReadRegistry]);
        outputs = handle(LeaseMessage::Registry(cluster.registry.rows()));
    }
    assert_eq!(listed, [0, 64]);
    assert_eq!(outputs, ShardId::all().map(LeaseOutput::Open).collect::<Vec<_>>());
    assert_eq!(*lease.nodes(), BTreeSet::from(["a:7233".to_owned()]));
    assert!(lease.settled());
    lease.handle(Duration::from_millis(1), LeaseMessage::Tick);
    assert_eq!(drain(&mut lease), [], "the next round comes at its time");
}

/// A read that shows the listing may have begun before it was written, and missed another node's.
#[test]
fn a_shard_whose_listing_has_an_unknown_outcome_is_not_opened_by_the_read_that_finds_out() {
    for landed in [false, true] {
        let mut lease = Lease::new(options("a", 1));
        let mut registry = Registry::default();
        let handle = |lease: &mut Lease, message| {
            lease.handle(lease.wake_at().unwrap_or_default(), message);
            drain(lease)
        };
        handle(&mut lease, LeaseMessage::Tick);
        let outputs = handle(&mut lease, LeaseMessage::Registry(vec![]));
        let [LeaseOutput::PutRegistry(joining)] = &*outputs else { panic!("{outputs:?}") };
        registry.put(joining.clone());
        handle(&mut lease, LeaseMessage::Written(true));
        let outputs = handle(&mut lease, LeaseMessage::Registry(registry.rows()));
        let [LeaseOutput::PutRegistry(listing)] = &*outputs else { panic!("{outputs:?}") };
        if landed {
            registry.put(listing.clone());
        }
        handle(&mut lease, LeaseMessage::WriteFailed);
        assert_eq!(handle(&mut lease, LeaseMessage::Tick), [LeaseOutput::ReadRegistry]);
        let outputs = handle(&mut lease, LeaseMessage::Registry(registry.rows()));
        let [LeaseOutput::PutRegistry(again)] = &*outputs else { panic!("{outputs:?}") };
        assert!(registry.put(again.clone()));
        handle(&mut lease, LeaseMessage::Written(true));
        let outputs = handle(&mut lease, LeaseMessage::Registry(registry.rows()));
        assert_eq!(outputs, ShardId::all().map(LeaseOutput::Open).collect::<Vec<_>>());
    }
}

#[test]
fn two_nodes_share() {
    let cluster = Cluster::of(&["a", "b"]);
    assert_eq!(cluster.served(), [32, 32]);
    let shards: BTreeSet<_> =
        [row(&cluster, "a").shards, row(&cluster, "b").shards].into_iter().flatten().collect();
    assert_eq!(shards.len(), 64);
}

#[test]
fn a_node_that_joins_gets_its_share_and_no_more_moves() {
    let mut cluster = Cluster::of(&["b"]);
    assert_eq!(cluster.served(), [64]);
    cluster.start("a", 1);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [32, 32]);
    cluster.start("c", 1);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [22, 21, 21]);
    let opened: Vec<_> = cluster.nodes.values().map(|node| node.opened).collect();
    assert_eq!(opened, [32, 64, 21]);
}

#[test]
fn a_shard_moves_only_when_its_commits_are_done() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.node("a").holding = true;
    cluster.start("b", 1);
    cluster.run(3 * LEASE);
    assert_eq!(cluster.served(), [32, 0]);
    let settled = |cluster: &Cluster| {
        cluster.nodes.values().map(|node| node.lease.settled()).collect::<Vec<_>>()
    };
    assert_eq!(settled(&cluster), [true, false], "one waits for its share");
    let closing = std::mem::take(&mut cluster.node("a").closing);
    assert_eq!(closing.len(), 32);
    for shard in closing {
        cluster.tell("a", LeaseMessage::ShardReleased(shard));
    }
    cluster.run(LEASE / 10);
    assert_eq!(cluster.served(), [32, 32]);
    cluster.run(LEASE);
    assert_eq!(settled(&cluster), [true, true]);
    let all = ["a:7233", "b:7233"].map(str::to_owned).into();
    assert_eq!(*cluster.nodes["b"].lease.nodes(), all);
}

#[test]
fn the_shards_of_a_killed_node_are_taken_after_a_lease_and_not_before() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.nodes.remove("b");
    cluster.run(LEASE * 4 / 5);
    assert_eq!(cluster.served(), [32]);
    cluster.run(LEASE * 3 / 5);
    assert_eq!(cluster.served(), [64]);
    assert_eq!(row(&cluster, "b").state, NodeState::Gone);
}

/// Cut off from the store, a node trusts its own lease: who has a shorter one must not take from it.
#[test]
fn who_watches_a_node_with_a_longer_lease_waits_for_that_one() {
    let mut cluster = Cluster::of(&["long"]);
    let short = LeaseOptions { lease: LEASE / 5, ..options("short", 1) };
    cluster.start_with("short", short);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [32, 32]);
    let other = [("node/long".to_owned(), LEASE)].into();
    assert_eq!(*cluster.node("short").lease.other_leases(), other);
    cluster.node("long").cut_off = true;
    cluster.run(LEASE * 3 / 10);
    assert_eq!(cluster.node("short").lease.silent().count(), 0);
    cluster.run(LEASE * 3 / 10);
    assert_eq!(cluster.node("short").lease.silent().count(), 1);
    assert_eq!(cluster.served(), [32, 32], "it still answers, and nobody else does");
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [0, 64]);
    assert_eq!(row(&cluster, "long").lease, Some(LEASE), "it is kept for who may still watch it");
}

/// Whoever is alive sees a renewal a tenth of a lease late at most, and looks again when it is time.
#[test]
fn a_death_is_noticed_within_a_tenth_of_a_lease_after_the_lease() {
    let mut cluster = Cluster::of(&["a", "b", "c"]);
    cluster.nodes.remove("b");
    cluster.nodes.remove("c");
    cluster.run(LEASE + LEASE / 10);
    assert_eq!(cluster.served(), [64], "and both rows are marked at once");
}

#[test]
fn a_killed_node_that_returns_under_its_name_waits_for_its_own_lease() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.start("a", 2);
    cluster.run(LEASE * 4 / 5);
    assert_eq!(cluster.served(), [0]);
    cluster.run(LEASE * 2 / 5);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn a_second_process_of_the_same_name_never_joins() {
    let mut cluster = Cluster::of(&["a"]);
    let mut twin = Lease::new(options("a", 2));
    for _ in 0..100 {
        cluster.run(LEASE / 10);
        let monotonic = cluster.node("a").clock;
        twin.handle(monotonic, LeaseMessage::Tick);
        while let Some(output) = twin.poll() {
            assert_eq!(output, LeaseOutput::ReadRegistry);
            twin.handle(monotonic, LeaseMessage::Registry(cluster.registry.rows()));
            assert!(twin.name_taken());
        }
    }
    assert_eq!(cluster.served(), [64]);
}

/// The options of a node that keeps to itself.
fn hermit(node: &str) -> LeaseOptions {
    LeaseOptions { address: String::new(), ..options(node, 1) }
}

#[test]
fn a_node_that_keeps_to_itself_and_any_other_keep_each_other_out() {
    let (social, hermit) = (|node: &str| options(node, 1), hermit);
    let pairs =
        [(social("a"), hermit("b")), (hermit("a"), social("b")), (hermit("a"), hermit("b"))];
    for (first, second) in pairs {
        let mut cluster = Cluster::default();
        cluster.start_with("a", first);
        cluster.run(LEASE);
        assert_eq!(cluster.served(), [64]);
        cluster.start_with("b", second);
        assert_eq!(cluster.node("b").lease.stranger(), None, "it may be dead");
        cluster.run(3 * LEASE);
        assert_eq!(cluster.served(), [64, 0]);
        assert_eq!(cluster.node("b").lease.stranger(), Some("node/a"));
        cluster.nodes.remove("a");
        cluster.run(2 * LEASE);
        assert_eq!(cluster.served(), [64], "the other has died");
        assert_eq!(cluster.node("b").lease.stranger(), None);
    }
}

/// Two containers that both listen on 0.0.0.0:7233 have the same name.
#[test]
fn a_second_node_of_the_same_name_that_keeps_to_itself_is_told_of_the_first() {
    let social = |incarnation| options("a", incarnation);
    let hermit = |incarnation| LeaseOptions { incarnation, ..hermit("a") };
    for (first, second) in [(hermit(1), hermit(2)), (hermit(1), social(2)), (social(1), hermit(2))]
    {
        let mut cluster = Cluster::default();
        cluster.start_with("a", first);
        cluster.run(LEASE);
        let mut twin = Lease::new(second);
        let look = |cluster: &mut Cluster, twin: &mut Lease| {
            let monotonic = cluster.node("a").clock;
            twin.handle(monotonic, LeaseMessage::Tick);
            while let Some(output) = twin.poll() {
                assert_eq!(output, LeaseOutput::ReadRegistry, "it does not join");
                twin.handle(monotonic, LeaseMessage::Registry(cluster.registry.rows()));
            }
        };
        look(&mut cluster, &mut twin);
        assert_eq!(twin.stranger(), None, "it may be dead");
        assert!(twin.name_taken());
        for _ in 0..10 {
            cluster.run(LEASE / 10);
            look(&mut cluster, &mut twin);
        }
        assert_eq!(twin.stranger(), Some("node/a"));
        assert_eq!(cluster.served(), [64]);
    }
}

#[test]
fn of_two_nodes_that_keep_to_themselves_and_join_at_one_time_one_stays() {
    let mut cluster = Cluster::default();
    let mut late = Lease::new(hermit("b"));
    late.handle(Duration::ZERO, LeaseMessage::Tick);
    assert_eq!(drain(&mut late), [LeaseOutput::ReadRegistry]);
    late.handle(Duration::ZERO, LeaseMessage::Registry(cluster.registry.rows()));
    let [LeaseOutput::PutRegistry(row)] = &drain(&mut late)[..] else { panic!("it joins") };
    cluster.start_with("a", hermit("a"));
    assert!(cluster.registry.put(row.clone()));
    late.handle(Duration::ZERO, LeaseMessage::Written(true));
    late.handle(Duration::ZERO, LeaseMessage::Registry(cluster.registry.rows()));
    assert!(!late.may_answer(Duration::ZERO), "it has given way");
    cluster.run(3 * LEASE);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn a_paused_node_answers_nothing_and_finds_its_renewal_refused() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("b").paused = true;
    cluster.run(2 * LEASE);
    assert_eq!(cluster.served(), [64, 0]);
    let zombie = cluster.node("b");
    let clock = zombie.clock;
    assert!(!zombie.lease.may_answer(clock));
    zombie.lease.handle(clock, LeaseMessage::Tick);
    let outputs = drain(&mut zombie.lease);
    let closes = outputs.iter().filter(|output| matches!(output, LeaseOutput::Close(_))).count();
    assert_eq!(closes, 32);
    let [.., LeaseOutput::PutRegistry(renewal), LeaseOutput::Lost] = &*outputs else {
        panic!("{outputs:?}");
    };
    assert!(!cluster.registry.put(renewal.clone()));
    let zombie = cluster.node("b");
    zombie.lease.handle(clock, LeaseMessage::Tick);
    assert_eq!(drain(&mut zombie.lease), [], "the loss is told once");
}

#[test]
fn a_paused_node_returns_as_a_new_member() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("b").paused = true;
    cluster.run(2 * LEASE);
    cluster.node("b").paused = false;
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [32, 32]);
}

#[test]
fn an_expelled_node_returns_only_when_its_shards_are_released() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("b").paused = true;
    cluster.node("b").holding = true;
    cluster.run(2 * LEASE);
    cluster.node("b").paused = false;
    cluster.run(LEASE);
    assert_eq!((cluster.served(), row(&cluster, "b").state), (vec![64, 0], NodeState::Gone));
    assert_eq!(cluster.node("b").lease.wake_at(), None);
    for shard in std::mem::take(&mut cluster.node("b").closing) {
        cluster.tell("b", LeaseMessage::ShardReleased(shard));
    }
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [32, 32]);
}

/// Somebody may wait for an answer of a shard whose commits take long.
#[test]
fn a_node_that_only_closes_shards_still_looks_when_its_lease_is_over() {
    let mut cluster = Cluster::of(&["a"]);
    let node = cluster.node("a");
    node.lease.handle(node.clock, LeaseMessage::Leave);
    let asked = drain(&mut node.lease).pop();
    assert!(matches!(asked, Some(LeaseOutput::PutRegistry(_))), "{asked:?}");
    let until = node.lease.good_until().unwrap();
    assert_eq!(node.lease.wake_at(), Some(until), "the store may never answer");
    node.lease.handle(until, LeaseMessage::Tick);
    assert_eq!(node.lease.wake_at(), None);
}

#[test]
fn a_renewal_counts_from_when_it_was_asked_for() {
    let mut lease = Lease::new(options("a", 1));
    lease.handle(Duration::ZERO, LeaseMessage::Tick);
    lease.handle(Duration::from_secs(1), LeaseMessage::Registry(vec![]));
    lease.handle(Duration::from_secs(8), LeaseMessage::Written(true));
    assert!(lease.may_answer(Duration::from_millis(8_999)));
    assert!(!lease.may_answer(Duration::from_secs(9)));
}

#[test]
fn a_node_that_cannot_renew_closes_its_shards_itself() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.node("a").cut_off = true;
    cluster.run(LEASE / 2);
    assert_eq!(cluster.served(), [64]);
    cluster.run(LEASE / 2);
    assert!(!ShardId::all().any(|shard| cluster.nodes["a"].lease.serves(shard)));
    cluster.node("a").cut_off = false;
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn a_renewal_of_unknown_outcome_is_found_by_reading() {
    let mut cluster = Cluster::of(&["a"]);
    let (registry, node) = (&mut cluster.registry, cluster.nodes.get_mut("a").unwrap());
    let (renewal_at, renewal) = loop {
        let at = node.lease.wake_at().unwrap();
        node.lease.handle(at, LeaseMessage::Tick);
        match &*drain(&mut node.lease) {
            [LeaseOutput::ReadRegistry] => {
                node.lease.handle(at, LeaseMessage::Registry(registry.rows()));
            }
            [LeaseOutput::PutRegistry(renewal)] => break (at, renewal.clone()),
            outputs => panic!("{outputs:?}"),
        }
    };
    assert!(registry.put(renewal));
    node.lease.handle(renewal_at, LeaseMessage::WriteFailed);
    node.clock = node.lease.wake_at().unwrap();
    cluster.tell("a", LeaseMessage::Tick);
    assert!(cluster.nodes["a"].lease.may_answer(renewal_at + LEASE * 3 / 4));
    cluster.run(3 * LEASE);
    assert_eq!((cluster.served(), cluster.node("a").opened), (vec![64], 64));
}

#[test]
fn a_node_that_leaves_hands_over_at_once() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.tell("b", LeaseMessage::Leave);
    assert_eq!((cluster.served(), row(&cluster, "b").shards.len()), (vec![32, 0], 0));
    assert!(!cluster.node("b").left, "it stays until its shards are served again");
    cluster.tell("a", LeaseMessage::Look);
    assert_eq!(cluster.served(), [64, 0]);
    cluster.tell("b", LeaseMessage::Look);
    assert!(cluster.node("b").left);
    assert_eq!(row(&cluster, "b").state, NodeState::Gone);
    assert_eq!(cluster.node("b").lease.wake_at(), None);
}

#[test]
fn a_node_that_leaves_does_not_wait_long_for_others() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("a").paused = true;
    cluster.tell("b", LeaseMessage::Leave);
    cluster.run(LEASE / 4);
    assert!(!cluster.node("b").left);
    cluster.run(LEASE / 2);
    assert!(cluster.node("b").left);
}

#[test]
fn a_node_that_leaves_without_a_store_gives_up_with_its_lease() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("b").cut_off = true;
    cluster.tell("b", LeaseMessage::Leave);
    cluster.run(LEASE / 2);
    assert!(!cluster.node("b").left);
    cluster.run(LEASE / 2);
    assert!(cluster.node("b").left);
    assert_eq!(cluster.node("b").lease.wake_at(), None);
}

/// Each step is taken when the other node says that there is something to see, not when it is time.
#[test]
fn a_shard_moves_as_fast_as_nodes_tell_each_other() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.start("b", 1);
    assert_eq!(cluster.served(), [64, 0]);
    cluster.tell("a", LeaseMessage::Look);
    assert_eq!(cluster.served(), [32, 0]);
    cluster.tell("b", LeaseMessage::Look);
    assert_eq!(cluster.served(), [32, 32]);
}

/// A look that was asked for while another one was in flight is not forgotten.
#[test]
fn a_read_that_began_too_early_is_repeated() {
    let mut lease = Lease::new(options("a", 1));
    let mut registry = Registry::default();
    lease.handle(Duration::ZERO, LeaseMessage::Tick);
    lease.handle(Duration::ZERO, LeaseMessage::Registry(vec![]));
    loop {
        let outputs = drain(&mut lease);
        let answer = match outputs.last() {
            Some(LeaseOutput::PutRegistry(row)) => LeaseMessage::Written(registry.put(row.clone())),
            Some(LeaseOutput::ReadRegistry) => LeaseMessage::Registry(registry.rows()),
            _ => break,
        };
        lease.handle(Duration::ZERO, answer);
    }
    let look_at = lease.wake_at().unwrap();
    lease.handle(look_at, LeaseMessage::Tick);
    assert_eq!(drain(&mut lease), [LeaseOutput::ReadRegistry]);
    lease.handle(look_at, LeaseMessage::Look);
    assert_eq!(drain(&mut lease), []);
    lease.handle(look_at, LeaseMessage::Registry(registry.rows()));
    assert_eq!(drain(&mut lease), [LeaseOutput::ReadRegistry]);
}

#[test]
fn a_leaving_node_takes_nothing_and_keeps_its_lease_while_shards_close() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("b").holding = true;
    cluster.tell("b", LeaseMessage::Leave);
    cluster.run(3 * LEASE);
    assert_eq!(cluster.served(), [32, 0]);
    assert_eq!(row(&cluster, "b").state, NodeState::Leaving);
    for shard in std::mem::take(&mut cluster.node("b").closing) {
        cluster.tell("b", LeaseMessage::ShardReleased(shard));
    }
    cluster.run(LEASE / 4);
    assert!(cluster.node("b").left);
    assert_eq!(cluster.served(), [64, 0]);
}

#[test]
fn a_node_that_never_joined_leaves_at_once() {
    let mut lease = Lease::new(options("a", 1));
    lease.handle(Duration::ZERO, LeaseMessage::Leave);
    assert_eq!(drain(&mut lease), [LeaseOutput::Left]);
}

#[test]
fn a_shard_that_a_member_lost_is_opened_again() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.tell("a", LeaseMessage::ShardReleased(ShardId::new(7).unwrap()));
    assert_eq!(cluster.served(), [63]);
    cluster.run(LEASE / 10);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn an_observer_whose_clock_stands_still_expels_nobody() {
    let mut cluster = Cluster::of(&["a", "b"]);
    cluster.node("a").frozen = true;
    cluster.nodes.remove("b");
    cluster.run(10 * LEASE);
    assert_eq!(row(&cluster, "b").state, NodeState::Alive);
}

#[test]
fn an_observer_whose_clock_leaps_expels_nobody_who_is_alive() {
    let mut cluster = Cluster::of(&["a", "b"]);
    for _ in 0..10 {
        cluster.node("a").clock += 100 * LEASE;
        cluster.run(LEASE);
        assert_eq!(row(&cluster, "b").state, NodeState::Alive);
        assert_eq!(cluster.served(), [32, 32]);
    }
}

#[test]
fn an_owner_whose_clock_leaps_ahead_stops_answering() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.node("a").clock += LEASE;
    assert_eq!(cluster.served(), [0]);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn an_owner_whose_clock_goes_back_stops_answering_until_it_has_renewed() {
    let mut cluster = Cluster::of(&["a"]);
    cluster.run(10 * LEASE);
    cluster.node("a").clock -= 5 * LEASE;
    assert_eq!(cluster.served(), [0]);
    cluster.tell("a", LeaseMessage::Tick);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn a_row_of_a_newer_version_may_hold_everything_until_it_expires() {
    let mut cluster = Cluster::default();
    let unknown = RegistryRow { name: "node/z".into(), version: 1, value: vec![9, 9].into() };
    cluster.registry.put(unknown);
    cluster.start("a", 1);
    cluster.run(LEASE * 4 / 5);
    assert_eq!(cluster.served(), [0]);
    cluster.run(LEASE);
    assert_eq!(cluster.served(), [64]);
}

#[test]
fn everybody_knows_where_a_shard_is() {
    let cluster = Cluster::of(&["a", "b"]);
    for shard in ShardId::all() {
        let owner = if cluster.nodes["a"].serving(shard) { "a:7233" } else { "b:7233" };
        for node in cluster.nodes.values() {
            let address = node.lease.addresses().get(&shard).map(String::as_str);
            assert_eq!(address, Some(owner));
        }
    }
}
