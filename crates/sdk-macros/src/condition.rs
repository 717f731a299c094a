//! `condition!`: an optional key and a predicate become a condition that history can recognise.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{
    ExprClosure, LitStr, Pat, ReturnType, Token,
    parse::{Parse, ParseStream},
    spanned::Spanned,
};

use crate::{fingerprint::fingerprint, signature::error};

const KEY_LENGTH_MAX: usize = 128;

struct Input {
    key: Option<LitStr>,
    closure: ExprClosure,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = if input.peek(LitStr) {
            let key = input.parse()?;
            input.parse::<Token![,]>()?;
            Some(key)
        } else {
            None
        };
        if !(input.peek(Token![|]) || input.peek(Token![move])) {
            let message = "write a key, if you want one, and a closure on the state: \
                           `condition!(\"order.paid\", |order| order.paid)`";
            return Err(input.error(message));
        }
        let closure = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        Ok(Self { key, closure })
    }
}

pub(crate) fn expand(tokens: TokenStream) -> syn::Result<TokenStream> {
    let Input { key, closure } = syn::parse2(tokens)?;
    if let Some(key) = &key {
        check_key(key)?;
    }
    if let ReturnType::Type(_, output) = &closure.output {
        return Err(error(output, "a condition returns `bool`: remove the return type"));
    }
    let [argument] = &*closure.inputs.iter().collect::<Vec<_>>() else {
        let message = "the closure has one argument, the state of the workflow: `|order| …`";
        return Err(error(&closure, message));
    };
    let fingerprint = fingerprint(argument, &closure.body);
    let argument = match argument {
        Pat::Type(typed) => quote!(#typed),
        // Where `Self` is not defined, the compiler reports the error at the argument.
        pattern => quote_spanned!(pattern.span()=> #pattern: &Self),
    };
    let key = match key {
        Some(key) => quote!(::std::option::Option::Some(#key)),
        None => quote!(::std::option::Option::None),
    };
    let body = &closure.body;
    Ok(
        quote!(::abide::__private::Condition::checked(#key, #fingerprint, move |#argument| -> bool { #body })),
    )
}

/// Enforces the engine's rule for keys at compile time.
fn check_key(key: &LitStr) -> syn::Result<()> {
    let text = key.value();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if text.is_empty() || text.len() > KEY_LENGTH_MAX || !text.chars().all(allowed) {
        let message = "a key has 1 to 128 letters, digits and `. _ - :` characters";
        return Err(error(key, message));
    }
    Ok(())
}
