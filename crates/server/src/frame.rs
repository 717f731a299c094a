//! Bounds of frames, each of which holds many calls, answers or tasks. A frame is read and written
//! as a whole, so all of it is in memory at once.

use abide_core::limits::InvalidField;

/// Largest number of items of one kind in a frame that the server writes.
pub(crate) const WRITTEN_ITEMS: usize = 512;

/// Bytes after which a written frame is full. A single item may be larger.
pub(crate) const WRITTEN_BYTES: usize = 1 << 20;

/// Frames that are read from a stream before the other work of its task gets a turn.
pub(crate) const READ_FRAMES: usize = 16;

/// Refuses a received frame with more items than the bound. An item costs far more memory than the
/// two bytes that an empty one takes on the wire.
pub(crate) fn check_items(items: usize, limit: usize) -> Result<(), InvalidField> {
    if items <= limit {
        return Ok(());
    }
    let problem = format!("has {items} items, the limit is {limit}; send them in several frames");
    Err(InvalidField::new("frame", problem))
}
