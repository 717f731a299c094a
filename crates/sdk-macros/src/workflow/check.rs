//! Rules for each kind of method, with messages that say what to write instead.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{FnArg, Ident, ImplItem, Type};

use super::model::{Handler, Mark};
use crate::signature::{Signature, error, is_exclusive, is_shared};

pub(super) fn check_run(signature: &Signature, method: &syn::Signature) -> syn::Result<()> {
    signature.no_receiver(
        "the run has no `self`: take `ctx: &Context<Self>`, and use `ctx.read` and `ctx.write` for \
         the state",
    )?;
    if !signature.asynchronous {
        return Err(error(method.fn_token, "the run must be async: write `async fn`"));
    }
    need_context("the run", signature, method)
}

/// A handler either changes the state synchronously, or is an async task.
pub(super) fn check_handler(
    mark: Mark,
    signature: &Signature,
    method: &syn::Signature,
) -> syn::Result<()> {
    let what = mark.subject();
    if signature.asynchronous {
        signature.no_receiver(
            "an async handler runs concurrently, so it has no `self`: take \
             `ctx: &Context<Self>`, and use `ctx.read` and `ctx.write` for the state",
        )?;
        return need_context(what, signature, method);
    }
    if !signature.receiver.as_ref().is_some_and(is_exclusive) {
        let place = receiver_or_name(signature, method);
        let message = format!(
            "{what} changes the state: take `&mut self`, or make it `async` with \
             `ctx: &Context<Self>`"
        );
        return Err(error(place, message));
    }
    if signature.context {
        let message = format!(
            "{what} with `self` runs synchronously and has no context: remove it, or make the method \
             `async` without `self`"
        );
        return Err(error(&method.inputs, message));
    }
    Ok(())
}

pub(super) fn check_query(signature: &Signature, method: &syn::Signature) -> syn::Result<()> {
    if signature.asynchronous {
        return Err(error(method.asyncness, "a query is synchronous: remove `async`"));
    }
    if !signature.receiver.as_ref().is_some_and(is_shared) {
        let place = receiver_or_name(signature, method);
        let message = "a query must not change the state: take `&self`, or make it an `#[update]`";
        return Err(error(place, message));
    }
    if signature.context {
        let message = "a query only reads the state: remove the context";
        return Err(error(&method.inputs, message));
    }
    if signature.output.written.is_none() {
        let message = "a query returns a value: add a return type";
        return Err(error(&method.ident, message));
    }
    Ok(())
}

/// Tokens of the wrong receiver, or the name if there is none.
fn receiver_or_name(signature: &Signature, method: &syn::Signature) -> TokenStream {
    match &signature.receiver {
        Some(receiver) => receiver.to_token_stream(),
        None => method.ident.to_token_stream(),
    }
}

fn need_context(what: &str, signature: &Signature, method: &syn::Signature) -> syn::Result<()> {
    if signature.context {
        return Ok(());
    }
    let first = method.inputs.first().map(ToTokens::to_token_stream);
    let place = first.unwrap_or_else(|| method.ident.to_token_stream());
    Err(error(place, format!("{what} takes `ctx: &Context<Self>` first")))
}

pub(super) fn refuse_output(signature: &Signature) -> syn::Result<()> {
    match &signature.output.written {
        Some(written) => {
            let message = "a signal returns nothing, because its sender does not wait: make it an \
                           `#[update]` to answer";
            Err(error(written, message))
        }
        None => Ok(()),
    }
}

/// Definitions of one kind must have distinct names on the wire.
pub(super) fn check_names(mark: Mark, handlers: &[Handler]) -> syn::Result<()> {
    for (index, handler) in handlers.iter().enumerate() {
        let name = handler.name.value();
        if let Some(first) = handlers[..index].iter().find(|first| first.name.value() == name) {
            let message = format!(
                "`{}` is {} named \"{name}\" already: rename this one",
                first.ident,
                mark.subject()
            );
            return Err(error(&handler.name, message));
        }
    }
    Ok(())
}

pub(super) fn check_init(init: Option<&(Ident, usize)>, run: &Signature) -> syn::Result<()> {
    match init {
        Some((ident, count)) if *count != 0 && *count != run.arguments.len() => {
            let message = format!(
                "the initial state is created from the arguments of the run: take all {} by \
                 reference, or none",
                run.arguments.len()
            );
            Err(error(ident, message))
        }
        _ => Ok(()),
    }
}

/// A validator is a plain method of the block that reads the state and the arguments.
pub(super) fn check_validator(update: &Handler, items: &[ImplItem]) -> syn::Result<()> {
    let Some(validate) = &update.validate else { return Ok(()) };
    let method = items.iter().find_map(|item| match item {
        ImplItem::Fn(method) if method.sig.ident == *validate => Some(method),
        _ => None,
    });
    let wanted = format!("`fn {validate}(&self, …) -> Result<(), E>`");
    let Some(method) = method else {
        let message = format!("this block has no method `{validate}`: write {wanted}");
        return Err(error(validate, message));
    };
    let reads = |input: &FnArg| match input {
        FnArg::Receiver(own) => is_shared(own),
        FnArg::Typed(typed) => {
            matches!(&*typed.ty, Type::Reference(it) if it.mutability.is_none())
        }
    };
    if let Some(input) = method.sig.inputs.iter().find(|input| !reads(input)) {
        let message = "a validator only reads: take `&self`, and each argument as `&T`";
        return Err(error(input, message));
    }
    let count = update.signature.arguments.len() + 1;
    let fits = method.sig.receiver().is_some()
        && method.sig.inputs.len() == count
        && method.sig.asyncness.is_none()
        && matches!(method.sig.output, syn::ReturnType::Type(..));
    if !fits {
        let message = format!(
            "this does not fit the update `{}`: write {wanted} with its arguments by reference",
            update.ident
        );
        return Err(error(&method.sig, message));
    }
    Ok(())
}
