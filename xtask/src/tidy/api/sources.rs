//! The items of all crates by module, and the way from a name to what it names.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, Item, UseTree, Visibility};

use crate::{
    files::{self, File},
    problem::Problem,
};

/// How many re-exports may stand between a name and what it names.
const HOPS_MAX: usize = 20;

/// The path of a module: the crate's name first.
pub(super) type ModulePath = Vec<String>;

/// The items of all crates, by the path of their module.
pub(super) struct Sources {
    modules: BTreeMap<ModulePath, Vec<Item>>,
}

/// Where an item is defined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Definition {
    pub(super) module: ModulePath,
    pub(super) name: String,
}

/// One name that a `use` brings in.
struct Import {
    /// None for a glob.
    name: Option<String>,
    path: Vec<String>,
}

impl Sources {
    /// Parses the library of each crate.
    pub(super) fn read(files: &[File]) -> Result<Self, Problem> {
        let mut sources = Self { modules: BTreeMap::new() };
        for file in files {
            let Some(folder) = file.path.strip_prefix("crates/") else { continue };
            let Some(folder) = folder.strip_suffix("/src/lib.rs") else { continue };
            let name = match folder {
                "abide" => "abide".to_owned(),
                folder => format!("abide_{}", folder.replace('-', "_")),
            };
            sources.read_file(files, &file.path, &format!("crates/{folder}/src"), vec![name])?;
        }
        Ok(sources)
    }

    /// Parses a file, and the files of its modules, which are in `folder`.
    fn read_file(
        &mut self,
        files: &[File],
        path: &str,
        folder: &str,
        module: ModulePath,
    ) -> Result<(), Problem> {
        let text = files::find(files, path).and_then(File::text).unwrap_or_default();
        let parsed = syn::parse_file(text).map_err(|error| {
            Problem::new(path, format!("cannot be parsed: {error}"), "correct it")
        })?;
        self.add(files, folder, module, parsed.items)
    }

    fn add(
        &mut self,
        files: &[File],
        folder: &str,
        module: ModulePath,
        items: Vec<Item>,
    ) -> Result<(), Problem> {
        let items: Vec<Item> = items.into_iter().filter(|item| !only_in_tests(item)).collect();
        for item in &items {
            let Item::Mod(inner) = item else { continue };
            let name = inner.ident.to_string();
            let (path, folder) = (joined(&module, &name), format!("{folder}/{name}"));
            match &inner.content {
                Some((_, items)) => self.add(files, &folder, path, items.clone())?,
                None => {
                    let beside = format!("{folder}.rs");
                    let own = format!("{folder}/mod.rs");
                    let file = if files::find(files, &beside).is_some() { beside } else { own };
                    self.read_file(files, &file, &folder, path)?;
                }
            }
        }
        self.modules.insert(module, items);
        Ok(())
    }

    pub(super) fn items(&self, module: &[String]) -> &[Item] {
        self.modules.get(module).map_or(&[], Vec::as_slice)
    }

