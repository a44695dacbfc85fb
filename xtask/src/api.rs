//! The public API of `tenure`, as a list that is checked in.
//!
//! It is read from the sources, so that it needs no nightly compiler: everything that the
//! root of the crate and its public modules name, and of each type its fields, variants,
//! public methods and the traits that it implements by hand or derives. What it does not
//! see: items that a macro makes (their names are listed), bounds that a compiler infers,
//! and blanket implementations. A change that it sees is a change of `docs/api.txt`, and so
//! of the review.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

use crate::failure::{Doing, Failure, Outcome};

/// Where the list is.
const LIST: &str = "docs/api.txt";
/// The crate whose API it is, and those of whose items it names some.
const CRATES: [&str; 6] =
    ["tenure", "tenure-core", "tenure-store", "tenure-api", "tenure-sqlite", "tenure-postgres"];

/// Writes the list.
pub(crate) fn write(root: &Path) -> Outcome {
    let list = list(root)?;
    std::fs::write(root.join(LIST), list).doing(|| format!("write {LIST}"))
}

/// What the list should be.
pub(crate) fn list(root: &Path) -> Outcome<String> {
    let facade = root.join("crates/tenure/src");
    let lib = parse(&facade.join("lib.rs"))?;
    // What a public module defines is listed with it, from its own file.
    let public = |item: &Item| match item {
        Item::Mod(inside) if is_public(&inside.vis) => Some(inside.ident.to_string()),
        _ => None,
    };
    let apart: Vec<PathBuf> =
        lib.items.iter().filter_map(public).map(|name| facade.join(format!("{name}.rs"))).collect();
    let mut sources = BTreeMap::new();
    for name in CRATES {
        let mut source = Source::default();
        source.read(&root.join("crates").join(name).join("src"), &apart)?;
        sources.insert(name.replace('-', "_"), source);
    }
    let mut out = String::from(
        "The public API of the crate tenure, with all features, as `cargo xtask api` lists it.\n",
    );
    module(&mut out, "tenure", &lib.items, &facade, &sources)?;
    Ok(out)
}

/// Stands for the module itself in a path.
const OWN: &str = "<own>";

/// A public module, and those in it.
fn module(
    out: &mut String,
    path: &str,
    items: &[Item],
    dir: &Path,
    sources: &BTreeMap<String, Source>,
) -> Outcome {
    let mut own = Source::default();
    own.take(items);
    let mut names = BTreeMap::new();
    let mut inner = Vec::new();
    for item in items.iter().filter(|item| is_shown(attributes(item))) {
        match item {
            Item::Use(used) if is_public(&used.vis) => {
                let mut found = Vec::new();
                leaves(&used.tree, &mut Vec::new(), &mut found);
                for (segments, name) in found {
                    names.insert(name, segments);
                }
            }
            Item::Mod(inside) if is_public(&inside.vis) => inner.push(inside),
            other => {
                if let Some(name) = public_name(other) {
                    names.insert(name.clone(), vec![OWN.into(), name]);
                }
            }
        }
    }
    let _ = write!(out, "\nmod {path}\n");
    for (name, segments) in names {
        let from = segments.first().map(String::as_str);
        let of = match from {
            Some(OWN) => Some(&own),
            from => sources.get(from.unwrap_or_default()).or_else(|| sources.get("tenure")),
        };
        let original = segments.last().cloned().unwrap_or_else(|| name.clone());
        let told = of.and_then(|source| source.items.get(&original));
        match told {
            Some(told) => {
                let renamed =
                    if original == name { String::new() } else { format!(" (as {name})") };
                for line in &told.lines {
                    let _ = writeln!(out, "  {line}{renamed}");
                }
                for line in &told.within {
                    let _ = writeln!(out, "    {line}");
                }
            }
            None => {
                let _ = writeln!(out, "  use {} as {name}", segments.join("::"));
            }
        }
    }
    for inside in inner {
        let name = inside.ident.to_string();
        let path = format!("{path}::{name}");
        match &inside.content {
            Some((_, items)) => module(out, &path, items, dir, sources)?,
            None => {
                let file = [dir.join(format!("{name}.rs")), dir.join(&name).join("mod.rs")]
                    .into_iter()
                    .find(|file| file.exists());
                let file = file.ok_or_else(|| Failure::new(format!("{path} has no file")))?;
                module(out, &path, &parse(&file)?.items, &dir.join(&name), sources)?;
            }
        }
    }
    Ok(())
}

