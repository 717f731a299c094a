//! `#[workflow]` on an impl block: [`model`] parses its methods, [`check`] reports mistakes,
//! [`expand`] generates the definitions; [`approvals`] adds those for approvals by people.

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
    let options = Options::parse(options, &["name", "approvals", "unfinished_handlers"])?;
    let block: ItemImpl = syn::parse2(item)?;
    Ok(expand::workflow(&Model::read(options, block)?))
}
