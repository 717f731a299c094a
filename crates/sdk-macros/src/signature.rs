//! Parses and checks the signature of a method: receiver, context, arguments and result.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    FnArg, GenericArgument, Ident, Pat, PathArguments, PathSegment, Receiver, ReceiverKind,
    ReturnType, Type, spanned::Spanned,
};

const ARGUMENTS_MAX: usize = 8;

/// The parts of a signature that a definition needs.
pub(crate) struct Signature {
    pub(crate) receiver: Option<Receiver>,
    /// Whether the first argument is the context.
    pub(crate) context: bool,
    pub(crate) arguments: Vec<Type>,
    /// Names of the arguments, for functions that users call.
    pub(crate) idents: Vec<Ident>,
    pub(crate) output: Output,
    pub(crate) asynchronous: bool,
}

pub(crate) struct Output {
    /// The value type, without the `Result` around it.
    pub(crate) value: Type,
    /// Whether the return type is a `Result`.
    pub(crate) fallible: bool,
    /// The return type as written, if there is one.
    pub(crate) written: Option<Type>,
}

/// Required form of the context argument.
#[derive(Clone, Copy)]
pub(crate) struct ContextRule {
    /// Name of its type.
    pub(crate) type_name: &'static str,
    pub(crate) written: &'static str,
    /// Whether it is taken by reference.
    pub(crate) by_reference: bool,
}

