//! Rust that can be broken without building it anew: each mutant is a switch in the code,
//! which is off unless it is named when a test is started.
//!
//! What is broken: a term of a condition is left out (of AND it is true, of OR false), a
//! comparison, a condition, a question and a truth value are turned round, a bound is moved by
//! one, the right side of `+` and `-` is nothing, a statement is left out, a function returns
//! at once with nothing. Code under `cfg(test)`, of constants, of `Debug` and `Display`, and in
//! macros is left as it is.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, BinOp, Block, Expr, ImplItemFn, Item, ItemFn, ItemImpl, Lit, LitInt, ReturnType,
    Signature, Stmt, TraitItemFn, Type, UnOp, parse_quote,
};

use super::places::digest_of;

/// One mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    /// The same in every run for as long as what it breaks is there.
    pub(super) name: String,
    /// Of the function that it is in.
    pub(super) digest: String,
    pub(super) number: u32,
}

/// What every crate gets that is broken: its switches, and who reached which.
pub(super) const SUPPORT: &str = r#"
#[allow(warnings, clippy::all)]
#[doc(hidden)]
pub mod __switch {
    extern crate std;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static BROKEN: OnceLock<u32> = OnceLock::new();
    static LOG: OnceLock<Option<std::fs::File>> = OnceLock::new();
    static REACHED: [AtomicBool; 16384] = [const { AtomicBool::new(false) }; 16384];
    pub fn on(number: u32) -> bool {
        let broken = *BROKEN.get_or_init(|| {
            std::env::var("TENURE_SWITCH").ok().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX)
        });
        if broken == u32::MAX && !REACHED[number as usize].swap(true, Ordering::Relaxed) {
            let log = LOG.get_or_init(|| {
                let path = std::env::var_os("TENURE_SWITCH_REACHED")?;
                std::fs::OpenOptions::new().create(true).append(true).open(path).ok()
            });
            if let Some(mut log) = log.as_ref() {
                let _ = log.write_all(std::format!("{number}\n").as_bytes());
            }
        }
        broken == number
    }
    pub fn less<T: Default>(number: u32, value: T) -> T {
        if on(number) { T::default() } else { value }
    }
}
"#;

/// A file with its switches.
#[derive(Debug)]
pub(super) struct Switched {
    pub(super) text: String,
    pub(super) switches: Vec<Switch>,
}

/// Puts switches into a file, but for those that are named in `without`: they do not compile.
/// The first has the number `from`; names begin with `file`.
pub(super) fn switched(
    file: &str,
    text: &str,
    from: u32,
    without: &BTreeSet<String>,
) -> syn::Result<Switched> {
    let mut parsed = syn::parse_file(text)?;
    let mut maker = Maker {
        file,
        without,
        next: from,
        scope: Vec::new(),
        digest: String::new(),
        named: BTreeMap::new(),
        made: Vec::new(),
    };
    maker.visit_file_mut(&mut parsed);
    Ok(Switched { text: parsed.to_token_stream().to_string(), switches: maker.made })
}

struct Maker<'a> {
    file: &'a str,
    without: &'a BTreeSet<String>,
    next: u32,
    /// Types and functions around.
    scope: Vec<String>,
    digest: String,
    named: BTreeMap<String, usize>,
    made: Vec<Switch>,
}