/// What is known of one name of a crate.
#[derive(Default)]
struct Told {
    lines: BTreeSet<String>,
    /// Fields, variants, methods and traits.
    within: BTreeSet<String>,
}

/// The public items of a crate, by name.
#[derive(Default)]
struct Source {
    items: BTreeMap<String, Told>,
}

impl Source {
    /// Reads a folder, but for the files that are listed apart.
    fn read(&mut self, dir: &Path, apart: &[PathBuf]) -> Outcome {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
            .doing(|| format!("read {}", dir.display()))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && name != "tests" {
                self.read(&path, apart)?;
            } else if !apart.contains(&path) && name.ends_with(".rs") && name != "tests.rs" {
                self.take(&parse(&path)?.items);
            }
        }
        Ok(())
    }

    fn take(&mut self, items: &[Item]) {
        for item in items.iter().filter(|item| is_shown(attributes(item))) {
            match item {
                Item::Impl(block) => self.take_impl(block),
                Item::Mod(inside) => {
                    if let Some((_, items)) = &inside.content {
                        self.take(items);
                    }
                }
                Item::Macro(called) => self.take_macro(called),
                other => self.take_item(other),
            }
        }
    }

    fn take_item(&mut self, item: &Item) {
        let Some(name) = public_name(item) else { return };
        let told = self.items.entry(name).or_default();
        let marks = marks(attributes(item));
        match item {
            Item::Struct(it) => {
                told.lines.insert(format!("{marks}struct {}{}", it.ident, text(&it.generics)));
                told.within.extend(fields(&it.fields));
            }
            Item::Enum(it) => {
                told.lines.insert(format!("{marks}enum {}{}", it.ident, text(&it.generics)));
                for variant in &it.variants {
                    let inside: Vec<_> = all_fields(&variant.fields);
                    let inside = inside.join(", ");
                    let inside =
                        if inside.is_empty() { inside } else { format!(" {{ {inside} }}") };
                    told.within.insert(format!("variant {}{inside}", variant.ident));
                }
            }
            Item::Trait(it) => {
                told.lines.insert(format!("{marks}trait {}: {}", it.ident, text(&it.supertraits)));
                for inside in &it.items {
                    if let TraitItem::Fn(f) = inside {
                        told.within.insert(text(&f.sig));
                    }
                }
            }
            Item::Fn(it) => drop(told.lines.insert(text(&it.sig))),
            Item::Const(it) => {
                told.lines.insert(format!("const {}: {}", it.ident, text(&it.ty)));
            }
            Item::Type(it) => {
                let line = format!("type {}{} = {}", it.ident, text(&it.generics), text(&it.ty));
                told.lines.insert(line);
            }
            _ => {}
        }
    }

    fn take_impl(&mut self, block: &syn::ItemImpl) {
        let syn::Type::Path(of) = &*block.self_ty else { return };
        let Some(last) = of.path.segments.last() else { return };
        let told = self.items.entry(last.ident.to_string()).or_default();
        if let Some((_, of, _)) = &block.trait_ {
            told.within.insert(format!("impl {}", text(of)));
            return;
        }
        for item in &block.items {
            match item {
                ImplItem::Fn(f) if is_public(&f.vis) && is_shown(&f.attrs) => {
                    told.within.insert(text(&f.sig));
                }
                ImplItem::Const(it) if is_public(&it.vis) => {
                    told.within.insert(format!("const {}: {}", it.ident, text(&it.ty)));
                }
                _ => {}
            }
        }
    }

    /// Types that a macro makes: the last words before a comma or the end are their names.
    fn take_macro(&mut self, called: &syn::ItemMacro) {
        if called.ident.is_some() {
            return;
        }
        let made = called.mac.path.segments.last().map(|last| last.ident.to_string());
        for token in called.mac.tokens.clone() {
            if let proc_macro2::TokenTree::Ident(name) = token {
                let line = format!("made by {}!: {name}", made.as_deref().unwrap_or_default());
                self.items.entry(name.to_string()).or_default().lines.insert(line);
            }
        }
    }
}

fn parse(path: &Path) -> Outcome<syn::File> {
    let text = std::fs::read_to_string(path).doing(|| format!("read {}", path.display()))?;
    syn::parse_file(&text).doing(|| format!("parse {}", path.display()))
}

