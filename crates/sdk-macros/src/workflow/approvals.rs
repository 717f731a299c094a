//! What `#[workflow(approvals = field)]` adds: the definitions through which people answer, and
//! access to the requests in the state.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Ident, Type};

use super::model::{Handler, Mark};
use crate::signature::error;

/// The added definitions: their kind, and their name on the wire and, in upper case, in code.
const BROUGHT: [(Mark, &str); 3] =
    [(Mark::Update, "decide"), (Mark::Signal, "decision"), (Mark::Query, "approvals")];

/// Checks that the user's definitions have other names: in code all of them, on the wire those of
/// the same kind.
pub(super) fn check(mark: Mark, handlers: &[Handler]) -> syn::Result<()> {
    let clash = handlers.iter().find_map(|own| {
        let taken = |(kind, name): &&(Mark, &str)| {
            own.ident == name || (*kind == mark && own.name.value() == *name)
        };
        BROUGHT.iter().find(taken).map(|(kind, name)| (own, kind.subject(), name))
    });
    match clash {
        Some((own, what, name)) => {
            let message =
                format!("`approvals = …` already defines {what} named `{name}`: rename this one");
            Err(error(&own.ident, message))
        }
        None => Ok(()),
    }
}

/// Constants that users refer to.
pub(super) fn constants() -> TokenStream {
    quote! {
        /// Answers a request for approval; an answer that is not accepted is rejected immediately.
        pub const DECIDE: ::abide::__private::UpdateDef<
            Self,
            (::abide::__private::approval::Answer,),
            ::abide::__private::approval::Receipt,
        > = ::abide::__private::approval::update();

        /// Answers a request for approval; the query shows whether the answer was accepted.
        pub const DECISION: ::abide::__private::SignalDef<Self, (::abide::__private::approval::Answer,)> =
            ::abide::__private::approval::signal();

        /// Shows the state of every request for approval, and all answers to it.
        pub const APPROVALS: ::abide::__private::QueryDef<Self, (), ::abide::__private::approval::Report> =
            ::abide::__private::approval::query();
    }
}

/// Implements access to the requests in the state.
pub(super) fn way(own: &Type, field: &Ident) -> TokenStream {
    // Reports a field that does not exist, or has another type, where it is named.
    let requests = quote_spanned!(field.span()=> { let Self { #field, .. } = self; #field });
    quote! {
        impl ::abide::__private::approval::Approving for #own {
            fn approvals(&self) -> &::abide::__private::approval::Approvals {
                #requests
            }

            fn approvals_mut(&mut self) -> &mut ::abide::__private::approval::Approvals {
                #requests
            }
        }
    }
}
