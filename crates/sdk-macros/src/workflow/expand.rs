//! Generates the definitions of a workflow.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    approvals, handle,
    model::{Handler, Model},
    neighbour,
};

/// The impl block, its constants, the trait impl that refers to them, and what clients call.
pub(super) fn workflow(model: &Model) -> TokenStream {
    let Model { block, name, signals, queries, updates, .. } = model;
    let own = &block.self_ty;
    let constants = signals
        .iter()
        .map(signal)
        .chain(queries.iter().map(query))
        .chain(updates.iter().map(update));
    let list = |handlers: &[Handler], more: TokenStream| {
        let idents = handlers.iter().map(Handler::constant);
        let more = model.approvals.as_ref().map(|_| more);
        quote!(&[#(&Self::#idents,)* #more])
    };
    let (signals, queries, updates) = (
        list(signals, quote!(&Self::DECISION)),
        list(queries, quote!(&Self::APPROVALS)),
        list(updates, quote!(&Self::DECIDE)),
    );
    let approving = model.approvals.as_ref().map(|field| approvals::way(own, field));
    let answers = model.approvals.as_ref().map(|_| approvals::constants());
    let (init, run) = (init(model), run(model));
    let (_, signature) = &model.run;
    let (list, input, output, travels) =
        (signature.list(), signature.input(), &signature.output.value, signature.travels());
    let handle = handle::expand(model);
    let (neighbours, neighbour) = neighbour::expand(model);
    let definition = quote!(::abide::__private::definition);
    let unfinished_handlers = model.unfinished_handlers.as_ref().map(|case| {
        let policy = quote!(#definition::UnfinishedHandlers);
        quote!(const UNFINISHED_HANDLERS: #policy = #policy::#case;)
    });
    quote! {
        #block

        impl #own {
            #(#constants)*
            #answers
        }

        #approving

        impl ::abide::__private::Workflow for #own {
            const NAME: &'static str = #name;
            const ARGUMENTS: ::abide::__private::payload::Arguments<#list> = #travels;
            const SIGNALS: &'static [&'static dyn #definition::SignalHandler<Self>] = #signals;
            const QUERIES: &'static [&'static dyn #definition::QueryHandler<Self>] = #queries;
            const UPDATES: &'static [&'static dyn #definition::UpdateHandler<Self>] = #updates;
            #unfinished_handlers

            type Arguments = #list;
            type Input = #input;
            type Output = #output;
            #neighbours

            #init
            #run
        }

        #handle
        #neighbour
    }
}

fn init(model: &Model) -> TokenStream {
    let own = &model.block.self_ty;
    let (_, signature) = &model.run;
    let (names, pattern) = (signature.names(), signature.pattern());
    let state = match &model.init {
        Some((ident, 0)) => quote!(Self::#ident()),
        Some((ident, _)) => quote!({ let #pattern = input; Self::#ident(#(#names),*) }),
        None => quote_spanned!(own.span()=> <#own as ::std::default::Default>::default()),
    };
    quote! {
        fn init(input: &Self::Input) -> Self {
            let _ = input;
            #state
        }
    }
}

fn run(model: &Model) -> TokenStream {
    let (ident, signature) = &model.run;
    let (names, pattern) = (signature.names(), signature.pattern());
    let result = signature.returned(&quote!(Self::#ident(&ctx, #(#names),*).await));
    quote! {
        fn run(
            ctx: ::abide::__private::Context<Self>,
            input: Self::Input,
        ) -> ::abide::__private::future::LocalBoxFuture<
            'static,
            ::std::result::Result<Self::Output, ::abide::__private::ReturnedError>,
        > {
            ::std::boxed::Box::pin(async move {
                let #pattern = input;
                #result
            })
        }
    }
}

fn signal(handler: &Handler) -> TokenStream {
    let kind = quote!(::abide::__private::definition::SignalCode);
    let (names, pattern) = (handler.signature.names(), handler.signature.pattern());
    let method = &handler.ident;
    let code = match (handler.handled, handler.signature.asynchronous) {
        (false, _) => quote!(#kind::Keep),
        (true, true) => quote! {
            #kind::Task(|ctx, #pattern| {
                ::std::boxed::Box::pin(async move { Self::#method(&ctx, #(#names),*).await })
            })
        },
        (true, false) => {
            quote!(#kind::Apply(|state, #pattern| Self::#method(state, #(#names),*)))
        }
    };
    constant(handler, &quote!(SignalDef), &quote!(), &code, &quote!())
}

fn query(handler: &Handler) -> TokenStream {
    let (names, pattern) = (handler.signature.names(), handler.signature.pattern());
    let method = &handler.ident;
    let answer = handler.signature.returned(&quote!(Self::#method(state, #(#names),*)));
    let code = quote!(|state, #pattern| #answer);
    let output = &handler.signature.output.value;
    constant(handler, &quote!(QueryDef), &quote!(, #output), &code, &quote!())
}

fn update(handler: &Handler) -> TokenStream {
    let kind = quote!(::abide::__private::definition::UpdateCode);
    let (names, pattern) = (handler.signature.names(), handler.signature.pattern());
    let (method, output) = (&handler.ident, &handler.signature.output.value);
    let code = if handler.signature.asynchronous {
        let result = handler.signature.returned(&quote!(Self::#method(&ctx, #(#names),*).await));
        quote!(#kind::Task(|ctx, #pattern| ::std::boxed::Box::pin(async move { #result })))
    } else {
        let result = handler.signature.returned(&quote!(Self::#method(state, #(#names),*)));
        quote!(#kind::Apply(|state, #pattern| #result))
    };
    let validated = handler.validate.as_ref().map(|validate| {
        quote! {
            .validated(|state, #pattern| {
                Self::#validate(state, #(#names),*).map_err(|error| ::abide::__private::__returned!(error))
            })
        }
    });
    constant(handler, &quote!(UpdateDef), &quote!(, #output), &code, &quote!(#validated))
}

fn constant(
    handler: &Handler,
    kind: &TokenStream,
    output: &TokenStream,
    code: &TokenStream,
    more: &TokenStream,
) -> TokenStream {
    let Handler { visibility, docs, name, signature, .. } = handler;
    let (list, travels, constant) = (signature.list(), signature.travels(), handler.constant());
    let kind = quote!(::abide::__private::#kind);
    quote! {
        #(#docs)*
        #visibility const #constant: #kind<Self, #list #output> =
            #kind::new(#name, #travels, #code)#more;
    }
}
