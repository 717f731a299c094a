//! The fair share: which node should own each shard. It is a function of the rows of the live nodes
//! alone, so all nodes that read the same rows agree.
//!
//! Each of n nodes gets 64 / n shards; the first ones by name get one more if there is a remainder.
//! A node keeps what it lists, lowest numbers first, up to its share; the remaining shards fill up
//! the other nodes in order. So a join or a leave moves only what has to move.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::ids::ShardId;

/// The node that should own each shard, from what each live node lists.
pub(super) fn share<'a>(
    listed: &BTreeMap<&'a str, &BTreeSet<ShardId>>,
) -> BTreeMap<ShardId, &'a str> {
    let mut shares = BTreeMap::new();
    let mut room = dues(listed.keys().copied());
    for (node, room) in &mut room {
        for shard in listed.get(node).into_iter().copied().flatten() {
            if *room > 0 && !shares.contains_key(shard) {
                shares.insert(*shard, *node);
                *room -= 1;
            }
        }
    }
    let mut places = room.into_iter().flat_map(|(node, room)| (0..room).map(move |_| node));
    for shard in ShardId::all() {
        if !shares.contains_key(&shard)
            && let Some(node) = places.next()
        {
            shares.insert(shard, node);
        }
    }
    shares
}

/// Number of shards that each node gets, in order of name.
fn dues<'a>(nodes: impl ExactSizeIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let count = nodes.len().max(1);
    let shards = usize::from(ShardId::COUNT);
    let due = |index| shards / count + usize::from(index < shards % count);
    nodes.enumerate().map(|(index, node)| (node, due(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Listed = BTreeMap<&'static str, BTreeSet<ShardId>>;

    fn run(listed: &Listed) -> Listed {
        let mut result: Listed = listed.keys().map(|node| (*node, BTreeSet::new())).collect();
        for (shard, node) in share(&listed.iter().map(|(node, shards)| (*node, shards)).collect()) {
            result.get_mut(node).unwrap().insert(shard);
        }
        result
    }

    fn join(mut listed: Listed, node: &'static str) -> Listed {
        listed.insert(node, BTreeSet::new());
        listed
    }

    fn kept(before: &Listed, after: &Listed) -> usize {
        let common = |(node, shards): (&&str, &BTreeSet<ShardId>)| {
            before.get(node).map_or(0, |old| old.intersection(shards).count())
        };
        after.iter().map(common).sum()
    }

    fn counts(listed: &Listed) -> Vec<usize> {
        listed.values().map(BTreeSet::len).collect()
    }

    #[test]
    fn nobody_gets_nothing() {
        assert!(share(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn joining_nodes_get_their_share_and_little_moves() {
        let one = run(&join(Listed::new(), "m"));
        assert_eq!(counts(&one), [64]);
        let two = run(&join(one.clone(), "c"));
        assert_eq!((counts(&two), kept(&one, &two)), (vec![32, 32], 32));
        let three = run(&join(two.clone(), "x"));
        assert_eq!((counts(&three), kept(&two, &three)), (vec![22, 21, 21], 43));
        assert_eq!(run(&three), three);
    }

    #[test]
    fn a_lost_node_moves_only_its_own_shards() {
        let three = run(&join(join(join(Listed::new(), "a"), "b"), "c"));
        let mut two = three.clone();
        two.remove("b");
        let after = run(&two);
        assert_eq!((counts(&after), kept(&two, &after)), (vec![32, 32], 43));
    }

    #[test]
    fn more_nodes_than_shards_leave_some_idle() {
        let names: Vec<&'static str> =
            (0..70).map(|number| &*format!("{number:02}").leak()).collect();
        let listed = run(&names.into_iter().fold(Listed::new(), join));
        assert_eq!(counts(&listed).into_iter().filter(|count| *count == 1).count(), 64);
    }

    #[test]
    fn a_move_that_is_half_done_has_the_same_goal() {
        let goal = run(&join(join(run(&join(Listed::new(), "a")), "b"), "c"));
        for released in 0..42 {
            let mut half = goal.clone();
            let moving: Vec<_> = ShardId::all().skip(22).collect();
            for (index, shard) in moving.into_iter().enumerate() {
                if index >= released {
                    half.values_mut().for_each(|shards| _ = shards.remove(&shard));
                    half.get_mut("a").unwrap().insert(shard);
                }
            }
            assert_eq!(run(&half), goal, "after {released}");
        }
    }
}
