//! `#[workflow]` on an impl block: [`model`] parses its methods, [`check`] reports mistakes,
//! [`expand`] generates the definitions and [`handle`] what clients call; [`approvals`] adds those for
//! approvals by people. [`function`] makes a workflow of an async function.

mod approvals;
mod check;
mod expand;
mod function;
mod handle;
mod model;
mod neighbour;
mod taken;

use proc_macro2::{TokenStream, TokenTree};
use syn::ItemImpl;

use self::model::Model;
use crate::{attribute::Options, signature::error};

/// Expands `#[workflow]` on an impl block or a function.
pub(crate) fn item(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let is_word =
        |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(it) if it == word);
    // `impl` comes before any `fn` in a block, and behind it in a function.
    let first = item.clone().into_iter().find(|it| is_word(it, "impl") || is_word(it, "fn"));
    match first {
        Some(word) if is_word(&word, "fn") => {
            function::workflow(&Options::parse(options, &["name"])?, syn::parse2(item)?)
        }
        Some(_) => block(options, item),
        None => Err(error(item, "a workflow is an impl block or an async function")),
    }
}

fn block(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options = Options::parse(options, &["name", "approvals", "unfinished_handlers"])?;
    let block: ItemImpl = syn::parse2(item)?;
    Ok(expand::workflow(&Model::read(options, block)?))
}
