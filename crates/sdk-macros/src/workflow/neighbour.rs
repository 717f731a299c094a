//! What other workflows call: a function that starts the workflow as a child, and handles of children
//! and other runs whose methods are the signals of the workflow.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{
    handle::{free, has},
    model::{Handler, Model},
};

/// The types of the handles, for the trait impl, and what they refer to.
pub(super) fn expand(model: &Model) -> (TokenStream, TokenStream) {
    let (child, external) = (
        quote!(::abide::__private::context::ChildHandle<Self>),
        quote!(::abide::__private::context::ExternalWorkflow<Self>),
    );
    let (own, start) = (&model.block.self_ty, start(model));
    let start = quote!(impl #own { #start });
    match methods(model) {
        methods if methods.is_empty() => {
            (quote!(type Child = #child; type External = #external;), start)
        }
        methods => {
            let name = format_ident!("{}Signals", model.ident);
            let handle = handle(model, &methods);
            let types = quote!(type Child = #name<#child>; type External = #name<#external>;);
            (types, quote!(#start #handle))
        }
    }
}

/// The type parameter `H` is the handle beneath: of a child, or of any other run.
fn handle(model: &Model, methods: &[TokenStream]) -> TokenStream {
    let own = &model.block.self_ty;
    let name = format_ident!("{}Signals", model.ident);
    let docs = format!(
        "A handle to another run of [`{}`], for workflow code: its signals are methods.",
        model.ident
    );
    quote! {
        #[doc = #docs]
        #[allow(unreachable_pub, reason = "the type of the workflow may be private")]
        #[derive(Debug)]
        pub struct #name<H> {
            handle: H,
        }

        impl<H> ::std::convert::From<H> for #name<H> {
            fn from(handle: H) -> Self {
                Self { handle }
            }
        }

        impl<H> ::std::ops::Deref for #name<H> {
            type Target = H;

            fn deref(&self) -> &H {
                &self.handle
            }
        }

        #[allow(
            dead_code,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            reason = "not every signal is used"
        )]
        impl<H> #name<H>
        where
            H: ::std::convert::AsRef<::abide::__private::context::ExternalWorkflow<#own>>,
        {
            #(#methods)*
        }
    }
}

fn methods(model: &Model) -> Vec<TokenStream> {
    let own = model.block.self_ty.to_token_stream();
    let signals = model.signals.iter().map(|handler| method(handler, &own));
    let approvals = model.approvals.is_some().then(|| decision(&own));
    signals.chain(approvals).collect()
}

fn method(handler: &Handler, own: &TokenStream) -> TokenStream {
    let Handler { ident, visibility, docs, signature, .. } = handler;
    let constant = handler.constant();
    let (parameters, passed) = (signature.parameters(own), signature.passed());
    quote! {
        #(#docs)*
        #[track_caller]
        #visibility fn #ident(&self, #(#parameters),*) -> ::abide::__private::context::ExternalCall {
            self.handle.as_ref().signal(<#own>::#constant, #passed)
        }
    }
}

fn decision(own: &TokenStream) -> TokenStream {
    quote! {
        /// Answers a request for approval.
        #[track_caller]
        pub fn decision(
            &self,
            answer: ::abide::__private::approval::Answer,
        ) -> ::abide::__private::context::ExternalCall {
            self.handle.as_ref().signal(<#own>::DECISION, answer)
        }
    }
}

/// The function that starts the workflow as a child; a method of the block with the same name takes
/// precedence.
fn start(model: &Model) -> Option<TokenStream> {
    let (_, signature) = &model.run;
    let own = model.block.self_ty.to_token_stream();
    let (ctx, id) = (free("ctx", signature), free("id", signature));
    let (parameters, passed) = (signature.parameters(&own), signature.passed());
    let start = quote! {
        /// Runs the workflow as a child and waits for its result; with `start()` it returns a handle
        /// once the child runs.
        #[allow(
            dead_code,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            clippy::self_named_constructors,
            clippy::too_many_arguments,
            reason = "generated for every workflow"
        )]
        #[track_caller]
        pub fn child<__AbideParent>(
            #ctx: &::abide::__private::Context<__AbideParent>,
            #id: impl ::std::convert::Into<::abide::__private::ids::WorkflowId>,
            #(#parameters),*
        ) -> ::abide::__private::context::ChildCall<Self> {
            #ctx.child::<Self>(#id, #passed)
        }
    };
    (!has(model, "child")).then_some(start)
}