impl Signature {
    /// Parses a signature and checks the rules that all definitions share. `what` names it in
    /// messages.
    pub(crate) fn read(
        signature: &syn::Signature,
        what: &str,
        rule: ContextRule,
    ) -> syn::Result<Self> {
        check_generics(&signature.generics, what)?;
        let (mut receiver, mut context) = (None, false);
        let (mut arguments, mut idents) = (Vec::new(), Vec::new());
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(own) => receiver = Some(own.clone()),
                FnArg::Typed(typed) => match rule.matches(&typed.ty) {
                    Some(right) => {
                        if !arguments.is_empty() || context {
                            return Err(rule.misplaced(&typed.ty));
                        }
                        if !right {
                            return Err(rule.wrongly_taken(&typed.ty));
                        }
                        context = true;
                    }
                    None => {
                        check_argument(&typed.pat, &typed.ty)?;
                        idents.push(argument_name(&typed.pat, arguments.len()));
                        arguments.push((*typed.ty).clone());
                    }
                },
            }
        }
        if arguments.len() > ARGUMENTS_MAX {
            let message =
                format!("{what} takes at most {ARGUMENTS_MAX} arguments: put them in a struct");
            return Err(error(&signature.inputs, message));
        }
        let asynchronous = signature.asyncness.is_some();
        let output = Output::read(&signature.output);
        check_owned(&output.value, "a result is stored in history")?;
        check_error(&signature.output)?;
        Ok(Self { receiver, context, arguments, idents, output, asynchronous })
    }

    /// Type of the input: unit, the single argument, or a tuple.
    pub(crate) fn input(&self) -> TokenStream {
        match self.arguments.as_slice() {
            [] => quote!(()),
            [one] => quote!(#one),
            several => quote!((#(#several),*)),
        }
    }

    /// Types of the arguments as a list: a tuple of any length.
    pub(crate) fn list(&self) -> TokenStream {
        let arguments = &self.arguments;
        quote!((#(#arguments,)*))
    }

    /// How the input is encoded.
    pub(crate) fn travels(&self) -> TokenStream {
        let list = self.list();
        // Reports a type that cannot be encoded at the argument, not at the attribute.
        let place = self.arguments.first().map_or_else(Span::call_site, Spanned::span);
        let count = match self.arguments.len() {
            0 => Ident::new("none", place),
            1 => Ident::new("one", place),
            _ => Ident::new("several", place),
        };
        quote_spanned!(place=> ::abide::__private::payload::Arguments::<#list>::#count())
    }

    /// Generated names for the arguments.
    pub(crate) fn names(&self) -> Vec<Ident> {
        (0..self.arguments.len()).map(|index| format_ident!("argument_{index}")).collect()
    }

    /// Pattern that destructures the input into those names.
    pub(crate) fn pattern(&self) -> TokenStream {
        let names = self.names();
        match names.as_slice() {
            [] => quote!(()),
            [one] => quote!(#one),
            several => quote!((#(#several),*)),
        }
    }

    /// Parameters of a function that takes the arguments as callers may pass them. It may stand
    /// outside the impl block of `own`, so `Self` is spelled out.
    pub(crate) fn parameters(&self, own: &TokenStream) -> Vec<TokenStream> {
        let parameter = |(ident, ty): (&Ident, &Type)| {
            let written = spelled_out(ty.to_token_stream(), own);
            match takes_references(ty) {
                true => quote!(#ident: impl ::abide::__private::IntoArgument<#written>),
                false => quote!(#ident: #written),
            }
        };
        self.idents.iter().zip(&self.arguments).map(parameter).collect()
    }

    /// Expression that passes those parameters on.
    pub(crate) fn passed(&self) -> TokenStream {
        match self.idents.as_slice() {
            [] => quote!(()),
            [one] => quote!(#one),
            several => quote!((#(#several),*)),
        }
    }

    /// Wraps the call as a `Result<value, ReturnedError>`.
    pub(crate) fn returned(&self, call: &TokenStream) -> TokenStream {
        if self.output.fallible {
            quote!((#call).map_err(|error| ::abide::__private::__returned!(error)))
        } else {
            quote!(::std::result::Result::Ok(#call))
        }
    }

    /// Rejects a receiver.
    pub(crate) fn no_receiver(&self, message: &str) -> syn::Result<()> {
        match &self.receiver {
            Some(receiver) => Err(error(receiver, message)),
            None => Ok(()),
        }
    }
}

impl ContextRule {
    /// `None` if the type is not the context; otherwise whether it has the required form.
    fn matches(self, ty: &Type) -> Option<bool> {
        let (inner, by_reference) = match ty {
            Type::Reference(reference) => (&*reference.elem, reference.mutability.is_none()),
            other => (other, false),
        };
        let Type::Path(path) = inner else { return None };
        let named = path.path.segments.last()?.ident == self.type_name;
        let as_reference = matches!(ty, Type::Reference(_));
        named.then_some(if self.by_reference { by_reference } else { !as_reference })
    }

    fn misplaced(self, ty: &Type) -> syn::Error {
        error(ty, format!("the context comes first, as `{}`", self.written))
    }

    fn wrongly_taken(self, ty: &Type) -> syn::Error {
        let how = if self.by_reference { "by reference" } else { "by value" };
        error(ty, format!("take the context {how}, as `{}`", self.written))
    }
}

impl Output {
    /// The return type as written.
    pub(crate) fn as_written(&self) -> TokenStream {
        self.written.as_ref().map_or_else(|| quote!(()), ToTokens::to_token_stream)
    }

    fn read(output: &ReturnType) -> Self {
        let nothing = || syn::parse_quote!(());
        let ReturnType::Type(_, ty) = output else {
            return Self { value: nothing(), fallible: false, written: None };
        };
        let written = Some((**ty).clone());
        if named(ty, "Result").is_some() {
            let value = type_parameters(ty, "Result").next().cloned();
            return Self { value: value.unwrap_or_else(nothing), fallible: true, written };
        }
        let written = written.filter(|_| !matches!(&**ty, Type::Tuple(it) if it.elems.is_empty()));
        Self { value: (**ty).clone(), fallible: false, written }
    }
}

/// Name of an argument as users see it; a name that says that it is unused is replaced.
fn argument_name(pattern: &Pat, index: usize) -> Ident {
    match pattern {
        Pat::Ident(name) if !name.ident.to_string().starts_with('_') => name.ident.clone(),
        _ => format_ident!("argument_{index}"),
    }
}

/// Types that callers pass by value: copying them costs no more than a reference.
const SMALL: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize",
];

/// Whether callers may pass a reference for an argument of this type: to text, and to types without
/// parameters. Collections are passed by value, so that `collect()` and `into()` get their types from
/// the definition.
fn takes_references(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    match &last.arguments {
        PathArguments::None => !SMALL.iter().any(|small| last.ident == small),
        PathArguments::AngleBracketed(inner) => {
            let text = |argument: &GenericArgument| matches!(argument, GenericArgument::Type(Type::Path(path)) if path.path.is_ident("str"));
            (last.ident == "Box" || last.ident == "Arc") && inner.args.iter().all(text)
        }
        PathArguments::Parenthesized(_) => false,
    }
}

/// Replaces `Self` by the type that it stands for.
pub(crate) fn spelled_out(tokens: TokenStream, own: &TokenStream) -> TokenStream {
    let spell = |token: TokenTree| match token {
        TokenTree::Ident(ident) if ident == "Self" => own.clone(),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), spelled_out(group.stream(), own));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        other => other.into(),
    };
    tokens.into_iter().map(spell).collect()
}

/// Definitions are constants, so nothing about them can be generic.
pub(crate) fn check_generics(generics: &syn::Generics, what: &str) -> syn::Result<()> {
    if generics.params.is_empty() {
        return Ok(());
    }
    let message = format!("{what} cannot be generic: workers find it by its name alone");
    Err(error(&generics.params, message))
}

fn check_argument(pattern: &Pat, ty: &Type) -> syn::Result<()> {
    if !matches!(pattern, Pat::Ident(_) | Pat::Wild(_)) {
        let message = "an argument must be a plain name: destructure it in the body";
        return Err(error(pattern, message));
    }
    check_owned(ty, "an argument comes from history")
}

/// Arguments and results are encoded, so they cannot be borrowed.
fn check_owned(ty: &Type, why: &str) -> syn::Result<()> {
    let Type::Reference(reference) = ty else { return Ok(()) };
    let owned = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
        Type::Path(path) => match path.path.segments.last() {
            Some(segment) => format!("`{}`", segment.ident),
            None => "the type itself".to_owned(),
        },
        _ => "an owned type such as `Vec`".to_owned(),
    };
    Err(error(ty, format!("{why}, so it must be owned: write {owned}")))
}

/// A boxed error without `Send` and `Sync` would be told by the compiler three times, and at the attribute.
fn check_error(output: &ReturnType) -> syn::Result<()> {
    let ReturnType::Type(_, ty) = output else { return Ok(()) };
    let Some(failure) = type_parameters(ty, "Result").nth(1) else { return Ok(()) };
    let Some(Type::TraitObject(object)) = type_parameters(failure, "Box").next() else {
        return Ok(());
    };
    let bounds = object.bounds.to_token_stream();
    let has = |marker: &str| {
        bounds
            .clone()
            .into_iter()
            .any(|token| matches!(token, TokenTree::Ident(it) if it == marker))
    };
    if has("Send") && has("Sync") {
        return Ok(());
    }
    let written = quote!(#bounds).to_string().replace(" :: ", "::");
    let message = format!("errors go to other threads: write `Box<dyn {written} + Send + Sync>`");
    Err(error(failure, message))
}

/// The last part of a type's path, if it has this name.
fn named<'a>(ty: &'a Type, name: &str) -> Option<&'a PathSegment> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().filter(|last| last.ident == name)
}

/// The type parameters of a type, if it has this name.
fn type_parameters<'a>(ty: &'a Type, name: &str) -> impl Iterator<Item = &'a Type> {
    let arguments = named(ty, name).and_then(|last| match &last.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    });
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Whether the receiver is `&self`.
pub(crate) const fn is_shared(receiver: &Receiver) -> bool {
    matches!(receiver.kind, ReceiverKind::Reference(_, _, None))
}

/// Whether the receiver is `&mut self`.
pub(crate) const fn is_exclusive(receiver: &Receiver) -> bool {
    matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_)))
}

pub(crate) fn error(place: impl ToTokens, message: impl std::fmt::Display) -> syn::Error {
    syn::Error::new_spanned(place, message)
}