impl Maker<'_> {
    /// A new switch; `None` outside of functions, and if it does not compile.
    fn switch(&mut self, what: &str, text: &str) -> Option<LitInt> {
        if self.digest.is_empty() {
            return None;
        }
        let words: Vec<_> = text.split_whitespace().collect();
        let short: String = words.join(" ").chars().take(90).collect();
        let mut name = format!("{} {}: {what} {short}", self.file, self.scope.join("::"));
        let times = self.named.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name += &format!(" #{times}");
        }
        if self.without.contains(&name) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.made.push(Switch { name, digest: self.digest.clone(), number });
        Some(LitInt::new(&format!("{number}u32"), Span::call_site()))
    }

    /// Turns what is true or false round.
    fn turn(&mut self, expr: &mut Expr, what: &str, text: &str) {
        if let Some(n) = self.switch(what, text) {
            let inner = expr.clone();
            *expr = parse_quote!((crate::__switch::on(#n) ^ (#inner)));
        }
    }

    fn function(&mut self, sig: &Signature, block: &mut Block, whole: String) {
        if sig.constness.is_some() {
            return;
        }
        let before = std::mem::replace(&mut self.digest, digest_of(&whole));
        self.scope.push(sig.ident.to_string());
        self.visit_block_mut(block);
        let mut first: Vec<Stmt> = Vec::new();
        for value in at_once(&sig.output) {
            if let Some(n) = self.switch("return at once", &value.to_string()) {
                first.push(parse_quote!(if crate::__switch::on(#n) { return #value; }));
            }
        }
        block.stmts.splice(0..0, first);
        self.scope.pop();
        self.digest = before;
    }

    /// The two sides of AND or OR, each of which may be left out.
    fn terms(&mut self, both: &mut syn::ExprBinary, texts: [String; 2]) {
        let and = matches!(both.op, BinOp::And(_));
        for (side, text) in [&mut both.left, &mut both.right].into_iter().zip(texts) {
            let same = matches!(&**side, Expr::Binary(inner) if is_same(&inner.op, &both.op));
            if same || has_let(side) {
                continue;
            }
            if let Some(n) = self.switch("leave out", &text) {
                let inner = side.clone();
                **side = match and {
                    true => parse_quote!((crate::__switch::on(#n) || (#inner))),
                    false => parse_quote!((!crate::__switch::on(#n) && (#inner))),
                };
            }
        }
    }

    fn bound(&mut self, expr: &mut Expr, text: &str) {
        let Expr::Binary(compared) = expr else { return };
        let moved: BinOp = match compared.op {
            BinOp::Lt(_) => parse_quote!(<=),
            BinOp::Le(_) => parse_quote!(<),
            BinOp::Gt(_) => parse_quote!(>=),
            BinOp::Ge(_) => parse_quote!(>),
            _ => return,
        };
        let Some(n) = self.switch("move the bound of", text) else { return };
        let syn::ExprBinary { left, op, right, .. } = compared;
        *expr = parse_quote!((match (&(#left), &(#right)) {
            (left, right) => if crate::__switch::on(#n) { left #moved right } else { left #op right }
        }));
    }

    fn nothing(&mut self, right: &mut Expr, text: &str) {
        let Some(n) = self.switch("nothing for", text) else { return };
        let inner = right.clone();
        *right = match &inner {
            Expr::Lit(lit) if matches!(lit.lit, Lit::Int(_)) => {
                parse_quote!((if crate::__switch::on(#n) { 0 } else { #inner }))
            }
            _ => parse_quote!(crate::__switch::less(#n, #inner)),
        };
    }

    /// A condition that is one question; one of several terms has its switches already.
    fn condition(&mut self, cond: &mut Expr) {
        let text = shown(cond);
        let asked = is_asked(cond);
        self.visit_expr_mut(cond);
        if !has_let(cond) && !asked {
            self.turn(cond, "turn", &text);
        }
    }
}

impl VisitMut for Maker<'_> {
    fn visit_item_mut(&mut self, item: &mut Item) {
        let skipped = match item {
            Item::Fn(it) => is_test(&it.attrs),
            Item::Mod(it) => is_test(&it.attrs),
            Item::Impl(it) => is_test(&it.attrs),
            Item::Const(_) | Item::Static(_) | Item::Macro(_) | Item::Use(_) => true,
            _ => false,
        };
        if !skipped {
            visit_mut::visit_item_mut(self, item);
        }
    }

    fn visit_item_impl_mut(&mut self, block: &mut ItemImpl) {
        let of = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|of| of.ident == "Debug" || of.ident == "Display") {
            return;
        }
        self.scope.push(shown(&block.self_ty));
        visit_mut::visit_item_impl_mut(self, block);
        self.scope.pop();
    }

    fn visit_item_fn_mut(&mut self, it: &mut ItemFn) {
        let whole = shown(it);
        self.function(&it.sig.clone(), &mut it.block, whole);
    }

    fn visit_impl_item_fn_mut(&mut self, it: &mut ImplItemFn) {
        let whole = shown(it);
        self.function(&it.sig.clone(), &mut it.block, whole);
    }

    fn visit_trait_item_fn_mut(&mut self, it: &mut TraitItemFn) {
        let whole = shown(it);
        if let Some(block) = &mut it.default {
            self.function(&it.sig.clone(), block, whole);
        }
    }

    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_trait_item_const_mut(&mut self, _: &mut syn::TraitItemConst) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}
    fn visit_expr_repeat_mut(&mut self, _: &mut syn::ExprRepeat) {}
    // A loop that does not end says little.
    fn visit_expr_while_mut(&mut self, it: &mut syn::ExprWhile) {
        self.visit_block_mut(&mut it.body);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        for stmt in &mut block.stmts {
            let text = shown(stmt);
            let dropped = matches!(stmt, Stmt::Expr(expr, Some(_)) if is_step(expr));
            visit_mut::visit_stmt_mut(self, stmt);
            if dropped && let Some(n) = self.switch("leave out", &text) {
                let inner = stmt.clone();
                *stmt = parse_quote!(if !crate::__switch::on(#n) { #inner });
            }
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if let Some((_, guard)) = &mut arm.guard {
            self.condition(guard);
        }
        self.visit_expr_mut(&mut arm.body);
    }

    fn visit_expr_if_mut(&mut self, it: &mut syn::ExprIf) {
        self.condition(&mut it.cond);
        self.visit_block_mut(&mut it.then_branch);
        if let Some((_, other)) = &mut it.else_branch {
            self.visit_expr_mut(other);
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let text = shown(expr);
        let sides = match expr {
            Expr::Binary(it) => [shown(&it.left), shown(&it.right)],
            _ => <[String; 2]>::default(),
        };
        let asked = is_asked(expr);
        visit_mut::visit_expr_mut(self, expr);
        match expr {
            Expr::Binary(it) if matches!(it.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.terms(it, sides);
            }
            Expr::Binary(it) if matches!(it.op, BinOp::Add(_) | BinOp::Sub(_)) => {
                self.nothing(&mut it.right, &text);
            }
            Expr::Binary(_) if asked => {
                self.bound(expr, &text);
                self.turn(expr, "turn", &text);
            }
            _ if asked => self.turn(expr, "turn", &text),
            _ => {}
        }
    }
}

/// What a function may return at once: nothing, and if it says yes or no, yes.
fn at_once(output: &ReturnType) -> Vec<proc_macro2::TokenStream> {
    let ReturnType::Type(_, of) = output else { return vec![quote!(())] };
    let Type::Path(path) = &**of else { return vec![quote!(Default::default())] };
    let last = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    match last.as_str() {
        "Result" | "Outcome" => vec![quote!(Ok(Default::default()))],
        "bool" => vec![quote!(false), quote!(true)],
        _ => vec![quote!(Default::default())],
    }
}

/// Whether it is a comparison, a negation, a truth value or a question by its name.
fn is_asked(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(it) => matches!(
            it.op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        ),
        Expr::Unary(it) => matches!(it.op, UnOp::Not(_)),
        Expr::Lit(it) => matches!(it.lit, Lit::Bool(_)),
        Expr::MethodCall(it) => {
            let name = it.method.to_string();
            let asks = ["is_", "has_", "may_", "owes", "contains", "starts_with", "ends_with"];
            asks.iter().any(|ask| name.starts_with(ask)) || name == "any" || name == "all"
        }
        _ => false,
    }
}

/// Whether it does something and its value is not used.
fn is_step(expr: &Expr) -> bool {
    match expr {
        Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) => true,
        Expr::Try(it) => is_step(&it.expr),
        Expr::Await(it) => is_step(&it.base),
        Expr::Binary(it) => it.op.to_token_stream().to_string().ends_with('='),
        _ => false,
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(it) => has_let(&it.left) || has_let(&it.right),
        _ => false,
    }
}

fn is_same(one: &BinOp, other: &BinOp) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

fn is_test(attributes: &[Attribute]) -> bool {
    let mut all = attributes.iter().map(shown);
    all.any(|text| text.contains("cfg (test") || text.contains("cfg (any (test"))
}

fn shown(it: &impl ToTokens) -> String {
    it.to_token_stream().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let made = switched("a.rs", text, 0, &BTreeSet::new()).unwrap();
        made.switches.into_iter().map(|switch| switch.name).collect()
    }

    #[test]
    fn each_kind_of_break_is_found_and_named() {
        let text =
            "impl T { fn f(&self, n: u32) -> bool { self.go(n + 1); n < 3 && self.is_in() } }";
        assert_eq!(
            names(text),
            [
                "a.rs T::f: nothing for n + 1",
                "a.rs T::f: leave out self . go (n + 1) ;",
                "a.rs T::f: move the bound of n < 3",
                "a.rs T::f: turn n < 3",
                "a.rs T::f: turn self . is_in ()",
                "a.rs T::f: leave out n < 3",
                "a.rs T::f: leave out self . is_in ()",
                "a.rs T::f: return at once false",
                "a.rs T::f: return at once true",
            ]
        );
    }

    #[test]
    fn what_no_test_is_about_is_left_as_it_is() {
        for text in [
            "const A: u32 = 1 + 2;",
            "#[cfg(test)] mod tests { fn f() { g(); } }",
            "impl fmt::Debug for T { fn fmt(&self) { g(); } }",
            "const fn f() -> u32 { 1 + 2 }",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }

    /// `if let` stays one: what stands beside it is a term like any other.
    #[test]
    fn a_condition_that_binds_keeps_binding() {
        let text = "fn f() { if let Some(a) = b && a.is_in() { g(); } }";
        let made = switched("a.rs", text, 7, &BTreeSet::new()).unwrap();
        assert!(made.text.contains("if let Some (a) = b &&"), "{}", made.text);
        assert_eq!(made.switches.first().map(|switch| switch.number), Some(7));
        syn::parse_file(&made.text).unwrap();
    }

    #[test]
    fn what_does_not_compile_is_left_out() {
        let text = "fn f(a: u32) { g(a + b); }";
        let without = BTreeSet::from(["a.rs f: nothing for a + b".to_owned()]);
        let made = switched("a.rs", text, 0, &without).unwrap();
        assert!(made.switches.iter().all(|switch| !without.contains(&switch.name)));
    }
}