/// The names that a `use` brings in, each with the path to it.
fn leaves(tree: &UseTree, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    match tree {
        UseTree::Path(path) => {
            at.push(path.ident.to_string());
            leaves(&path.tree, at, found);
            at.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, at, found)),
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            let path = [at.as_slice(), std::slice::from_ref(&name)].concat();
            found.push((path, name));
        }
        UseTree::Rename(name) => {
            let path = [at.as_slice(), &[name.ident.to_string()]].concat();
            found.push((path, name.rename.to_string()));
        }
        UseTree::Glob(_) => found.push((at.clone(), "*".into())),
    }
}

fn fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis));
    public.map(field).collect()
}

fn all_fields(fields: &Fields) -> Vec<String> {
    fields.iter().map(field).collect()
}

fn field(field: &syn::Field) -> String {
    match &field.ident {
        Some(name) => format!("{name}: {}", text(&field.ty)),
        None => text(&field.ty),
    }
}

/// What an attribute says that users see.
fn marks(attributes: &[Attribute]) -> String {
    let mut marks = String::new();
    for attribute in attributes {
        let path = attribute.path();
        if path.is_ident("non_exhaustive") || path.is_ident("must_use") {
            let _ = write!(marks, "#[{}] ", text(path));
        } else if path.is_ident("derive")
            && let Ok(list) = attribute.meta.require_list()
        {
            let _ = write!(marks, "#[derive({})] ", text(&list.tokens));
        }
    }
    marks
}

/// Tests and what is hidden from documentation are no part of the API.
fn is_shown(attributes: &[Attribute]) -> bool {
    !attributes.iter().any(|attribute| {
        let said = text(&attribute.meta);
        said.contains("cfg(test") || said.contains("any(test") || said == "doc(hidden)"
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn public_name(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Struct(it) => (&it.vis, &it.ident),
        Item::Enum(it) => (&it.vis, &it.ident),
        Item::Trait(it) => (&it.vis, &it.ident),
        Item::Fn(it) => (&it.vis, &it.sig.ident),
        Item::Const(it) => (&it.vis, &it.ident),
        Item::Type(it) => (&it.vis, &it.ident),
        _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Const(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// The tokens with the spaces that people write, nearly.
fn text(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (long, short) in [
        (" :: ", "::"),
        (" < ", "<"),
        (" > ", "> "),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        ("> (", ">("),
        (" ;", ";"),
    ] {
        text = text.replace(long, short);
    }
    text.replace("->", " -> ").replace("  ", " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the public API is a change of this list: run `cargo xtask api`, and say in
    /// the CHANGELOG what changed.
    #[test]
    fn the_public_api_is_as_it_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        let is = list(root).unwrap_or_else(|failure| panic!("{failure}"));
        let listed = std::fs::read_to_string(root.join(LIST)).unwrap_or_default();
        let differs = |(is, listed): &(&str, &str)| is != listed;
        let first = is.lines().zip(listed.lines()).find(differs);
        assert!(
            is == listed,
            "the public API differs from {LIST}: run `cargo xtask api`. The first difference: {first:?}"
        );
    }

    /// What is added, removed or changed in a type that is exported is seen.
    #[test]
    fn a_method_a_field_and_a_variant_are_listed() {
        let file = syn::parse_file(
            "#[non_exhaustive] pub enum E { A { x: u8 }, B(String) }\n\
             pub struct S { pub a: u8, b: u8 }\n\
             impl S { pub fn f(&self, n: u8) -> Option<u8> { None } fn g(&self) {} }\n\
             impl Clone for S { fn clone(&self) -> S { todo!() } }\n\
             #[cfg(test)] pub fn hidden() {}",
        );
        let mut source = Source::default();
        source.take(&file.unwrap_or_else(|e| panic!("{e}")).items);
        let lines = |name: &str| -> Vec<String> {
            let told = &source.items[name];
            told.lines.iter().chain(&told.within).cloned().collect()
        };
        assert_eq!(
            lines("E"),
            ["#[non_exhaustive] enum E", "variant A { x: u8 }", "variant B { String }"]
        );
        let of_s = lines("S");
        assert!(of_s.contains(&"a: u8".to_owned()) && !of_s.iter().any(|l| l.starts_with("b:")));
        assert!(
            of_s.iter().any(|line| line.starts_with("fn f(&self, n: u8) -> Option<u8>")),
            "{of_s:?}"
        );
        assert!(of_s.contains(&"impl Clone".to_owned()) && !source.items.contains_key("hidden"));
    }
}
