//! Fingerprint of a predicate: a hash of its tokens that ignores formatting and the name of the
//! argument.
//!
//! It has two parts: a hash with the argument bound by position, and the hash that older versions
//! of this macro computed, with the argument's name, by which existing histories identify the
//! predicate. Where a use of the name is ambiguous, only the second part exists.
//!
//! Pinned by tests: histories hold these values.

use std::hash::Hasher as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use syn::{
    AngleBracketedGenericArguments, Block, Expr, ExprBlock, ExprClosure, Pat, PatOr, Stmt, Token,
    visit_mut::{self, VisitMut},
};

use crate::position::by_position;

/// The fingerprint of a closure on the state.
pub(crate) fn fingerprint(argument: &Pat, body: &Expr) -> String {
    let pattern = match argument {
        Pat::Type(typed) => &*typed.pat,
        pattern => pattern,
    };
    let mut body = body.clone();
    Layout.visit_expr_mut(&mut body);
    let by_name = hash(pattern.to_token_stream(), &body);
    match by_position(pattern, &body) {
        // No name is empty, so this hash differs from every hash by name.
        Some(body) => format!("{}-{by_name}", hash(TokenStream::new(), &body)),
        None => by_name,
    }
}

fn hash(argument: TokenStream, body: &Expr) -> String {
    let mut hasher = SipHasher24::new();
    write(&mut hasher, argument);
    hasher.write(b"|\0");
    write(&mut hasher, body.to_token_stream());
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Normalises what formatters change: braces around one expression, nested parentheses, commas
/// after the arms of a match and at the end of a list without its own bracket, bars before a
/// pattern.
struct Layout;

impl VisitMut for Layout {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        while let Some(inner) = braced(expr).or_else(|| parenthesised_twice(expr)) {
            *expr = inner;
        }
        if let Expr::Match(expr) = expr {
            expr.arms.iter_mut().for_each(|arm| arm.comma = Some(<Token![,]>::default()));
        }
        visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        closure.inputs.pop_punct();
        visit_mut::visit_expr_closure_mut(self, closure);
    }

    fn visit_angle_bracketed_generic_arguments_mut(
        &mut self,
        generic: &mut AngleBracketedGenericArguments,
    ) {
        generic.args.pop_punct();
        visit_mut::visit_angle_bracketed_generic_arguments_mut(self, generic);
    }

    fn visit_pat_or_mut(&mut self, pattern: &mut PatOr) {
        pattern.leading_vert = None;
        visit_mut::visit_pat_or_mut(self, pattern);
    }
}

/// The single expression of a block that does nothing else.
fn braced(expr: &Expr) -> Option<Expr> {
    let Expr::Block(ExprBlock { attrs, label: None, block: Block { stmts, .. } }) = expr else {
        return None;
    };
    match stmts.as_slice() {
        [Stmt::Expr(inner, None)] if attrs.is_empty() => Some(inner.clone()),
        _ => None,
    }
}

/// The inner expression of nested parentheses, with one pair of them.
fn parenthesised_twice(expr: &Expr) -> Option<Expr> {
    let Expr::Paren(outer) = expr else { return None };
    matches!(&*outer.expr, Expr::Paren(_)).then(|| (*outer.expr).clone())
}

