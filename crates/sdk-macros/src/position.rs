//! Rewrites a predicate so that its argument is bound by position: every use of the argument gets
//! the same name. It gives up where a use is ambiguous: a name that is bound again, or that a macro
//! may interpret in another way.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Expr, ExprPath, FieldValue, Macro, Member, Pat, PatIdent,
    visit_mut::{self, VisitMut},
};

/// Name that replaces every argument name.
const POSITION: &str = "__0";

/// Body with the argument bound by position; `None` if a use is ambiguous.
pub(crate) fn by_position(argument: &Pat, body: &Expr) -> Option<Expr> {
    let Pat::Ident(PatIdent { by_ref: None, ident, subpat: None, .. }) = argument else {
        return None;
    };
    let mut body = body.clone();
    let mut binder = Binder { name: ident.clone(), certain: true };
    binder.visit_expr_mut(&mut body);
    binder.certain.then_some(body)
}

struct Binder {
    name: Ident,
    certain: bool,
}

impl VisitMut for Binder {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        self.certain &= !matches!(expr, Expr::Verbatim(_));
        visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if path.path.is_ident(&self.name) {
            path.path = position().into();
        }
    }

    /// Expands the shorthand `Both { s }` to `Both { s: s }`.
    fn visit_field_value_mut(&mut self, field: &mut FieldValue) {
        if matches!(&field.member, Member::Named(name) if *name == self.name) {
            field.colon_token.get_or_insert_default();
        }
        visit_mut::visit_field_value_mut(self, field);
    }

    /// The name is bound again.
    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        self.certain &= pattern.ident != self.name;
        visit_mut::visit_pat_ident_mut(self, pattern);
    }

    fn visit_macro_mut(&mut self, call: &mut Macro) {
        call.tokens = self.bind(std::mem::take(&mut call.tokens));
    }
}

impl Binder {
    /// Binds the argument among the tokens of a macro: as `name.something`, and nowhere else.
    fn bind(&mut self, tokens: TokenStream) -> TokenStream {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let dot = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == '.');
        let before =
            |index: usize, back: usize| index.checked_sub(back).and_then(|at| tokens.get(at));
        let bound = tokens.iter().enumerate().map(|(index, token)| match token {
            TokenTree::Ident(ident) if *ident == self.name => {
                let field = dot(before(index, 1)) && !dot(before(index, 2));
                if field {
                    return token.clone();
                }
                self.certain &= dot(tokens.get(index + 1)) && !dot(before(index, 1));
                TokenTree::Ident(position())
            }
            TokenTree::Group(group) => {
                let stream = self.bind(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), stream))
            }
            TokenTree::Literal(literal) => {
                // Format strings may name it.
                self.certain &= !literal.to_string().contains(&format!("{{{}", self.name));
                token.clone()
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => token.clone(),
        });
        bound.collect()
    }
}

fn position() -> Ident {
    Ident::new(POSITION, Span::call_site())
}
