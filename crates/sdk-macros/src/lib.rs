//! The attributes of the SDK: `#[workflow]`, `#[activity]` and `#[activities]`.
//!
//! Thin shims: the item is parsed, checked into a model, and the model is written out. A mistake is
//! reported at the tokens that cause it, with what to write instead; nothing else is written then, so
//! that no second error hides the first.

mod activity;
mod attribute;
mod signature;
mod workflow;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

/// Turns an async function into an activity, to be called by `ctx.activity(name, arguments)`: the
/// function of its name takes no arguments any more, and gives the definition of the activity.
///
/// Arguments are owned; an `ActivityContext` may come first. `#[activity(name = "…")]` sets the name
/// on the wire.
#[proc_macro_attribute]
pub fn activity(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::function(options.into(), item.into()))
}

/// Turns the methods of an impl block that are marked `#[activity]` into activities that share the
/// state `self`: constants, to be named by path.
#[proc_macro_attribute]
pub fn activities(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::block(options.into(), item.into()))
}

/// Turns an impl block into a workflow.
///
/// Its methods are marked `#[run]` (exactly one), `#[signal]`, `#[query]`, `#[update]` and `#[init]`;
/// others stay as they are. Each signal, query and update becomes a constant of the same name.
/// `#[workflow(name = "…")]` sets the name on the wire.
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(workflow::block(options.into(), item.into()))
}

fn finish(expanded: syn::Result<Tokens>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