/// Hashes token by token. Whitespace and a trailing comma do not count.
fn write(hasher: &mut SipHasher24, tokens: TokenStream) {
    let mut tokens: Vec<_> = tokens.into_iter().collect();
    if matches!(tokens.last(), Some(TokenTree::Punct(last)) if last.as_char() == ',') {
        tokens.pop();
    }
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close): (&[u8], &[u8]) = match group.delimiter() {
                    Delimiter::Parenthesis => (b"(\0", b")\0"),
                    Delimiter::Brace => (b"{\0", b"}\0"),
                    Delimiter::Bracket => (b"[\0", b"]\0"),
                    Delimiter::None => (b"", b""),
                };
                hasher.write(open);
                write(hasher, group.stream());
                hasher.write(close);
            }
            token => hasher.write(format!("{token}\0").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::*;

    fn of(closure: &str) -> String {
        let closure: ExprClosure = parse_str(closure).unwrap();
        fingerprint(&closure.inputs[0], &closure.body)
    }

    /// The part that existing histories hold.
    fn by_name(closure: &str) -> String {
        let fingerprint = of(closure);
        fingerprint.rsplit_once('-').map_or(fingerprint.clone(), |(_, old)| old.to_owned())
    }

    #[test]
    fn values_are_pinned() {
        assert_eq!(by_name("|s| s.paid"), "47944c522715ba365f985f16c0c7a6ae");
        assert_eq!(by_name("|s| s.sum(&[1, 2]) > 3"), "c6ebbb051234d566eeb274606fdb1b75");
        let both = "12f219d310a9b86ecf24453387b775ed-47944c522715ba365f985f16c0c7a6ae";
        assert_eq!(of("|s| s.paid"), both);
        assert_eq!(of("|Order { paid, .. }| *paid"), by_name("|Order { paid, .. }| *paid"));
    }

    /// The part that does not depend on the argument's name.
    fn by_position(closure: &str) -> Option<String> {
        of(closure).split_once('-').map(|(new, _)| new.to_owned())
    }

    #[test]
    fn the_name_of_the_argument_does_not_count() {
        let same = [
            ("|s| s.paid", "|order| order.paid"),
            ("|s| s.s && s.paid", "|t| t.s && t.paid"),
            ("|s| matches!(s.state, A | B)", "|t| matches!(t.state, A | B)"),
            ("|s| s.all(|x| x.ok && s.on)", "|t| t.all(|x| x.ok && t.on)"),
            ("|s| check(s)", "|t| check(t)"),
            ("|s| Both { s }.ok()", "|t| Both { s: t }.ok()"),
        ];
        for (one, other) in same {
            assert!(by_position(one).is_some(), "{one}");
            assert_eq!(by_position(one), by_position(other), "{one}");
        }
        let different = [
            ("|s| s.s", "|t| t.t"),
            ("|s| s.paid", "|t| s.paid"),
            ("|s| check(s, t)", "|t| check(s, t)"),
        ];
        for (one, other) in different {
            assert_ne!(by_position(one), by_position(other), "{one}");
        }
    }

    /// Then a changed name blocks the run, like every other change.
    #[test]
    fn an_argument_that_cannot_be_told_from_others_is_hashed_by_name() {
        let unclear = [
            "|s| s.all(|s| s.ok)",
            "|s| { let s = s.paid; s }",
            "|s| matches!(s.state, Some(s) if s.ok)",
            "|s| matches!(0..s.len(), _)",
            "|s| format!(\"{s}\").is_empty()",
            "|s| matches!(s, A | B)",
        ];
        for closure in unclear {
            assert_eq!(by_position(closure), None, "{closure}");
        }
    }

    #[test]
    fn layout_and_comments_do_not_count() {
        let same = [
            ("|s| s.paid && s.count >= 3", "|s| s.paid\n    && /* enough */ s.count>=3 // so"),
            ("|s| s.paid", "|s| { s.paid }"),
            ("|s| s.paid", "|s: &Order| s.paid"),
            ("|s| s.has(1, 2)", "|s| s.has(\n    1,\n    2,\n)"),
            ("|s| matches!(s.state, A | B)", "|s| matches!(s.state, A|B,)"),
            ("|s| match s.x { A => s.y, B => s.z }", "|s| match s.x { A => { s.y } B => s.z, }"),
            ("|s| s.all(|x| x.ok)", "|s| s.all(|x| { x.ok })"),
            ("|s| s.map::<A, B>().ok", "|s| s.map::<A, B,>().ok"),
            ("|s| s.fold(0, |a, b| a + b) > 3", "|s| s.fold(0, |a, b,| a + b) > 3"),
            ("|s| ((s.a || s.b)) && s.c", "|s| (s.a || s.b) && s.c"),
            (
                "|s| match s.x { A | B => s.y, _ => s.z }",
                "|s| match s.x { | A | B => s.y, _ => s.z }",
            ),
        ];
        for (one, other) in same {
            assert_eq!(of(one), of(other), "{one}");
        }
    }

    #[test]
    fn another_predicate_is_another_fingerprint() {
        let different = [
            "|s| s.paid",
            "|s| !s.paid",
            "|s| s.paid_twice",
            "|s| s.paid && s.sent",
            "|s| s.paid || s.sent",
            "|s| s.count > 3",
            "|s| s.count >= 3",
            "|s| s.count >= 4",
            "|s| (s.a || s.b) && s.c",
            "|s| s.a || s.b && s.c",
            "|s| { s.log(); s.paid }",
            "|s| s.name == \"a b\"",
            "|s| s.name == \"ab\"",
        ];
        for (index, one) in different.iter().enumerate() {
            for other in &different[index + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }
}
