//! The macros of the SDK: `#[workflow]`, `#[activity]`, `#[activities]` and `condition!`.
//!
//! Thin shims: each parses the item, checks it into a model, and generates code from the model. A
//! mistake is reported at the tokens that cause it, together with what to write instead; then no
//! other code is generated, so that follow-up errors do not hide it.

mod activity;
mod attribute;
mod condition;
mod fingerprint;
mod position;
mod signature;
mod workflow;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

/// Turns an async function into an activity, which workflows call by `ctx.activity(name,
/// arguments)`. The function itself no longer takes arguments: it returns the definition of the
/// activity.
///
/// Arguments are owned; an `ActivityContext` may come first. `#[activity(name = "…")]` sets the name
/// on the wire.
#[proc_macro_attribute]
pub fn activity(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::function(options.into(), item.into()))
}

/// Turns the methods of an impl block that are marked `#[activity]` into activities that share the
/// state `self`. Each becomes a constant of the type, such as `Shop::charge`.
#[proc_macro_attribute]
pub fn activities(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::block(options.into(), item.into()))
}

/// Turns an impl block into a workflow.
///
/// Its methods are marked `#[run]` (exactly one), `#[signal]`, `#[query]`, `#[update]` and `#[init]`;
/// others stay as they are. Each signal, query and update becomes a constant of the same name.
/// `#[workflow(name = "…")]` sets the name on the wire. `#[workflow(approvals = field)]`, where the field
/// is an `Approvals`, adds the update `decide`, the signal `decision` and the query `approvals`.
/// `#[workflow(unfinished_handlers = "abandon")]` lets the run complete while handlers still run; by default it
/// waits for them.
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(workflow::block(options.into(), item.into()))
}

/// A condition on the state of a workflow, to be waited for by `ctx.wait_until(…)`:
/// `condition!("order.paid", |order| order.paid)`, or without a key, `condition!(|order| order.paid)`.
///
/// Within the impl block of a workflow, the closure's argument is its state, `&Self`; elsewhere,
/// write its type: `|order: &Order|`. Captured values are moved into the closure. The key has 1 to
/// 128 letters, digits and `. _ - :` characters. History records key and predicate: a run that has
/// waited for another condition at the same place is blocked. Formatting, comments and trailing
/// commas may change; changes in functions that the predicate calls are not detected.
#[proc_macro]
pub fn condition(input: TokenStream) -> TokenStream {
    finish(condition::expand(input.into()))
}

fn finish(expanded: syn::Result<Tokens>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
