//! Options of an attribute: `name = "…"`, `validate = method`, `approvals = field`, `unfinished_handlers =
//! "…"`.

use proc_macro2::{Span, TokenStream};
use syn::{
    Attribute, Expr, ExprLit, Ident, Lit, LitStr, Meta, MetaNameValue, Path, Token,
    parse::Parser as _, punctuated::Punctuated,
};

use crate::signature::error;

#[derive(Default)]
pub(crate) struct Options {
    /// Name on the wire.
    pub(crate) name: Option<LitStr>,
    /// Method that validates an update.
    pub(crate) validate: Option<Ident>,
    /// Field that holds the requests for approval.
    pub(crate) approvals: Option<Ident>,
    /// What happens to handlers that still run when the run has its result, as a variant of
    /// `UnfinishedHandlers`.
    pub(crate) unfinished_handlers: Option<Ident>,
}

impl Options {
    /// Parses the parenthesised part of an attribute; `known` lists its options.
    pub(crate) fn parse(tokens: TokenStream, known: &[&str]) -> syn::Result<Self> {
        let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
        let mut options = Self::default();
        for MetaNameValue { path, value, .. } in parser.parse2(tokens)? {
            match known.iter().find(|known| path.is_ident(known)) {
                Some(&"name") => options.name = Some(wire_name(&value)?),
                Some(&"approvals") => options.approvals = Some(field(&value)?),
                Some(&"unfinished_handlers") => {
                    options.unfinished_handlers = Some(unfinished_handlers(&value)?)
                }
                Some(_) => options.validate = Some(method(&value)?),
                None => return Err(unknown(&path, known)),
            }
        }
        Ok(options)
    }

    /// Parses the options of an attribute of a method.
    pub(crate) fn of(attribute: &Attribute, known: &[&str]) -> syn::Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(Self::default()),
            Meta::List(list) => Self::parse(list.tokens.clone(), known),
            Meta::NameValue(value) => {
                let message = "write options in parentheses: `#[…(name = \"…\")]`";
                Err(error(value, message))
            }
        }
    }

    /// Name on the wire: the option, or else the name in the code.
    pub(crate) fn wire_name(&self, ident: &Ident) -> LitStr {
        let own = || LitStr::new(ident.to_string().trim_start_matches("r#"), Span::call_site());
        self.name.clone().unwrap_or_else(own)
    }
}

fn wire_name(value: &Expr) -> syn::Result<LitStr> {
    let Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) = value else {
        let message = "the name on the wire is a string: write `name = \"…\"`";
        return Err(error(value, message));
    };
    if name.value().is_empty() {
        return Err(error(name, "the name on the wire cannot be empty"));
    }
    Ok(name.clone())
}

fn method(value: &Expr) -> syn::Result<Ident> {
    plain(value, "write the name of a method of this block without quotes: `validate = check`")
}

fn field(value: &Expr) -> syn::Result<Ident> {
    plain(value, "write the name of a field of the state without quotes: `approvals = approvals`")
}

fn unfinished_handlers(value: &Expr) -> syn::Result<Ident> {
    let message = "the run waits for unfinished handlers or abandons them: write \
                   `unfinished_handlers = \"wait\"` or `unfinished_handlers = \"abandon\"`";
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else {
        return Err(error(value, message));
    };
    match text.value().as_str() {
        "wait" => Ok(Ident::new("Wait", text.span())),
        "abandon" => Ok(Ident::new("Abandon", text.span())),
        _ => Err(error(text, message)),
    }
}

fn plain(value: &Expr, message: &str) -> syn::Result<Ident> {
    if let Expr::Path(path) = value
        && let Some(ident) = path.path.get_ident()
    {
        return Ok(ident.clone());
    }
    Err(error(value, message))
}

fn unknown(option: &Path, known: &[&str]) -> syn::Error {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    error(option, format!("unknown option; valid options here: {known}"))
}
