//! The largest frame that the server accepts. The server announces it at the start of a stream, and
//! ends the stream if a larger frame arrives; so an oversized item is refused here, to its sender
//! alone.

use abide_core::limits::InvalidField;
use prost::encoding::encoded_len_varint;
use tokio::sync::watch;

/// A frame is sent once it holds this many bytes. A single item may be larger.
const FRAME_BYTES: usize = 1 << 20;

/// The bound assumed for a server that announces none: gRPC's usual limit.
const USUAL: usize = 4 << 20;

/// The largest frame that the server accepts, once it is announced.
#[derive(Clone)]
pub(super) struct Bound(watch::Receiver<Option<usize>>);

/// The sending half: sets the bound.
pub(super) struct BoundAnnouncer(watch::Sender<Option<usize>>);

/// A bound that is not announced yet.
pub(super) fn unannounced() -> (BoundAnnouncer, Bound) {
    let (announcer, bound) = watch::channel(None);
    (BoundAnnouncer(announcer), Bound(bound))
}

impl BoundAnnouncer {
    /// Sets the bound in bytes; zero means that the server announced none.
    pub(super) fn announce(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.0.send_replace(Some(if bytes == 0 { USUAL } else { bytes }));
    }
}

impl Bound {
    /// Waits until the bound is announced, or the stream ends.
    pub(super) async fn announced(&mut self) {
        // A caller that continues after the stream has ended gets the error from its claim.
        drop(self.0.wait_for(Option::is_some).await);
    }

    /// A frame is sent once it holds this many bytes.
    pub(super) fn frame_bytes(&self) -> usize {
        self.bytes().min(FRAME_BYTES)
    }

    /// Checks that an item of this many bytes fits into a frame.
    pub(super) fn check(&self, field: &str, bytes: usize) -> Result<(), InvalidField> {
        let bound = self.bytes();
        if bytes <= bound {
            return Ok(());
        }
        let problem =
            format!("has {bytes} bytes; the server accepts messages of up to {bound} bytes");
        Err(InvalidField::new(field, problem))
    }

    fn bytes(&self) -> usize {
        self.0.borrow().unwrap_or(USUAL)
    }
}

/// The bytes that a message of this length takes as a field of a frame.
pub(super) fn in_frame(length: usize) -> usize {
    let length_bytes = encoded_len_varint(u64::try_from(length).unwrap_or(u64::MAX));
    // All field numbers of frames are small, so their keys take one byte.
    1 + length_bytes + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_takes_bounds_frames_and_items() {
        let (announcer, bound) = unannounced();
        assert_eq!(bound.frame_bytes(), FRAME_BYTES);
        announcer.announce(4096);
        assert_eq!(bound.frame_bytes(), 4096);
        assert_eq!(bound.check("call", 4096), Ok(()));
        let refused = bound.check("call", 4097).expect_err("one byte more");
        assert!(refused.problem.contains("4097") && refused.problem.contains("4096"));
    }

    #[test]
    fn a_server_that_does_not_say_takes_the_usual() {
        let (announcer, bound) = unannounced();
        announcer.announce(0);
        assert_eq!(bound.check("call", USUAL), Ok(()));
        bound.check("call", USUAL + 1).expect_err("more than usual");
    }
}
