//! Bounds of frames, which many calls, answers or tasks share. A frame is read as a whole and written
//! as a whole, so all of it is in memory at one time.

use abide_core::limits::InvalidField;

/// Items of one kind that a frame of the server holds at most.
pub(crate) const WRITTEN_ITEMS: usize = 512;

/// Bytes after which a frame of the server is full. A single item may be larger.
pub(crate) const WRITTEN_BYTES: usize = 1 << 20;

/// Frames of a stream that are read before anything else is looked at again.
pub(crate) const READ_FRAMES: usize = 16;

/// A frame that came has no more items than the bound: each costs far more memory than the two bytes
/// that an empty one has on the wire.
pub(crate) fn check_items(items: usize, limit: usize) -> Result<(), InvalidField> {
    if items <= limit {
        return Ok(());
    }
    let problem = format!("has {items} items, the limit is {limit}; send them in several frames");
    Err(InvalidField::new("frame", problem))
}
