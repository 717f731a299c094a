//! The writing end of a stream: batches what many senders put into a queue into frames of a bounded
//! size.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use tokio::sync::mpsc::UnboundedReceiver;

use super::bound::Bound;

/// The largest number of items in one frame.
const FRAME_ITEMS: usize = 512;

pub(super) trait Frame: Default {
    type Item: Unpin;

    /// The most bytes that the item takes in the frame.
    fn size(item: &Self::Item) -> usize;

    fn put(&mut self, item: Self::Item);
}

/// A stream of frames, made from the items in a queue.
pub(super) struct Frames<F: Frame> {
    bound: Bound,
    queue: UnboundedReceiver<Option<F::Item>>,
    taken: Vec<Option<F::Item>>,
    waiting: VecDeque<F::Item>,
    ended: bool,
}

impl<F: Frame> Frames<F> {
    /// Frames of the items in this queue, within the bound. They end after a `None`, or when all
    /// senders are dropped.
    pub(super) fn new(queue: UnboundedReceiver<Option<F::Item>>, bound: Bound) -> Self {
        Self { bound, queue, taken: Vec::new(), waiting: VecDeque::new(), ended: false }
    }
}

impl<F: Frame> Stream for Frames<F> {
    type Item = F;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F>> {
        let this = &mut *self;
        if this.waiting.is_empty() && !this.ended {
            let count = ready!(this.queue.poll_recv_many(context, &mut this.taken, FRAME_ITEMS));
            this.waiting.extend(this.taken.drain(..).map_while(|item| item));
            this.ended = this.waiting.len() < count || count == 0;
        }
        if this.waiting.is_empty() {
            return Poll::Ready(None);
        }
        let mut frame = F::default();
        let mut bytes = 0;
        let full = this.bound.frame_bytes();
        while let Some(item) = this.waiting.pop_front() {
            bytes += F::size(&item);
            frame.put(item);
            if this.waiting.front().is_none_or(|next| bytes + F::size(next) > full) {
                break;
            }
        }
        Poll::Ready(Some(frame))
    }
}
