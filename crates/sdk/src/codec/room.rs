//! How much may be decoded at once. A small payload may hold a large one, and a small history many, so
//! each payload that grows takes its share of the room before the next ones grow.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::CodecError;

/// The room for all payloads of one history, answer or request.
pub(super) struct Room {
    whole: usize,
    left: AtomicUsize,
}

impl Room {
    pub(super) const fn new(whole: usize) -> Self {
        Self { whole, left: AtomicUsize::new(whole) }
    }

    /// Takes room for what the codec of this name has decoded.
    pub(super) fn take(&self, bytes: usize, codec: &str) -> Result<(), CodecError> {
        let fits = |left: usize| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => {
                let problem = format!(
                    "the data has more than {} bytes when it is decoded; if that is intended, raise \
                     `Codecs::decode_at_most`",
                    self.whole
                );
                Err(CodecError::refused(codec, problem))
            }
        }
    }
}
