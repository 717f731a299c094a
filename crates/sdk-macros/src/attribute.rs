//! The options within an attribute: `name = "…"`, `validate = method`.

use proc_macro2::Span;
use syn::{
    Attribute, Ident, LitStr, Meta, Token,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// The options of one attribute.
#[derive(Default)]
pub(crate) struct Options {
    /// The name on the wire.
    pub(crate) name: Option<LitStr>,
    /// The method that judges an update.
    pub(crate) validate: Option<Ident>,
}

struct Assignment {
    option: Ident,
    value: Value,
}

enum Value {
    Text(LitStr),
    Name(Ident),
}

impl Parse for Assignment {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let option = input.parse()?;
        input.parse::<Token![=]>()?;
        let value = if input.peek(LitStr) {
            Value::Text(input.parse()?)
        } else {
            Value::Name(input.parse()?)
        };
        Ok(Self { option, value })
    }
}

impl Options {
    /// Reads what stands in the parentheses of an attribute; `known` are the options that it has.
    pub(crate) fn parse(tokens: proc_macro2::TokenStream, known: &[&str]) -> syn::Result<Self> {
        let parser = Punctuated::<Assignment, Token![,]>::parse_terminated;
        let mut options = Self::default();
        for Assignment { option, value } in syn::parse::Parser::parse2(parser, tokens)? {
            let name = option.to_string();
            match (name.as_str(), value) {
                _ if !known.contains(&name.as_str()) => return Err(unknown(&option, known)),
                ("name", Value::Text(text)) => options.name = Some(checked(text)?),
                ("validate", Value::Name(method)) => options.validate = Some(method),
                ("name", Value::Name(value)) => {
                    let message = format!("the name is a text: write `name = \"{value}\"`");
                    return Err(syn::Error::new(value.span(), message));
                }
                (_, Value::Text(value)) => {
                    let message = format!("write the method itself: `{name} = {}`", value.value());
                    return Err(syn::Error::new(value.span(), message));
                }
                (_, Value::Name(_)) => return Err(unknown(&option, known)),
            }
        }
        Ok(options)
    }

    /// The options of an attribute of a method.
    pub(crate) fn of(attribute: &Attribute, known: &[&str]) -> syn::Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(Self::default()),
            Meta::List(list) => Self::parse(list.tokens.clone(), known),
            Meta::NameValue(value) => {
                let message = "options stand in parentheses: `#[…(name = \"…\")]`";
                Err(syn::Error::new_spanned(value, message))
            }
        }
    }

    /// The name on the wire: what the option says, or the name in the code.
    pub(crate) fn wire_name(&self, ident: &Ident) -> LitStr {
        let own = || LitStr::new(ident.to_string().trim_start_matches("r#"), Span::call_site());
        self.name.clone().unwrap_or_else(own)
    }
}

fn checked(name: LitStr) -> syn::Result<LitStr> {
    if name.value().is_empty() {
        return Err(syn::Error::new(name.span(), "a name on the wire cannot be empty"));
    }
    Ok(name)
}

fn unknown(option: &Ident, known: &[&str]) -> syn::Error {
    let message = if known.is_empty() {
        format!("unknown option `{option}`; there are none here")
    } else {
        format!("unknown option `{option}`; there is: {}", known.join(", "))
    };
    syn::Error::new(option.span(), message)
}
