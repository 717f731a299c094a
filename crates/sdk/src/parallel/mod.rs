//! Many things at once: all of them, the first success, so many at a time, a tree.
//!
//! Whatever is run at once is polled only when it was woken, in the order in which it was given, so
//! thousands of items cost thousands of polls. What is not needed any more is dropped, which cancels
//! it, in that order too.

mod all;
mod bounded;
mod crowd;
mod tree;
mod window;

pub use self::{
    all::{first_success, join_all, try_join_all},
    window::Window,
};
