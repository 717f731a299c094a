//! Identifiers. Every id is its own type, so that a timer id cannot be passed for a wait id.
//! Nothing here generates random ids: they come in as arguments or are derived by a pinned hash.

use std::{borrow::Cow, fmt, hash::Hasher, sync::Arc};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;
use uuid::Uuid;

use crate::time::Timestamp;

/// Number of an event in its run's history; the first is 1.
pub type EventNumber = u64;

macro_rules! text_id {
    (@from $name:ident, $text:ty) => {
        impl From<$text> for $name {
            fn from(text: $text) -> Self {
                Self(text.into())
            }
        }
    };
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        text_id!(@from $name, Arc<str>);
        text_id!(@from $name, Box<str>);
        text_id!(@from $name, String);
        text_id!(@from $name, &str);
        text_id!(@from $name, Cow<'_, str>);

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self(text.as_str().into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

text_id! {
    /// A namespace; workflow ids are unique within it.
    NamespaceId
}
text_id! {
    /// A workflow's id, chosen by its user and stable across runs.
    WorkflowId
}
text_id! {
    /// An activity's id, chosen by workflow code, unique among the run's pending activities.
    ActivityId
}
text_id! {
    /// A timer's id, chosen by workflow code, unique among the run's open timers.
    TimerId
}
text_id! {
    /// A condition wait's id, chosen by workflow code, unique among the run's open waits.
    WaitId
}
text_id! {
    /// An update's id, chosen by its caller, unique within a workflow.
    UpdateId
}
text_id! {
    /// Identifies an activity across all its attempts and recorded retries.
    ExecutionId
}
text_id! {
    /// An idempotency key, scoped by operation.
    Key
}
text_id! {
    /// Identifies the code of a worker: by default a hash of its executable.
    BuildId
}
text_id! {
    /// Session of a worker, which may outlive a single stream.
    SessionId
}

/// One execution of a workflow. A UUIDv7 is ordered by time, so that index inserts append.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(Uuid);

impl RunId {
    /// Smallest id, for ranges.
    #[doc(hidden)]
    pub const MIN: Self = Self(Uuid::nil());

    /// Largest id, for ranges.
    #[doc(hidden)]
    pub const MAX: Self = Self(Uuid::max());

    /// Wraps an existing id.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// The id as 16 bytes.
    #[doc(hidden)]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Decodes an id; `None` unless there are exactly 16 bytes.
    #[doc(hidden)]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        Uuid::from_slice(bytes).ok().map(Self)
    }

    /// A UUIDv7 with the time `at` and the random part `entropy`.
    #[doc(hidden)]
    pub fn from_parts(at: Timestamp, entropy: u128) -> Self {
        let millis = u128::from(at.unix_millis()) & 0xffff_ffff_ffff;
        let random_a = (entropy >> 64) & 0xfff;
        let random_b = entropy & 0x3fff_ffff_ffff_ffff;
        let bits = millis << 80 | 0x7 << 76 | random_a << 64 | 0b10 << 62 | random_b;
        Self(Uuid::from_u128(bits))
    }

    /// Run id of the child that event `initiated` of run `parent` starts. It is derived, so that a
    /// repeated start of the same child is recognised as the same run.
    #[doc(hidden)]
    pub fn of_child(parent: RunId, initiated: EventNumber, at: Timestamp) -> Self {
        let half = |salt: u8| {
            let mut hasher = SipHasher24::new();
            hasher.write(parent.as_bytes());
            hasher.write(&initiated.to_be_bytes());
            hasher.write(&[salt]);
            hasher.finish()
        };
        Self::from_parts(at, u128::from(half(0)) << 64 | u128::from(half(1)))
    }

    /// Whether [`Self::of_child`] derives this id, for any time: so a request cannot pass off
    /// another run's id as its child's.
    #[doc(hidden)]
    pub fn is_child_of(&self, parent: RunId, initiated: EventNumber) -> bool {
        let millis = u64::try_from(self.0.as_u128() >> 80).unwrap_or_default();
        *self == Self::of_child(parent, initiated, Timestamp::from_unix_millis(millis))
    }

    /// Id of all attempts of the activity that event `scheduled` scheduled.
    #[doc(hidden)]
    pub fn execution_id(&self, scheduled: EventNumber) -> ExecutionId {
        format!("{self}:{scheduled}").into()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A workflow within its namespace; determines the slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkflowKey {
    pub namespace: NamespaceId,
    pub workflow: WorkflowId,
}

impl WorkflowKey {
    #[doc(hidden)]
    pub fn slot(&self) -> Slot {
        Slot::of(&self.namespace, &self.workflow)
    }
}

impl fmt::Display for WorkflowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.workflow)
    }
}

/// Hash bucket of workflow ids. All runs of one workflow share a slot, hence a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot(u16);

impl Slot {
    /// Number of slots; it never changes.
    pub const COUNT: u16 = 4096;

    /// SipHash-2-4 with a zero key over namespace, a zero byte and workflow id, modulo [`Self::COUNT`].
    pub fn of(namespace: &NamespaceId, workflow: &WorkflowId) -> Self {
        let mut hasher = SipHasher24::new();
        hasher.write(namespace.as_str().as_bytes());
        hasher.write(&[0]);
        hasher.write(workflow.as_str().as_bytes());
        let bucket = hasher.finish() % u64::from(Self::COUNT);
        Self(u16::try_from(bucket).unwrap_or_default())
    }

    /// Number of the slot, below [`Self::COUNT`].
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Shard that holds this slot.
    pub const fn shard(self) -> ShardId {
        ShardId((self.0 / SLOTS_PER_SHARD).to_be_bytes()[1])
    }
}

const SLOTS_PER_SHARD: u16 = 64;

/// Unit of ownership: 64 slots. There are 64 shards, never split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardId(u8);

impl ShardId {
    /// Number of shards; it never changes.
    pub const COUNT: u8 = 64;

    /// Shard with this number, if it exists.
    pub const fn new(number: u8) -> Option<Self> {
        if number < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Number of the shard, below [`Self::COUNT`].
    pub const fn number(self) -> u8 {
        self.0
    }

    /// All shards in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies one start of a workflow task. The incarnation is durable before its first use, so two
/// starts never share an id, even across crashes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct StartId {
    /// How many times the run's shard was loaded into memory.
    pub incarnation: u64,
    /// Number of the start within the incarnation.
    pub counter: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(namespace: &str, workflow: &str) -> u16 {
        Slot::of(&namespace.into(), &workflow.into()).number()
    }

    #[test]
    fn every_kind_of_text_is_an_id() {
        let text = String::from("order-17");
        let shared: Arc<str> = text.as_str().into();
        let ids: [WorkflowId; 6] = [
            (&text).into(),
            text.as_str().into(),
            text.clone().into(),
            text.clone().into_boxed_str().into(),
            Cow::Borrowed(text.as_str()).into(),
            shared.into(),
        ];
        assert!(ids.iter().all(|id| id.as_str() == text));
    }

    #[test]
    fn slots_are_pinned() {
        let slots =
            [slot("default", "a"), slot("default", "order-17"), slot("", ""), slot("n", "ü")];
        assert_eq!(slots, [3952, 2485, 1421, 1863]);
    }

    #[test]
    fn every_slot_has_a_shard() {
        assert_eq!(Slot(0).shard(), ShardId(0));
        assert_eq!(Slot(63).shard(), ShardId(0));
        assert_eq!(Slot(64).shard(), ShardId(1));
        assert_eq!(Slot(4095).shard(), ShardId(63));
    }

    #[test]
    fn derived_run_ids_are_version_7_and_pinned() {
        let at = Timestamp::from_unix_millis(1_800_000_000_123);
        let parent = RunId::from_parts(at, 7);
        let child = RunId::of_child(parent, 5, at);
        assert_eq!(child.0.get_version_num(), 7);
        assert_eq!(child, RunId::of_child(parent, 5, at));
        assert_ne!(child, RunId::of_child(parent, 6, at));
        assert!(child.is_child_of(parent, 5));
        assert!(!child.is_child_of(parent, 6) && !parent.is_child_of(parent, 5));
        assert_eq!(child.to_string(), "01a3185c-507b-7474-8983-0b45af911120");
    }
}
