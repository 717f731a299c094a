//! How large a frame the server takes. It says so at the beginning of a stream, and ends a stream on
//! which a larger one comes; so what would be too large is refused here, to its sender alone.

use abide_core::limits::InvalidField;
use prost::encoding::encoded_len_varint;
use tokio::sync::watch;

/// Bytes after which a frame is full. A single item may be larger.
const FRAME_BYTES: usize = 1 << 20;

/// What a server that does not say takes, as most do.
const USUAL: usize = 4 << 20;

/// How large a frame the server takes, once it has said so.
#[derive(Clone)]
pub(super) struct Bound(watch::Receiver<Option<usize>>);

/// Where the bound is told.
pub(super) struct Telling(watch::Sender<Option<usize>>);

/// A bound that is not told yet.
pub(super) fn untold() -> (Telling, Bound) {
    let (telling, bound) = watch::channel(None);
    (Telling(telling), Bound(bound))
}

impl Telling {
    /// The server takes frames of so many bytes; it has not said if there are none.
    pub(super) fn tell(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.0.send_replace(Some(if bytes == 0 { USUAL } else { bytes }));
    }
}

impl Bound {
    /// Waits until it is told, or never will be because the stream has ended.
    pub(super) async fn told(&mut self) {
        // Who goes on after the end of the stream hears of it elsewhere.
        drop(self.0.wait_for(Option::is_some).await);
    }

    /// Bytes after which a frame is full.
    pub(super) fn frame_bytes(&self) -> usize {
        self.bytes().min(FRAME_BYTES)
    }

    /// An item that takes so many bytes of a frame can be sent.
    pub(super) fn check(&self, field: &str, bytes: usize) -> Result<(), InvalidField> {
        let bound = self.bytes();
        if bytes <= bound {
            return Ok(());
        }
        let problem = format!("takes {bytes} bytes, and the server takes messages of {bound}");
        Err(InvalidField::new(field, problem))
    }

    fn bytes(&self) -> usize {
        self.0.borrow().unwrap_or(USUAL)
    }
}

/// Bytes that a message of this length takes as a field of a frame.
pub(super) fn in_frame(length: usize) -> usize {
    let length_bytes = encoded_len_varint(u64::try_from(length).unwrap_or(u64::MAX));
    // All fields of frames have small numbers, so their keys take one byte.
    1 + length_bytes + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_takes_bounds_frames_and_items() {
        let (telling, bound) = untold();
        assert_eq!(bound.frame_bytes(), FRAME_BYTES);
        telling.tell(4096);
        assert_eq!(bound.frame_bytes(), 4096);
        assert_eq!(bound.check("call", 4096), Ok(()));
        let refused = bound.check("call", 4097).expect_err("one byte more");
        assert!(refused.problem.contains("4097") && refused.problem.contains("4096"));
    }

    #[test]
    fn a_server_that_does_not_say_takes_the_usual() {
        let (telling, bound) = untold();
        telling.tell(0);
        assert_eq!(bound.check("call", USUAL), Ok(()));
        bound.check("call", USUAL + 1).expect_err("more than usual");
    }
}
