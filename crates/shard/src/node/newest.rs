//! Which link of another node is its newest. A node opens a new link when its old one seems broken; this
//! end may notice the end of the old one later, and may still find messages on it. They are stale,
//! because the node sends again on the new link what may be lost.

use std::collections::BTreeMap;

/// The newest link of each node that is connected to this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestLinks {
    begun: u64,
    links: BTreeMap<String, u64>,
}

impl NewestLinks {
    /// A node has opened a link, which replaces its earlier one: returns the number of the link, by
    /// which this end knows it. Follow it with [`NodeInput::Called`](super::NodeInput::Called).
    pub fn begin(&mut self, node: &str) -> u64 {
        self.begun += 1;
        self.links.insert(node.to_owned(), self.begun);
        self.begun
    }

    /// Messages on this link count: the node has opened no newer one.
    pub fn is_newest(&self, node: &str, number: u64) -> bool {
        self.links.get(node) == Some(&number)
    }

    /// A link has ended. Returns whether the node is disconnected now, which is to be followed by
    /// [`NodeInput::LinkClosed`](super::NodeInput::LinkClosed); the end of an older link changes nothing.
    pub fn end(&mut self, node: &str, number: u64) -> bool {
        let newest = self.is_newest(node, number);
        if newest {
            self.links.remove(node);
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_counts_until_it_ends_or_is_replaced() {
        let mut links = NewestLinks::default();
        let (first, other) = (links.begin("a"), links.begin("b"));
        assert!(links.is_newest("a", first) && links.is_newest("b", other));
        assert!(!links.is_newest("a", other) && !links.is_newest("c", first));
        let second = links.begin("a");
        assert!(links.is_newest("a", second) && !links.is_newest("a", first));
        assert!(!links.end("a", first), "the end of the old one comes late");
        assert!(links.is_newest("a", second));
        assert!(links.end("a", second) && !links.end("a", second));
        assert!(links.is_newest("b", other));
    }
}
