//! Prints items as users see them: signatures without bodies, public fields and methods, impls of
//! traits that users can name. What a macro adds to a type is printed as the macro writes it.

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
    /// The types in printed signatures, and where the first of them stands.
    mentioned: BTreeMap<Definition, String>,
    /// All that the crate exports.
    exported: BTreeSet<Definition>,
}

/// What is printed of a definition: its path for users, and the module whose names it uses.
struct Place<'a> {
    path: &'a str,
    module: &'a [String],
}

impl<'a> Printer<'a> {
    pub(super) fn new(sources: &'a Sources, name: &str) -> Self {
        let mut printer = Self {
            sources,
            lines: Vec::new(),
            printed: BTreeMap::new(),
            mentioned: BTreeMap::new(),
            exported: BTreeSet::new(),
        };
        printer.export(&[name.to_owned()]);
        printer.module(&[name.to_owned()]);
        printer
    }

    /// All that the crate exports, module by module.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// The types in signatures that users cannot name, and where each stands first.
    pub(super) fn unnamed(&self) -> impl Iterator<Item = (&str, &str)> {
        let unnamed = self.mentioned.iter().filter(|(it, _)| !self.exported.contains(it));
        unnamed.map(|(definition, place)| (definition.name.as_str(), place.as_str()))
    }

    /// All that the crate exports.
    pub(super) fn exported(&self) -> impl Iterator<Item = &Definition> {
        self.exported.iter()
    }

    fn export(&mut self, module: &[String]) {
        self.exported.extend(self.sources.exports(module).into_iter().flat_map(|(_, named)| named));
        for inner in self.inner(module) {
            self.export(&inner);
        }
    }

    /// The public modules in a module.
    fn inner(&self, module: &[String]) -> Vec<Vec<String>> {
        let shown = |item: &Item| match item {
            Item::Mod(item) if public(&item.vis) && !hidden(&item.attrs) => {
                Some(module.iter().cloned().chain([item.ident.to_string()]).collect())
            }
            _ => None,
        };
        self.sources.items(module).iter().filter_map(shown).collect()
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
        for inner in self.inner(module) {
            self.module(&inner);
        }
    }

    fn definition(&mut self, path: &str, definition: Definition) {
        if let Some(first) = self.printed.get(&definition) {
            let line = format!("the same as {first}");
            return self.line(&line);
        }
        self.printed.insert(definition.clone(), path.to_owned());
        let sources = self.sources;
        let place = Place { path, module: &definition.module };
        for item in sources.items(&definition.module) {
            if ident(item).is_some_and(|name| name == definition.name) {
                self.item(&place, item);
            }
        }
        self.implementations(path, &definition);
    }

