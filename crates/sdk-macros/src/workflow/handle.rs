//! What clients call: a handle whose methods are the messages of the workflow, and functions that
//! start it. All of it stands in `__with_client!`, which drops it where the SDK has no client.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, ImplItem};

use super::model::{Handler, Model};
use crate::signature::{Signature, spelled_out};

/// The handle and the functions that start the workflow.
pub(super) fn expand(model: &Model) -> TokenStream {
    let (own, starts) = (&model.block.self_ty, starts(model));
    let handle = match methods(model) {
        methods if methods.is_empty() => quote! {
            impl ::abide::__private::client::Handled for #own {
                type Handle = ::abide::__private::client::WorkflowHandle<Self>;
            }
        },
        methods => handle(model, &methods),
    };
    quote! {
        ::abide::__private::__with_client! {
            impl #own {
                #starts
            }

            #handle
        }
    }
}

/// The type parameter spares the macro knowing the visibility of the workflow's type: a handle to a
/// private type is as private as that type.
fn handle(model: &Model, methods: &[TokenStream]) -> TokenStream {
    let own = &model.block.self_ty;
    let name = format_ident!("{}Handle", model.ident);
    let docs = format!(
        "A handle to a run of [`{}`]: its signals, queries and updates are methods.",
        model.ident
    );
    quote! {
        #[doc = #docs]
        #[allow(private_interfaces, unreachable_pub, reason = "the type may be private")]
        pub struct #name<W = #own> {
            handle: ::abide::__private::client::WorkflowHandle<W>,
        }

        impl<W> ::std::convert::From<::abide::__private::client::WorkflowHandle<W>> for #name<W> {
            fn from(handle: ::abide::__private::client::WorkflowHandle<W>) -> Self {
                Self { handle }
            }
        }

        impl<W> ::std::ops::Deref for #name<W> {
            type Target = ::abide::__private::client::WorkflowHandle<W>;

            fn deref(&self) -> &Self::Target {
                &self.handle
            }
        }

        impl<W> ::std::convert::AsRef<::abide::__private::client::WorkflowHandle<W>> for #name<W> {
            fn as_ref(&self) -> &::abide::__private::client::WorkflowHandle<W> {
                &self.handle
            }
        }

        impl<W> ::std::clone::Clone for #name<W> {
            fn clone(&self) -> Self {
                Self { handle: ::std::clone::Clone::clone(&self.handle) }
            }
        }

        impl<W> ::std::fmt::Debug for #name<W> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&self.handle, f)
            }
        }

        #[allow(
            dead_code,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            reason = "not every message is used"
        )]
        impl #name<#own> {
            #(#methods)*
        }

        impl ::abide::__private::client::Handled for #own {
            type Handle = #name<Self>;
        }
    }
}

fn methods(model: &Model) -> Vec<TokenStream> {
    let own = model.block.self_ty.to_token_stream();
    let answer = |handler: &Handler, kind: &str| {
        let (kind, value) = (format_ident!("{kind}"), &handler.signature.output.value);
        let value = spelled_out(value.to_token_stream(), &own);
        quote!(::abide::__private::client::#kind<#value>)
    };
    let signals = model.signals.iter().map(|handler| {
        method(handler, &own, "signal", &quote!(::abide::__private::client::Signal))
    });
    let queries = model
        .queries
        .iter()
        .map(|handler| method(handler, &own, "query", &answer(handler, "Query")));
    let updates = model
        .updates
        .iter()
        .map(|handler| method(handler, &own, "update", &answer(handler, "Update")));
    let approvals = model.approvals.is_some().then(|| approvals(&own));
    signals.chain(queries).chain(updates).chain(approvals).collect()
}

fn method(handler: &Handler, own: &TokenStream, call: &str, answer: &TokenStream) -> TokenStream {
    let Handler { ident, visibility, docs, signature, .. } = handler;
    let (call, constant) = (format_ident!("{call}"), handler.constant());
    let (parameters, passed) = (signature.parameters(own), signature.passed());
    quote! {
        #(#docs)*
        #visibility fn #ident(&self, #(#parameters),*) -> #answer {
            self.handle.#call(<#own>::#constant, #passed)
        }
    }
}

fn approvals(own: &TokenStream) -> TokenStream {
    let approval = quote!(::abide::__private::approval);
    quote! {
        /// Answers a request for approval; an answer that is not accepted is rejected immediately.
        pub fn decide(&self, answer: #approval::Answer) -> ::abide::__private::client::Update<#approval::Receipt> {
            self.handle.update(<#own>::DECIDE, answer)
        }

        /// Answers a request for approval; the query shows whether the answer was accepted.
        pub fn decision(&self, answer: #approval::Answer) -> ::abide::__private::client::Signal {
            self.handle.signal(<#own>::DECISION, answer)
        }

        /// Asks for the state of every request for approval, and all answers to it.
        pub fn approvals(&self) -> ::abide::__private::client::Query<#approval::Report> {
            self.handle.query(<#own>::APPROVALS, ())
        }
    }
}

/// Functions that start the workflow; a method of the block with the same name takes precedence.
fn starts(model: &Model) -> TokenStream {
    let (_, signature) = &model.run;
    let own = model.block.self_ty.to_token_stream();
    let (client, id) = (free("client", signature), free("id", signature));
    let (parameters, passed) = (signature.parameters(&own), signature.passed());
    let allow = quote! {
        #[allow(
            dead_code,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            clippy::too_many_arguments,
            reason = "generated for every workflow"
        )]
    };
    let start = quote! {
        /// Starts the workflow under this id. Set options on the returned value, then await it.
        #allow
        pub fn start(
            #client: &::abide::__private::client::Client,
            #id: impl ::std::convert::Into<::abide::__private::ids::WorkflowId>,
            #(#parameters),*
        ) -> ::abide::__private::client::Start<Self> {
            #client.start::<Self>(#id, #passed)
        }
    };
    let start_new = quote! {
        /// Starts the workflow under an id that is drawn. Set options on the returned value, then
        /// await it.
        #allow
        pub fn start_new(
            #client: &::abide::__private::client::Client,
            #(#parameters),*
        ) -> ::abide::__private::client::Start<Self> {
            #client.start_new::<Self>(#passed)
        }
    };
    let start = (!has(model, "start")).then_some(start);
    let start_new = (!has(model, "start_new")).then_some(start_new);
    quote!(#start #start_new)
}

pub(super) fn has(model: &Model, name: &str) -> bool {
    let named = |item: &ImplItem| matches!(item, ImplItem::Fn(method) if method.sig.ident == name);
    model.block.items.iter().any(named)
}

/// A name that no argument has.
pub(super) fn free(name: &str, signature: &Signature) -> Ident {
    let mut ident = format_ident!("{name}");
    while signature.idents.contains(&ident) {
        ident = format_ident!("{ident}_");
    }
    ident
}
