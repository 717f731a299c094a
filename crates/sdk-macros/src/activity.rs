//! `#[activity]` on a function, and `#[activities]` on an impl block.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, FnArg, Ident, ImplItem, ImplItemFn, ItemFn, ItemImpl, Pat, Visibility};

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

    let (visibility, docs) = (function.vis.clone(), take_docs(&mut function.attrs));
    function.vis = Visibility::Inherited;
    let ident = &function.sig.ident;
    let (inputs, passed) = shown_inputs(&function.sig, &signature);
    let definition =
        Definition { ident, options: &options, state: quote!(()), signature: &signature };
    let defines = definition.expand(
        &quote!(__AbideActivity),
        0,
        &signature.call(&quote!(#ident), &quote!(_: &())),
    );
    let (list, value, output) =
        (signature.list(), &signature.output.value, signature.output.as_written());
    Ok(quote! {
        #(#docs)*
        #[track_caller]
        #visibility fn #ident(#(#inputs),*) -> impl ::abide::__private::activity::Call<
            State = (),
            Arguments = #list,
            Value = #value,
            Output = #output,
        > + 'static {
            #function

            enum __AbideActivity {}

            #defines

            ::abide::__private::activity::Running::<'static, __AbideActivity>::new(#ident(#(#passed),*))
        }
    })
}

/// Expands `#[activities]` on an impl block.
pub(crate) fn block(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    Options::parse(options, &[])?;
    let mut block: ItemImpl = syn::parse2(item)?;
    check_block(&block, "activities")?;

    let own = block.self_ty.to_token_stream();
    let (mut methods, mut definitions) = (Vec::new(), Vec::new());
    let mut wrong: Option<syn::Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        match activity_method(method, &own, definitions.len()) {
            Ok(None) => {}
            Ok(Some((shown, definition))) => {
                methods.push(shown);
                definitions.push(definition);
            }
            // The user sees what is wrong with every method at once.
            Err(error) => match &mut wrong {
                Some(errors) => errors.combine(error),
                None => wrong = Some(error),
            },
        }
    }
    if let Some(errors) = wrong {
        return Err(errors);
    }
    if definitions.is_empty() {
        let message = "no activities in this block: mark async methods with `#[activity]`";
        return Err(error(&block.self_ty, message));
    }
    let numbers = 0..definitions.len();
    Ok(quote! {
        #block

        impl #own {
            #(#methods)*
        }

        #(#definitions)*

        impl ::abide::__private::activity::Activities for #own {
            const ACTIVITIES: &'static [&'static dyn ::abide::__private::activity::ActivityHandler<Self>] =
                &[#(&<Self as ::abide::__private::activity::Defines<#numbers>>::DEFINITION),*];
        }
    })
}

/// The method that users see in place of this one, and its definition as number `number` of the type
/// `own`; `None` if it is not marked `#[activity]`.
fn activity_method(
    method: &mut ImplItemFn,
    own: &TokenStream,
    number: usize,
) -> syn::Result<Option<(TokenStream, TokenStream)>> {
    let Some(options) = take_options(&mut method.attrs)? else { return Ok(None) };
    let signature = read(&method.sig)?;
    check_receiver(&signature, &method.sig)?;
    let docs = take_docs(&mut method.attrs);
    let visibility = std::mem::replace(&mut method.vis, Visibility::Inherited);
    let (inputs, passed) = shown_inputs(&method.sig, &signature);
    let ident = method.sig.ident.clone();
    method.sig.ident = hidden(&ident);
    let code = &method.sig.ident;
    let shown = quote! {
        #(#docs)*
        #[track_caller]
        #visibility fn #ident(#(#inputs),*) -> ::abide::__private::activity::Running<'_, Self, #number> {
            ::abide::__private::activity::Running::new(Self::#code(#(#passed),*))
        }
    };
    let definition =
        Definition { ident: &ident, options: &options, state: quote!(Self), signature: &signature };
    let code = signature.call(&quote!(Self::#code), &quote!(shared: &Self));
    Ok(Some((shown, definition.expand(own, number, &code))))
}

/// Parameters of the function that users see, and the names by which it passes them on. Patterns
/// such as `mut count` become plain names.
fn shown_inputs(
    function: &syn::Signature,
    signature: &Signature,
) -> (Vec<FnArg>, Vec<TokenStream>) {
    let mut idents = signature.idents.iter();
    let mut context = signature.context;
    let plain = |input: &FnArg| match input {
        FnArg::Receiver(receiver) => (FnArg::Receiver(receiver.clone()), quote!(self)),
        FnArg::Typed(typed) => {
            let own = context_name(&typed.pat);
            let ident =
                if std::mem::take(&mut context) { &own } else { idents.next().unwrap_or(&own) };
            let ty = &typed.ty;
            (syn::parse_quote!(#ident: #ty), quote!(#ident))
        }
    };
    function.inputs.iter().map(plain).unzip()
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

/// Moves the documentation to the function that users see.
pub(crate) fn take_docs(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let shown = |attribute: &Attribute| {
        attribute.path().is_ident("doc") || attribute.path().is_ident("deprecated")
    };
    attributes.extract_if(.., |attribute| shown(attribute)).collect()
}

fn context_name(pattern: &Pat) -> Ident {
    match pattern {
        Pat::Ident(name) if !name.ident.to_string().starts_with('_') => name.ident.clone(),
        _ => format_ident!("context"),
    }
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
struct Definition<'a> {
    ident: &'a Ident,
    options: &'a Options,
    state: TokenStream,
    signature: &'a Signature,
}

impl Definition<'_> {
    /// Implements the definition as number `number` of the type `of`, with this code.
    fn expand(&self, of: &TokenStream, number: usize, code: &TokenStream) -> TokenStream {
        let Self { ident, options, state, signature } = self;
        let name = options.wire_name(ident);
        let (list, value, travels) =
            (signature.list(), &signature.output.value, signature.travels());
        let output = signature.output.as_written();
        quote! {
            impl ::abide::__private::activity::Defines<#number> for #of {
                type State = #state;
                type Arguments = #list;
                type Value = #value;
                type Output = #output;

                const DEFINITION: ::abide::__private::ActivityDef<#state, #list, #value> =
                    ::abide::__private::ActivityDef::new(#name, #travels, #code);
            }
        }
    }
}

impl Signature {
    /// Closure that calls the function at `path`; `shared` is its parameter for the state.
    fn call(&self, path: &TokenStream, shared: &TokenStream) -> TokenStream {
        let (names, pattern) = (self.names(), self.pattern());
        let state = self.receiver.is_some().then(|| quote!(shared,));
        let context = self.context.then(|| quote!(ctx,));
        let unused =
            (!self.context).then(|| quote!(let _: ::abide::__private::ActivityContext = ctx;));
        let call = self.returned(&quote!(#path(#state #context #(#names),*).await));
        quote! {
            |#shared, ctx, input| ::std::boxed::Box::pin(async move {
                #unused
                let #pattern = input;
                #call
            })
        }
    }
}