    /// Notes the types that a signature mentions.
    fn mention(&mut self, place: &Place<'_>, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.mention(place, group.stream()),
                TokenTree::Ident(name) => {
                    for definition in self.sources.defined(place.module, &name.to_string()) {
                        self.mentioned.entry(definition).or_insert_with(|| place.path.to_owned());
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.lines.push(format!("  {line}"));
    }

    fn item(&mut self, place: &Place<'_>, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.attributes(&item.attrs);
                let (name, generics) = (&item.ident, &item.generics);
                let bounds = &generics.where_clause;
                self.tokens(quote!(pub struct #name #generics #bounds), " {");
                self.fields(place, &item.fields);
            }
            Item::Enum(item) => {
                self.attributes(&item.attrs);
                let (name, generics) = (&item.ident, &item.generics);
                self.tokens(quote!(pub enum #name #generics), " {");
                for variant in item.variants.iter().filter(|it| !hidden(&it.attrs)) {
                    let (name, fields) = (&variant.ident, shown_fields(&variant.fields));
                    self.mention(place, fields.clone());
                    self.line(&format!("  {}", text(quote!(#name #fields))));
                }
            }
            Item::Trait(item) => {
                let (name, generics, above) = (&item.ident, &item.generics, &item.supertraits);
                let bounds = &generics.where_clause;
                let above = (!above.is_empty()).then(|| quote!(: #above));
                self.tokens(quote!(pub trait #name #generics #above #bounds), " {");
                item.items.iter().for_each(|item| self.trait_item(place, item));
            }
            Item::Fn(item) => {
                let signature = &item.sig;
                self.mention(place, quote!(#signature));
                self.tokens(quote!(pub #signature), "");
            }
            Item::Type(item) => {
                let (name, generics, ty) = (&item.ident, &item.generics, &item.ty);
                self.mention(place, quote!(#ty));
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

    fn fields(&mut self, place: &Place<'_>, fields: &Fields) {
        for field in fields.iter().filter(|it| public(&it.vis) && !hidden(&it.attrs)) {
            let (name, ty) = (&field.ident, &field.ty);
            let name = name.as_ref().map(|name| quote!(#name:));
            self.mention(place, quote!(#ty));
            self.line(&format!("  {}", text(quote!(pub #name #ty))));
        }
    }

    fn trait_item(&mut self, place: &Place<'_>, item: &TraitItem) {
        match item {
            TraitItem::Fn(method) if !hidden(&method.attrs) => {
                let (signature, default) = (&method.sig, method.default.is_some());
                let provided = if default { " { provided }" } else { "" };
                self.mention(place, quote!(#signature));
                self.line(&format!("  {}{provided}", text(quote!(#signature))));
            }
            TraitItem::Type(ty) if !hidden(&ty.attrs) => {
                let ty = syn::TraitItemType { attrs: Vec::new(), ..ty.clone() };
                self.mention(place, quote!(#ty));
                self.line(&format!("  {}", text(quote!(#ty)).trim_end_matches(';')));
            }
            TraitItem::Const(constant) if !hidden(&constant.attrs) => {
                let (name, ty) = (&constant.ident, &constant.ty);
                self.mention(place, quote!(#ty));
                self.line(&format!("  {}", text(quote!(const #name: #ty))));
            }
            _ => {}
        }
    }

    /// The impls of a type in its crate.
    fn implementations(&mut self, path: &str, definition: &Definition) {
        let sources = self.sources;
        let mut found = Vec::new();
        for (module, items) in sources.modules_of(&definition.module[0]) {
            for item in items {
                match item {
                    Item::Impl(item) if self.is_of(module, item, definition) => {
                        let place = Place { path, module };
                        found.push(self.implementation(&place, item));
                    }
                    Item::Macro(item) if item.ident.is_none() => {
                        let tokens = &item.mac.tokens;
                        if mentions(tokens, &definition.name)
                            && sources.named(module, &definition.name).contains(definition)
                        {
                            let name = item.mac.path.segments.last().map(|it| it.ident.to_string());
                            found.push(self.added_by_macro(&module[0], &name.unwrap_or_default()));
                        }
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        found.dedup();
        found.into_iter().flatten().for_each(|line| self.line(&line));
    }

    /// An impl block: the public methods of an inherent one, the types of a trait's. Traits that users
    /// cannot name are left out.
    fn implementation(&mut self, place: &Place<'_>, item: &ItemImpl) -> Vec<String> {
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let private = |name: String| {
            let named = self.sources.defined(place.module, &name);
            !named.is_empty() && named.iter().all(|it| !self.exported.contains(it))
        };
        if hidden(&item.attrs) || of.is_some_and(|of| private(of.ident.to_string())) {
            return Vec::new();
        }
        let (generics, ty, bounds) = (&item.generics, &item.self_ty, &item.generics.where_clause);
        let of_trait = item.trait_.as_ref().map(|(path, _)| quote!(#path for));
        let mut lines = vec![text(quote!(impl #generics #of_trait #ty #bounds))];
        for inner in &item.items {
            let shown = match inner {
                ImplItem::Fn(method) if public(&method.vis) && !hidden(&method.attrs) => {
                    let signature = &method.sig;
                    quote!(pub #signature)
                }
                ImplItem::Const(it) if public(&it.vis) && !hidden(&it.attrs) => {
                    let (name, ty) = (&it.ident, &it.ty);
                    quote!(pub const #name: #ty)
                }
                ImplItem::Type(associated) => {
                    let (name, ty) = (&associated.ident, &associated.ty);
                    quote!(type #name = #ty)
                }
                _ => continue,
            };
            // A future that is only awaited needs no name.
            if !matches!(inner, ImplItem::Type(it) if it.ident == "IntoFuture") {
                self.mention(place, shown.clone());
            }
            lines.push(format!("  {}", text(shown)));
        }
        // An inherent block without anything public says nothing.
        if lines.len() == 1 && item.trait_.is_none() { Vec::new() } else { lines }
    }

    /// The impls that a macro writes, as it writes them; none if users see nothing of them.
    fn added_by_macro(&self, crate_name: &str, name: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (_, items) in self.sources.modules_of(crate_name) {
            for item in items {
                match item {
                    Item::Macro(item) if item.ident.as_ref().is_some_and(|it| it == name) => {
                        public_functions(item.mac.tokens.clone(), &mut lines);
                    }
                    _ => {}
                }
            }
        }
        if !lines.is_empty() {
            lines.insert(0, format!("by {name}!"));
        }
        lines
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

    fn tokens(&mut self, tokens: TokenStream, end: &str) {
        self.line(&format!("{}{end}", text(tokens)));
    }
}

/// The fields of a variant, without their attributes and visibilities.
fn shown_fields(fields: &Fields) -> TokenStream {
    let shown = fields.iter().filter(|field| !hidden(&field.attrs)).map(|field| {
        let (name, ty) = (&field.ident, &field.ty);
        name.as_ref().map_or_else(|| quote!(#ty), |name| quote!(#name: #ty))
    });
    match fields {
        Fields::Named(_) => quote!({ #(#shown),* }),
        Fields::Unnamed(_) => quote!((#(#shown),*)),
        Fields::Unit => quote!(),
    }
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
                    found.push(format!("  {written}"));
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
