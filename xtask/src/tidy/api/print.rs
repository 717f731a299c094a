//! Prints items as users see them: signatures without bodies, public fields and methods, trait impls
//! with their types.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type};

use super::sources::{Definition, Sources, hidden, ident, mentions, public};

/// Prints the API of one crate.
pub(super) struct Printer<'a> {
    sources: &'a Sources,
    lines: Vec<String>,
    /// Where each definition was printed.
    printed: BTreeMap<Definition, String>,
    /// The macros that add methods to printed types, as crate and name.
    macros: BTreeSet<(String, String)>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        let (printed, macros) = (BTreeMap::new(), BTreeSet::new());
        Self { sources, lines: Vec::new(), printed, macros }
    }

    /// All that a crate exports, module by module.
    pub(super) fn facade(mut self, name: &str) -> String {
        self.module(&[name.to_owned()]);
        for (crate_name, name) in std::mem::take(&mut self.macros) {
            self.methods_of_macro(&crate_name, &name);
        }
        self.lines.join("\n") + "\n"
    }

    fn module(&mut self, module: &[String]) {
        let mut exports = self.sources.exports(module);
        exports.sort();
        for (name, definitions) in exports {
            let path = format!("{}::{name}", module.join("::"));
            self.lines.push(String::new());
            self.lines.push(path.clone());
            if definitions.is_empty() {
                self.line("from another crate");
            }
            for definition in definitions {
                self.definition(&path, definition);
            }
        }
        for item in self.sources.items(module) {
            if let Item::Mod(item) = item
                && public(&item.vis)
                && !hidden(&item.attrs)
            {
                let inner: Vec<_> =
                    module.iter().cloned().chain([item.ident.to_string()]).collect();
                self.module(&inner);
            }
        }
    }

    fn definition(&mut self, path: &str, definition: Definition) {
        if let Some(first) = self.printed.get(&definition) {
            let line = format!("the same as {first}");
            return self.line(&line);
        }
        self.printed.insert(definition.clone(), path.to_owned());
        let sources = self.sources;
        for item in sources.items(&definition.module) {
            if ident(item).is_some_and(|name| name == definition.name) {
                self.item(item);
            }
        }
        self.implementations(&definition);
    }

    fn line(&mut self, line: &str) {
        self.lines.push(format!("  {line}"));
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.attributes(&item.attrs);
                let (name, generics) = (&item.ident, &item.generics);
                let bounds = &generics.where_clause;
                self.tokens(quote!(pub struct #name #generics #bounds), " {");
                self.fields(&item.fields, "    ", true);
            }
            Item::Enum(item) => {
                self.attributes(&item.attrs);
                let (name, generics) = (&item.ident, &item.generics);
                self.tokens(quote!(pub enum #name #generics), " {");
                for variant in item.variants.iter().filter(|it| !hidden(&it.attrs)) {
                    self.line(&format!("  {}", variant.ident));
                    self.fields(&variant.fields, "    ", false);
                }
            }
            Item::Trait(item) => {
                let (name, generics, above) = (&item.ident, &item.generics, &item.supertraits);
                let bounds = &generics.where_clause;
                let above = (!above.is_empty()).then(|| quote!(: #above));
                self.tokens(quote!(pub trait #name #generics #above #bounds), " {");
                item.items.iter().for_each(|item| self.trait_item(item));
            }
            Item::Fn(item) => {
                let signature = &item.sig;
                self.tokens(quote!(pub #signature), "");
            }
            Item::Type(item) => {
                let (name, generics, ty) = (&item.ident, &item.generics, &item.ty);
                self.tokens(quote!(pub type #name #generics = #ty), "");
            }
            Item::Const(item) => {
                let (name, ty) = (&item.ident, &item.ty);
                self.tokens(quote!(pub const #name: #ty), "");
            }
            Item::Macro(item) => {
                let name = &item.ident;
                self.tokens(quote!(macro_rules! #name), "");
            }
            _ => {}
        }
    }

    /// What users can rely on: derives and the like.
    fn attributes(&mut self, attributes: &[Attribute]) {
        let kept = ["derive", "non_exhaustive", "must_use"];
        for attribute in attributes {
            if kept.iter().any(|name| attribute.path().is_ident(name)) {
                let meta = &attribute.meta;
                self.tokens(quote!(#meta), "");
            }
        }
    }

    fn fields(&mut self, fields: &Fields, indent: &str, only_public: bool) {
        for field in fields {
            if hidden(&field.attrs) || (only_public && !public(&field.vis)) {
                continue;
            }
            let (visibility, name, ty) = (&field.vis, &field.ident, &field.ty);
            let name = name.as_ref().map(|name| quote!(#name:));
            self.line(&format!("{}{}", &indent[2..], text(quote!(#visibility #name #ty))));
        }
    }

    fn trait_item(&mut self, item: &TraitItem) {
        match item {
            TraitItem::Fn(method) if !hidden(&method.attrs) => {
                let (signature, default) = (&method.sig, method.default.is_some());
                let provided = if default { " { provided }" } else { "" };
                self.line(&format!("  {}{provided}", text(quote!(#signature))));
            }
            TraitItem::Type(ty) if !hidden(&ty.attrs) => {
                self.line(&format!("  {}", text(quote!(#ty)).trim_end_matches(';')));
            }
            TraitItem::Const(constant) if !hidden(&constant.attrs) => {
                let (name, ty) = (&constant.ident, &constant.ty);
                self.line(&format!("  {}", text(quote!(const #name: #ty))));
            }
            _ => {}
        }
    }

    /// The impls of a type in its crate, and in the crates that the facade takes items from.
    fn implementations(&mut self, definition: &Definition) {
        let sources = self.sources;
        let mut found = Vec::new();
        for (module, items) in sources.modules_of(&definition.module[0]) {
            for item in items {
                match item {
                    Item::Impl(item) if self.is_of(module, item, definition) => {
                        found.push(implementation(item));
                    }
                    Item::Macro(item) if item.ident.is_none() => {
                        let tokens = &item.mac.tokens;
                        if mentions(tokens, &definition.name)
                            && sources.named(module, &definition.name).contains(definition)
                        {
                            let name = item.mac.path.segments.last().map(|it| it.ident.to_string());
                            let name = name.unwrap_or_default();
                            found.push(vec![format!("{name}!({})", text(tokens.clone()))]);
                            self.macros.insert((module[0].clone(), name));
                        }
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        found.into_iter().flatten().for_each(|line| self.line(&line));
    }

    fn is_of(&self, module: &[String], item: &ItemImpl, definition: &Definition) -> bool {
        let Type::Path(ty) = &*item.self_ty else { return false };
        let Some(last) = ty.path.segments.last().filter(|it| it.ident == definition.name) else {
            return false;
        };
        // Only a name alone can be looked up; a longer path ends in the name, which is enough here.
        ty.path.segments.len() > 1
            || self.sources.named(module, &last.ident.to_string()).contains(definition)
    }

    /// The public functions that a macro writes.
    fn methods_of_macro(&mut self, crate_name: &str, name: &str) {
        let sources = self.sources;
        for (_, items) in sources.modules_of(crate_name) {
            for item in items {
                let Item::Macro(item) = item else { continue };
                if item.ident.as_ref().is_some_and(|ident| ident == name) {
                    self.lines.push(String::new());
                    self.lines.push(format!("{name}! of {crate_name}"));
                    let mut functions = Vec::new();
                    public_functions(item.mac.tokens.clone(), &mut functions);
                    functions.iter().for_each(|function| self.line(function));
                }
            }
        }
    }

    fn tokens(&mut self, tokens: TokenStream, end: &str) {
        self.line(&format!("{}{end}", text(tokens)));
    }
}

/// An impl block: the public methods of an inherent one, the types of a trait's.
fn implementation(item: &ItemImpl) -> Vec<String> {
    if hidden(&item.attrs) {
        return Vec::new();
    }
    let (generics, ty, bounds) = (&item.generics, &item.self_ty, &item.generics.where_clause);
    let of_trait = item.trait_.as_ref().map(|(path, _)| quote!(#path for));
    let mut lines = vec![text(quote!(impl #generics #of_trait #ty #bounds))];
    for inner in &item.items {
        match inner {
            ImplItem::Fn(method) if public(&method.vis) && !hidden(&method.attrs) => {
                let signature = &method.sig;
                lines.push(format!("  {}", text(quote!(pub #signature))));
            }
            ImplItem::Const(constant) if public(&constant.vis) && !hidden(&constant.attrs) => {
                let (name, ty) = (&constant.ident, &constant.ty);
                lines.push(format!("  {}", text(quote!(pub const #name: #ty))));
            }
            ImplItem::Type(associated) => {
                let (name, ty) = (&associated.ident, &associated.ty);
                lines.push(format!("  {}", text(quote!(type #name = #ty))));
            }
            _ => {}
        }
    }
    // An inherent block without anything public says nothing.
    if lines.len() == 1 && item.trait_.is_none() { Vec::new() } else { lines }
}

/// `pub fn …` up to the body, wherever it stands in the tokens.
fn public_functions(tokens: TokenStream, found: &mut Vec<String>) {
    let mut signature: Option<TokenStream> = None;
    for token in tokens {
        match (&token, &mut signature) {
            (TokenTree::Ident(ident), None) if ident == "pub" => {
                signature = Some(token.into_token_stream());
            }
            (TokenTree::Group(group), Some(_)) if group.delimiter() == Delimiter::Brace => {
                let written = signature.take().map(text).unwrap_or_default();
                if written.contains("fn ") {
                    found.push(written);
                }
            }
            (_, Some(signature)) => signature.extend([token]),
            (TokenTree::Group(group), None) => public_functions(group.stream(), found),
            _ => {}
        }
    }
}

/// Tokens as a line, spaced as people write them.
fn text(tokens: TokenStream) -> String {
    let replaced = [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("& ", "&"),
        (" : ", ": "),
        (" ;", ";"),
        ("[ ", "["),
        (" ]", "]"),
        (" ?", "?"),
        ("? ", "?"),
        (" !", "!"),
        (",)", ")"),
        ("# [", "#["),
        ("&'", "&'"),
        (" ..", ".."),
        ("$ ", "$"),
        ("->(", "-> ("),
        ("=(", "= ("),
    ];
    let line = tokens.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    replaced.iter().fold(line, |line, (from, to)| line.replace(from, to))
}
