//! A node's row in the registry, as bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | format, 2 |
//! | 1 | state: 1 alive, 2 leaving, 3 gone |
//! | 2..10 | incarnation, big endian |
//! | 10..18 | counter, big endian |
//! | 18..26 | shards it holds, big endian, shard 0 is the lowest bit |
//! | 26..34 | length of its lease in nanoseconds, big endian |
//! | 34.. | address, UTF-8 |
//!
//! Format 1 has no lease: the address begins at 26. Older versions write it, and a row of that
//! format keeps it when its node is expelled.
//!
//! A node whose row has an unknown format may hold every shard: a reader opens nothing that could
//! be open there.

use std::{collections::BTreeSet, time::Duration};

use abide_core::ids::ShardId;
use bytes::Bytes;

const FORMAT: u8 = 2;
const FORMAT_WITHOUT_LEASE: u8 = 1;

/// A node's row in the registry, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub state: NodeState,
    /// The process of the node that wrote the row.
    pub incarnation: u64,
    /// Number of the process's attempt to write the row.
    pub counter: u64,
    /// The shards that the node serves, is about to serve, or has not yet released.
    pub shards: BTreeSet<ShardId>,
    /// How long the node must be silent before others may take its shards; none in format 1.
    pub lease: Option<Duration>,
    /// Address at which other nodes reach it; may be empty.
    pub address: String,
}

/// Whether a node takes part in sharing the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node serves its share.
    Alive,
    /// The node releases its shards and takes no more.
    Leaving,
    /// The node left or was expelled, and holds nothing.
    Gone,
}

/// Why a row cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeRowError {
    /// A newer version wrote the row.
    #[error("node row has format {0}, which a newer version wrote")]
    Format(u8),
    /// The bytes are not a valid row.
    #[error("node row is damaged")]
    Damaged,
}

impl NodeRow {
    /// Encodes the row as bytes.
    pub fn encode(&self) -> Bytes {
        let shards = self.shards.iter().fold(0_u64, |bits, shard| bits | 1 << shard.number());
        let format = if self.lease.is_some() { FORMAT } else { FORMAT_WITHOUT_LEASE };
        let mut bytes = vec![format, self.state.number()];
        bytes.extend(self.incarnation.to_be_bytes());
        bytes.extend(self.counter.to_be_bytes());
        bytes.extend(shards.to_be_bytes());
        bytes.extend(self.lease.into_iter().flat_map(|lease| nanoseconds(lease).to_be_bytes()));
        bytes.extend(self.address.as_bytes());
        bytes.into()
    }

    /// Decodes a row from bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, NodeRowError> {
        let (format, rest) = bytes.split_first().ok_or(NodeRowError::Damaged)?;
        let with_lease = match *format {
            FORMAT => true,
            FORMAT_WITHOUT_LEASE => false,
            unknown => return Err(NodeRowError::Format(unknown)),
        };
        Self::decode_rest(rest, with_lease).ok_or(NodeRowError::Damaged)
    }

    fn decode_rest(bytes: &[u8], with_lease: bool) -> Option<Self> {
        let (state, bytes) = bytes.split_first()?;
        let (incarnation, bytes) = bytes.split_first_chunk()?;
        let (counter, bytes) = bytes.split_first_chunk()?;
        let (shards, bytes) = bytes.split_first_chunk()?;
        let (lease, address) = if with_lease {
            let (lease, address) = bytes.split_first_chunk()?;
            (Some(Duration::from_nanos(u64::from_be_bytes(*lease))), address)
        } else {
            (None, bytes)
        };
        let shards = u64::from_be_bytes(*shards);
        Some(Self {
            state: NodeState::from_number(*state)?,
            incarnation: u64::from_be_bytes(*incarnation),
            counter: u64::from_be_bytes(*counter),
            shards: ShardId::all().filter(|shard| shards >> shard.number() & 1 == 1).collect(),
            lease,
            address: str::from_utf8(address).ok()?.to_owned(),
        })
    }
}

fn nanoseconds(lease: Duration) -> u64 {
    u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX)
}

impl NodeState {
    const fn number(self) -> u8 {
        match self {
            Self::Alive => 1,
            Self::Leaving => 2,
            Self::Gone => 3,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Alive),
            2 => Some(Self::Leaving),
            3 => Some(Self::Gone),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> NodeRow {
        NodeRow {
            state: NodeState::Leaving,
            incarnation: 258,
            counter: 3,
            shards: [0, 9, 63].into_iter().filter_map(ShardId::new).collect(),
            lease: Some(Duration::from_nanos(772)),
            address: "a:7233".into(),
        }
    }

    #[test]
    fn the_bytes_are_pinned() {
        let head = [2, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        let (shards, lease) = ([0x80, 0, 0, 0, 0, 0, 2, 1], [0, 0, 0, 0, 0, 0, 3, 4]);
        let expected = [&head[..], &shards, &lease, b"a:7233"].concat();
        assert_eq!(row().encode(), expected);
        assert_eq!(NodeRow::decode(&expected), Ok(row()));
    }

    #[test]
    fn the_bytes_of_a_row_without_a_lease_are_pinned() {
        let head = [1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        let expected = [&head[..], &[0x80, 0, 0, 0, 0, 0, 2, 1], b"a:7233"].concat();
        let row = NodeRow { lease: None, ..row() };
        assert_eq!(NodeRow::decode(&expected), Ok(row.clone()));
        assert_eq!(row.encode(), expected);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(NodeRow::decode(&[3, 1]), Err(NodeRowError::Format(3)));
        let bytes = row().encode();
        for length in 0..34 {
            assert_eq!(NodeRow::decode(&bytes[..length]), Err(NodeRowError::Damaged), "{length}");
        }
        let mut unknown_state = bytes.to_vec();
        unknown_state[1] = 4;
        assert_eq!(NodeRow::decode(&unknown_state), Err(NodeRowError::Damaged));
    }
}
