//! What `#[workflow(approvals = field)]` adds: the definitions by which people answer, and the way from
//! the state to its requests.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Ident, Type};

use super::model::{Handler, Mark};
use crate::signature::error;

/// The definitions: what each is, and its name, both in code and on the wire.
const BROUGHT: [(Mark, &str); 3] =
    [(Mark::Update, "decide"), (Mark::Signal, "decision"), (Mark::Query, "approvals")];

/// The user's own definitions have other names: in code all, on the wire those of the same kind.
pub(super) fn check(mark: Mark, handlers: &[Handler]) -> syn::Result<()> {
    let clash = handlers.iter().find_map(|own| {
        let taken = |(kind, name): &&(Mark, &str)| {
            own.ident == name || (*kind == mark && own.name.value() == *name)
        };
        BROUGHT.iter().find(taken).map(|(kind, name)| (own, kind.subject(), name))
    });
    match clash {
        Some((own, what, name)) => {
            let message = format!(
                "`approvals = …` brings {what} of the name `{name}`: give this one another name"
            );
            Err(error(&own.ident, message))
        }
        None => Ok(()),
    }
}

/// The constants that users name.
pub(super) fn constants() -> TokenStream {
    quote! {
        /// Takes an answer to a request for approval, or says at once why not.
        #[allow(non_upper_case_globals, reason = "a definition is named as a method")]
        pub const decide: ::abide::UpdateDef<
            Self,
            ::abide::approval::Answer,
            ::abide::approval::Receipt,
        > = ::abide::approval::update();

        /// Takes an answer to a request for approval; the query tells what came of it.
        #[allow(non_upper_case_globals, reason = "a definition is named as a method")]
        pub const decision: ::abide::SignalDef<Self, ::abide::approval::Answer> =
            ::abide::approval::signal();

        /// Tells how every request for approval stands, and all that was said to it.
        #[allow(non_upper_case_globals, reason = "a definition is named as a method")]
        pub const approvals: ::abide::QueryDef<Self, (), ::abide::approval::Report> =
            ::abide::approval::query();
    }
}

/// Says where in the state the requests are.
pub(super) fn way(own: &Type, field: &Ident) -> TokenStream {
    // A field that does not exist, or is of another type, is reported where it is named.
    let requests = quote_spanned!(field.span()=> { let Self { #field, .. } = self; #field });
    quote! {
        impl ::abide::approval::Approving for #own {
            fn approvals(&self) -> &::abide::approval::Approvals {
                #requests
            }

            fn approvals_mut(&mut self) -> &mut ::abide::approval::Approvals {
                #requests
            }
        }
    }
}
