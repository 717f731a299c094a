//! `#[workflow]` on an impl block: [`model`] reads its methods, [`check`] says what is wrong with them,
//! [`expand`] writes the definitions; [`approvals`] adds those of workflows that ask people.

mod approvals;
mod check;
mod expand;
mod model;

use proc_macro2::TokenStream;
use syn::ItemImpl;

use self::model::Model;
use crate::attribute::Options;

/// Expands `#[workflow]`.
pub(crate) fn block(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options = Options::parse(options, &["name", "approvals", "unfinished"])?;
    let block: ItemImpl = syn::parse2(item)?;
    Ok(expand::workflow(&Model::read(options, block)?))
}
