//! `#[activity]` on a function, and `#[activities]` on an impl block.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Ident, ImplItem, ItemFn, ItemImpl, Visibility};

use crate::{
    attribute::Options,
    signature::{ContextRule, Signature, check_generics, error, is_shared},
};

const CONTEXT: ContextRule = ContextRule {
    type_name: "ActivityContext",
    written: "ctx: ActivityContext",
    by_reference: false,
};

/// Expands `#[activity]` on a function.
pub(crate) fn function(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options = Options::parse(options, &["name"])?;
    let mut function: ItemFn = syn::parse2(item)?;
    let signature = read(&function.sig)?;
    signature
        .no_receiver("put `#[activities]` on the impl block of activities that have `self`")?;

    let ident = std::mem::replace(&mut function.sig.ident, format_ident!("code"));
    let visibility = std::mem::replace(&mut function.vis, Visibility::Inherited);
    let attributes = take_docs(&mut function.attrs);
    let call = signature.call(&quote!(code));
    let code = quote!({
        #function
        |_: &(), ctx, input| ::std::boxed::Box::pin(async move { #call })
    });
    let state = quote!(());
    let definition = Definition { ident, options, state, signature, code };
    let (ident, (ty, value)) = (&definition.ident, definition.expand());
    Ok(quote! {
        #(#attributes)*
        #visibility const fn #ident() -> #ty {
            #value
        }
    })
}

/// Expands `#[activities]` on an impl block.
pub(crate) fn block(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    Options::parse(options, &[])?;
    let mut block: ItemImpl = syn::parse2(item)?;
    check_block(&block, "activities")?;

    let mut names = Vec::new();
    let mut constants = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(options) = take_options(&mut method.attrs)? else { continue };
        let signature = read(&method.sig)?;
        check_receiver(&signature, &method.sig)?;
        let ident = method.sig.ident.clone();
        method.sig.ident = hidden(&ident);
        let visibility = std::mem::replace(&mut method.vis, Visibility::Inherited);
        let attributes = take_docs(&mut method.attrs);
        let path = &method.sig.ident;
        let call = signature.call(&quote!(Self::#path));
        let code = quote!(|shared: &Self, ctx, input| ::std::boxed::Box::pin(async move { #call }));
        let state = quote!(Self);
        names.push(ident.clone());
        let definition = Definition { ident, options, state, signature, code };
        let (ident, (ty, value)) = (&definition.ident, definition.expand());
        constants.push(quote! {
            #(#attributes)*
            #[allow(non_upper_case_globals, reason = "a definition is named as a function")]
            #visibility const #ident: #ty = #value;
        });
    }
    if names.is_empty() {
        let message = "no activities in this block: mark async methods with `#[activity]`";
        return Err(error(&block.self_ty, message));
    }
    let own_type = &block.self_ty;
    Ok(quote! {
        #block

        impl #own_type {
            #(#constants)*
        }

        impl ::abide::__private::activity::Activities for #own_type {
            const ACTIVITIES: &'static [&'static dyn ::abide::__private::activity::ActivityHandler<Self>] =
                &[#(&Self::#names),*];
        }
    })
}

/// Checks that a block is an inherent impl without generics.
pub(crate) fn check_block(block: &ItemImpl, what: &str) -> syn::Result<()> {
    if let Some((path, _)) = &block.trait_ {
        let message = format!("{what} are methods of a type: write `impl Type`, without a trait");
        return Err(error(path, message));
    }
    check_generics(&block.generics, &format!("a type with {what}"))
}

/// Name of the hidden method that keeps the user's code.
pub(crate) fn hidden(ident: &Ident) -> Ident {
    format_ident!("__abide_{ident}", span = ident.span())
}

/// Moves the documentation from a method to the definition that users see.
pub(crate) fn take_docs(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let shown = |attribute: &Attribute| {
        attribute.path().is_ident("doc") || attribute.path().is_ident("deprecated")
    };
    attributes.extract_if(.., |attribute| shown(attribute)).collect()
}

fn read(signature: &syn::Signature) -> syn::Result<Signature> {
    let read = Signature::read(signature, "an activity", CONTEXT)?;
    if !read.asynchronous {
        let message = "an activity must be async: write `async fn`";
        return Err(error(signature.fn_token, message));
    }
    Ok(read)
}

fn check_receiver(signature: &Signature, method: &syn::Signature) -> syn::Result<()> {
    let message = "activities share their state: take `&self`";
    match &signature.receiver {
        None => {
            let message = "an activity without `self` is a function of its own: move it out of the \
                           impl block, or take `&self`";
            Err(error(&method.ident, message))
        }
        Some(receiver) if !is_shared(receiver) => Err(error(receiver, message)),
        Some(_) => Ok(()),
    }
}

fn take_options(attributes: &mut Vec<Attribute>) -> syn::Result<Option<Options>> {
    let Some(index) = attributes.iter().position(|it| it.path().is_ident("activity")) else {
        return Ok(None);
    };
    Options::of(&attributes.remove(index), &["name"]).map(Some)
}

/// Parts of a definition.
struct Definition {
    ident: Ident,
    options: Options,
    state: TokenStream,
    signature: Signature,
    code: TokenStream,
}

impl Definition {
    /// Type and value of the definition.
    fn expand(&self) -> (TokenStream, TokenStream) {
        let Self { ident, options, state, signature, code } = self;
        let name = options.wire_name(ident);
        let (input, output) = (signature.input(), &signature.output.value);
        let travels = signature.travels();
        let ty = quote!(::abide::__private::ActivityDef<#state, #input, #output>);
        (ty, quote!(::abide::__private::ActivityDef::new(#name, #travels, #code)))
    }
}

impl Signature {
    /// Expression that calls the activity's code with `ctx` and `input`, and `shared` if it has a
    /// receiver.
    fn call(&self, path: &TokenStream) -> TokenStream {
        let (names, pattern) = (self.names(), self.pattern());
        let shared = self.receiver.is_some().then(|| quote!(shared,));
        let context = self.context.then(|| quote!(ctx,));
        let unused =
            (!self.context).then(|| quote!(let _: ::abide::__private::ActivityContext = ctx;));
        let call = self.returned(&quote!(#path(#shared #context #(#names),*).await));
        quote! {
            #unused
            let #pattern = input;
            #call
        }
    }
}
