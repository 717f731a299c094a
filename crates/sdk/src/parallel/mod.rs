//! Many things at once: all of them, the first success, a bounded number at a time, a tree.
//!
//! A future is polled only when it was woken, in the order in which it was given, so thousands of
//! items cost thousands of polls. Futures that are no longer needed are dropped, which cancels
//! them, in that order too.

mod all;
mod bounded;
mod future_set;
mod tree;
mod window;

pub use self::{
    all::{first_success, join_all, try_join_all},
    window::Window,
};