    /// All modules of a crate.
    pub(super) fn modules_of<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a ModulePath, &'a [Item])> {
        let own = move |(path, _): &(&ModulePath, &Vec<Item>)| path[0] == name;
        self.modules.iter().filter(own).map(|(path, items)| (path, items.as_slice()))
    }

    /// The names that a module exports by `pub use` and `pub mod`, with what they name; a definition
    /// that is not in this workspace has the path of the import. Hidden ones are left out.
    pub(super) fn exports(&self, module: &[String]) -> Vec<(String, Vec<Definition>)> {
        let mut exports = Vec::new();
        for item in self.items(module) {
            let Item::Use(item) = item else { continue };
            if !public(&item.vis) || hidden(&item.attrs) {
                continue;
            }
            for import in imports(&item.tree) {
                let Some(name) = import.name.filter(|name| name != "_") else { continue };
                exports.push((name, self.resolve(module, &import.path, 0)));
            }
        }
        exports
    }

    /// The definitions of a name as code of a module sees it: types, functions and macros may share
    /// one.
    pub(super) fn named(&self, module: &[String], name: &str) -> Vec<Definition> {
        self.find(module, name, 0)
    }

    /// The types, traits and aliases of a name that stand in the sources: not what a macro may write.
    pub(super) fn defined(&self, module: &[String], name: &str) -> Vec<Definition> {
        let in_source = |definition: &Definition| {
            self.items(&definition.module).iter().any(|item| {
                matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_))
                    && ident(item).is_some_and(|it| it == definition.name)
            })
        };
        self.named(module, name).into_iter().filter(in_source).collect()
    }

    fn resolve(&self, module: &[String], path: &[String], hops: usize) -> Vec<Definition> {
        let Some((name, above)) = path.split_last() else { return Vec::new() };
        match self.module_at(module, above, hops) {
            Some(target) => self.find(&target, name, hops + 1),
            None => Vec::new(),
        }
    }

    /// The module that a path names, seen from another.
    fn module_at(&self, module: &[String], path: &[String], hops: usize) -> Option<ModulePath> {
        let mut at = module.to_vec();
        for (index, segment) in path.iter().enumerate() {
            let child = joined(&at, segment);
            match segment.as_str() {
                "crate" => at.truncate(1),
                "self" => {}
                "super" => drop(at.pop()),
                _ if self.modules.contains_key(&child) => at = child,
                name if index == 0 && self.modules.contains_key(&vec![name.to_owned()]) => {
                    at = vec![name.to_owned()];
                }
                name => at = self.imported_module(&at, name, hops)?,
            }
        }
        Some(at)
    }

    /// A module that another re-exports or imports.
    fn imported_module(&self, module: &[String], name: &str, hops: usize) -> Option<ModulePath> {
        if hops > HOPS_MAX {
            return None;
        }
        self.imports(module).find(|import| import.name.as_deref() == Some(name)).and_then(
            |import| {
                let (last, above) = import.path.split_last()?;
                let at = self.module_at(module, above, hops + 1)?;
                let target = if last == "self" { at } else { joined(&at, last) };
                self.modules.contains_key(&target).then_some(target)
            },
        )
    }

    fn find(&self, module: &[String], name: &str, hops: usize) -> Vec<Definition> {
        if hops > HOPS_MAX {
            return Vec::new();
        }
        if self.items(module).iter().any(|item| ident(item).is_some_and(|it| it == name)) {
            return vec![Definition { module: module.to_vec(), name: name.to_owned() }];
        }
        for import in self.imports(module) {
            let found = match &import.name {
                Some(exposed) if exposed == name => self.resolve(module, &import.path, hops + 1),
                Some(_) => continue,
                None => self
                    .module_at(module, &import.path, hops + 1)
                    .filter(|target| target.as_slice() != module)
                    .map(|target| self.find(&target, name, hops + 1))
                    .unwrap_or_default(),
            };
            if !found.is_empty() {
                return found;
            }
        }
        self.made_by_macro(module, name).into_iter().collect()
    }

    /// A name that a macro defines: an exported macro, which belongs to the root of its crate, or an
    /// item that a macro call writes.
    fn made_by_macro(&self, module: &[String], name: &str) -> Option<Definition> {
        let exported = |item: &Item| {
            ident(item).is_some_and(|it| it == name)
                && matches!(item, Item::Macro(item) if has(&item.attrs, "macro_export"))
        };
        let written = |item: &Item| {
            matches!(item, Item::Macro(item)
                if item.ident.is_none() && mentions(&item.mac.tokens, name))
        };
        let definition =
            |module: &[String]| Definition { module: module.to_vec(), name: name.to_owned() };
        if self.items(module).iter().any(written) {
            return Some(definition(module));
        }
        let root = (module.len() == 1).then(|| self.modules_of(&module[0]));
        let home = root?.find(|(_, items)| items.iter().any(exported))?.0;
        Some(definition(home))
    }

    fn imports(&self, module: &[String]) -> impl Iterator<Item = Import> {
        let uses = self.items(module).iter().filter_map(|item| match item {
            Item::Use(item) => Some(imports(&item.tree)),
            _ => None,
        });
        uses.flatten()
    }
}

fn joined(module: &[String], name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// All names of a `use`.
fn imports(tree: &UseTree) -> Vec<Import> {
    fn walk(tree: &UseTree, above: &[String], found: &mut Vec<Import>) {
        let below = |name: String| joined(above, &name);
        match tree {
            UseTree::Path(path) => walk(&path.tree, &below(path.ident.to_string()), found),
            UseTree::Name(name) if name.ident == "self" => {
                found.push(Import { name: above.last().cloned(), path: above.to_vec() });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                found.push(Import { name: Some(name.clone()), path: below(name) });
            }
            UseTree::Rename(rename) => {
                let name = Some(rename.rename.to_string());
                found.push(Import { name, path: below(rename.ident.to_string()) });
            }
            UseTree::Glob(_) => found.push(Import { name: None, path: above.to_vec() }),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| walk(tree, above, found));
            }
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

/// The name of an item, if it defines one.
pub(super) fn ident(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

pub(super) const fn public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident(name))
}

/// Whether the tokens have this identifier, at any depth.
pub(super) fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Whether it is `#[doc(hidden)]`.
pub(super) fn hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.meta.to_token_stream().to_string().contains("hidden")
    })
}

fn only_in_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Mod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.to_token_stream().to_string() == "cfg (test)"
    })
}
