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
/// arguments)`. It stays a function: a unit test calls and awaits it.
///
/// Arguments are owned; an `ActivityContext` may come first. `#[activity(name = "…")]` sets the name
/// on the wire.
#[proc_macro_attribute]
pub fn activity(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::function(options.into(), item.into()))
}

/// Turns the methods of an impl block that are marked `#[activity]` into activities that share the
/// state `self`. They stay methods, whose names stand for the activities: `ctx.activity(Shop::charge,
/// order)`.
#[proc_macro_attribute]
pub fn activities(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(activity::block(options.into(), item.into()))
}

/// Turns an async function, or an impl block, into a workflow.
///
/// A function `async fn hello(ctx: &Context, name: String)` is a workflow without state. It becomes
/// the run of a type of the same name: `worker.workflow::<hello>()`. Other workflow code can still
/// call it; then it runs within the caller's run.
///
/// Of an impl block, the methods are marked `#[run]` (exactly one), `#[signal]`, `#[query]`,
/// `#[update]` and `#[init]`. All methods stay as they are. Each signal, query and update is also a
/// constant in upper case, such as `Order::PAID` for `fn paid`, and a method of the handles that
/// clients hold, whose type is `OrderHandle`.
///
/// Both get the functions `start(&client, id, arguments…)` and `start_new(&client, arguments…)`,
/// unless the block has methods of these names.
///
/// `#[workflow(name = "…")]` sets the name on the wire. `#[workflow(approvals = field)]`, where the field
/// is an `Approvals`, adds the update `DECIDE`, the signal `DECISION` and the query `APPROVALS`.
/// `#[workflow(unfinished_handlers = "abandon")]` lets the run complete while handlers still run; by default it
/// waits for them.
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(workflow::item(options.into(), item.into()))
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
