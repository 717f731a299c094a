//! `#[workflow]` on an async function: a workflow without state. The function becomes the run of a
//! type of the same name, and stays a function that other workflow code can call.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{FnArg, Ident, ItemFn, PathArguments, Type};

use super::{expand, model::Model};
use crate::{
    activity::{hidden, take_docs},
    attribute::Options,
    signature::{ContextRule, Signature, error},
};

const CONTEXT: ContextRule =
    ContextRule { type_name: "Context", written: "ctx: &Context", by_reference: true };

/// Expands `#[workflow]` on a function.
pub(super) fn workflow(options: &Options, mut function: ItemFn) -> syn::Result<TokenStream> {
    let signature = Signature::read(&function.sig, "a workflow", CONTEXT)?;
    check(&signature, &function.sig)?;
    let (ident, visibility) = (function.sig.ident.clone(), function.vis.clone());
    let docs = take_docs(&mut function.attrs);
    let callable = callable(&function, &signature);
    bind_context(&mut function, &ident)?;
    function.vis = syn::Visibility::Inherited;
    function.sig.ident = hidden(&ident);
    let (name, run) = (options.wire_name(&ident), function.sig.ident.clone());
    let model = Model {
        block: syn::parse_quote!(impl #ident { #function }),
        ident: ident.clone(),
        name,
        run: (run, signature),
        init: None,
        signals: Vec::new(),
        queries: Vec::new(),
        updates: Vec::new(),
        approvals: None,
        unfinished_handlers: None,
    };
    let definition = expand::workflow(&model);
    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types, reason = "the type is named as the function")]
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #ident {}

        #(#docs)*
        #[allow(dead_code, reason = "most workflows are started, not called")]
        #callable

        #definition
    })
}

/// The function that code of any workflow can call: it runs within the caller's run.
fn callable(function: &ItemFn, signature: &Signature) -> TokenStream {
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let (idents, arguments) = (&signature.idents, &signature.arguments);
    let (output, run) = (&function.sig.output, hidden(ident));
    // No argument and no type of an argument has these names.
    let (ctx, state) = (format_ident!("__abide_ctx"), format_ident!("__AbideState"));
    quote! {
        #visibility async fn #ident<#state>(#ctx: &::abide::__private::Context<#state>, #(#idents: #arguments),*) #output {
            #ident::#run(&#ctx.with_state(#ident {}), #(#idents),*).await
        }
    }
}

fn check(signature: &Signature, function: &syn::Signature) -> syn::Result<()> {
    signature.no_receiver("put `#[workflow]` on the impl block of a workflow with state")?;
    if !signature.asynchronous {
        return Err(error(function.fn_token, "a workflow must be async: write `async fn`"));
    }
    if !signature.context {
        let message = "a workflow takes `ctx: &Context` first";
        return match function.inputs.first() {
            Some(first) => Err(error(first, message)),
            None => Err(error(&function.ident, message)),
        };
    }
    Ok(())
}

/// Writes the type argument of the context, which users leave out.
fn bind_context(function: &mut ItemFn, own: &Ident) -> syn::Result<()> {
    if let Some(FnArg::Typed(context)) = function.sig.inputs.first_mut()
        && let Type::Reference(reference) = &mut *context.ty
        && let Type::Path(path) = &mut *reference.elem
        && let Some(last) = path.path.segments.last_mut()
    {
        if !last.arguments.is_none() {
            let message = "a workflow that is a function has no state: write `ctx: &Context`";
            return Err(error(&last.arguments, message));
        }
        last.arguments = PathArguments::AngleBracketed(syn::parse_quote!(<#own>));
    }
    Ok(())
}
