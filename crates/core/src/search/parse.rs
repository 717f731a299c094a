//! The parser of queries. Names are looked up and values read as their type at once, so that every error
//! knows its column.
//!
//! ```text
//! query  = [any] [ORDER BY time [ASC | DESC] | GROUP BY field]
//! any    = all { OR all }
//! all    = not { AND not }
//! not    = { NOT } ( "(" any ")" | test )
//! test   = field ( sign value | [NOT] IN "(" value { "," value } ")" | [NOT] BETWEEN value AND value
//!                | [NOT] STARTS_WITH text | IS [NOT] NULL )
//! ```

use super::{
    Check, Comparison, Condition, Definitions, Field, Order, OrderField, QUERY_DEPTH, QUERY_TESTS,
    Query, QueryError, SystemField, Test, Value,
    error::meant,
    lexer::{Token, TokenKind, tokens},
    literal,
};

impl Query {
    /// Reads a query of a namespace that has these search attributes. An empty one is passed by every run.
    pub fn parse(text: &str, attributes: &Definitions) -> Result<Self, QueryError> {
        let tokens = tokens(text)?;
        Parser { tokens: &tokens, at: 0, attributes, depth: 0, tests: 0 }.query()
    }

    /// Whether a query counts runs by a field, if it can be read.
    pub fn asks_for_groups(text: &str) -> bool {
        let tokens = tokens(text).unwrap_or_default();
        tokens.iter().any(|token| token.kind.is("GROUP"))
    }

    /// The order that a query asks for. Attributes have no part in it, so clients know it too. A query
    /// that cannot be read has the usual one.
    pub fn order_of(text: &str) -> Order {
        let tokens = tokens(text).unwrap_or_default();
        let Some(at) = tokens.iter().position(|token| token.kind.is("ORDER")) else {
            return Order::default();
        };
        let attributes = &Definitions::default();
        let mut parser = Parser { tokens: &tokens, at, attributes, depth: 0, tests: 0 };
        parser.next();
        let any = Condition::Test(Test {
            field: Field::System(SystemField::CloseTime),
            check: Check::Known,
        });
        parser.require("BY").and_then(|()| parser.order(&any)).unwrap_or_default()
    }
}

struct Parser<'a> {
    /// The last one is the end.
    tokens: &'a [Token],
    at: usize,
    attributes: &'a Definitions,
    depth: usize,
    tests: usize,
}

impl<'a> Parser<'a> {
    fn query(mut self) -> Result<Query, QueryError> {
        let bare = self.is("ORDER") || self.is("GROUP") || self.peek().kind == TokenKind::End;
        let condition = if bare { Condition::default() } else { self.any()? };
        let mut query = Query { condition, ..Query::default() };
        if self.take("ORDER") {
            self.require("BY")?;
            query.order = self.order(&query.condition)?;
        } else if self.take("GROUP") {
            self.require("BY")?;
            query.group = Some(self.group()?);
        }
        if self.is("ORDER") || self.is("GROUP") {
            let hint = "lists are ordered, counts are grouped";
            return Err(self.error("a query has ORDER BY or GROUP BY, not both").hint(hint));
        }
        if self.is("LIMIT") {
            let error = self.error("a query has no LIMIT");
            return Err(error.hint("the list itself takes the number of rows: --limit 10"));
        }
        match &self.peek().kind {
            TokenKind::End => Ok(query),
            TokenKind::Sign(")") => Err(self.error("there is no ( for this )")),
            TokenKind::Word(_)
            | TokenKind::Quoted(_)
            | TokenKind::Text(_)
            | TokenKind::Number(_)
            | TokenKind::Sign(_) => Err(self.expected("AND, OR, ORDER BY, GROUP BY or the end")),
        }
    }

    fn any(&mut self) -> Result<Condition, QueryError> {
        let mut parts = vec![self.all()?];
        while self.take("OR") {
            parts.push(self.all()?);
        }
        Ok(Condition::any(parts))
    }

    fn all(&mut self) -> Result<Condition, QueryError> {
        let mut parts = vec![self.not()?];
        while self.take("AND") {
            parts.push(self.not()?);
        }
        Ok(Condition::all(parts))
    }

    fn not(&mut self) -> Result<Condition, QueryError> {
        let mut negated = false;
        while self.take("NOT") {
            negated = !negated;
        }
        let condition =
            if self.take_sign("(") { self.group_of_conditions()? } else { self.test()? };
        Ok(if negated { condition.negated() } else { condition })
    }

    /// What stands in parentheses; the first one is taken.
    fn group_of_conditions(&mut self) -> Result<Condition, QueryError> {
        if self.depth == QUERY_DEPTH {
            let problem = format!("more than {QUERY_DEPTH} parentheses stand within each other");
            return Err(self.error(&problem));
        }
        self.depth += 1;
        let condition = self.any()?;
        self.depth -= 1;
        if self.take_sign(")") {
            return Ok(condition);
        }
        Err(self.expected("AND, OR or )"))
    }

    fn test(&mut self) -> Result<Condition, QueryError> {
        if self.tests == QUERY_TESTS {
            let problem = format!("a query has at most {QUERY_TESTS} comparisons");
            return Err(self.error(&problem).hint("use IN for many values of one field"));
        }
        self.tests += 1;
        let field = self.field()?;
        let negated = self.take("NOT");
        let (check, negates) = self.check(&field)?;
        let condition = Condition::of(Test { field, check });
        Ok(if negated != negates { condition.negated() } else { condition })
    }

    /// A check of the field, and whether the opposite is meant.
    fn check(&mut self, field: &Field) -> Result<(Check, bool), QueryError> {
        let operator = self.peek().clone();
        let negated = self.at > 0 && self.tokens[self.at - 1].kind.is("NOT");
        if self.take("IN") {
            return Ok((one_of(self.list(field)?), false));
        }
        if self.take("BETWEEN") {
            self.allow(field, field.field_type().ordered(), &operator)?;
            let from = self.value(field)?;
            self.require("AND")?;
            return Ok((Check::Between(from, self.value(field)?), false));
        }
        if self.take("STARTS_WITH") {
            self.allow(field, field.field_type().prefixed(), &operator)?;
            let prefix = literal::prefix(field, self.next())?;
            return Ok((Check::StartsWith(prefix), false));
        }
        if negated {
            return Err(self.expected("IN, BETWEEN or STARTS_WITH"));
        }
        if self.take("IS") {
            let known = self.take("NOT");
            self.require("NULL")?;
            return Ok((Check::Known, !known));
        }
        let comparison = match &operator.kind {
            TokenKind::Sign("=") => return Ok((one_of(self.compared(field)?), false)),
            TokenKind::Sign("!=" | "<>") => return Ok((one_of(self.compared(field)?), true)),
            TokenKind::Sign("<") => Comparison::Less,
            TokenKind::Sign("<=") => Comparison::AtMost,
            TokenKind::Sign(">") => Comparison::More,
            TokenKind::Sign(">=") => Comparison::AtLeast,
            TokenKind::Word(_)
            | TokenKind::Quoted(_)
            | TokenKind::Text(_)
            | TokenKind::Number(_)
            | TokenKind::Sign(_)
            | TokenKind::End => {
                let operators = field.field_type().operators();
                return Err(
                    self.expected(&format!("an operator; {} has {operators}", field.name()))
                );
            }
        };
        self.next();
        self.allow(field, field.field_type().ordered(), &operator)?;
        Ok((Check::Compare(comparison, self.value(field)?), false))
    }

    /// The values after a sign.
    fn compared(&mut self, field: &Field) -> Result<Vec<Value>, QueryError> {
        self.next();
        if self.is("NULL") {
            return Err(self.error("nothing equals NULL").hint("write IS NULL or IS NOT NULL"));
        }
        literal::values(field, self.next())
    }

    fn value(&mut self, field: &Field) -> Result<Value, QueryError> {
        let token = self.next();
        // Only texts stand for several values, and they are not ordered.
        literal::values(field, token)?
            .pop()
            .ok_or_else(|| QueryError::new(token.column, "a value is missing"))
    }

    fn list(&mut self, field: &Field) -> Result<Vec<Value>, QueryError> {
        if !self.take_sign("(") {
            return Err(self.expected("( and a list of values"));
        }
        let mut values = Vec::new();
        loop {
            values.extend(literal::values(field, self.next())?);
            if self.take_sign(")") {
                return Ok(values);
            }
            if !self.take_sign(",") {
                return Err(self.expected(", or )"));
            }
        }
    }

    fn allow(&self, field: &Field, allowed: bool, operator: &Token) -> Result<(), QueryError> {
        if allowed {
            return Ok(());
        }
        let (name, shown) = (field.name(), operator.kind.shown());
        let problem = format!("{name} cannot be compared with {shown}");
        let hint = format!("it has {}", field.field_type().operators());
        Err(QueryError::new(operator.column, problem).hint(hint))
    }

    fn field(&mut self) -> Result<Field, QueryError> {
        let Token { column, kind } = self.peek().clone();
        let name = match kind {
            TokenKind::Quoted(name) => name,
            TokenKind::Word(word) if !KEYWORDS.iter().any(|it| it.eq_ignore_ascii_case(&word)) => {
                word
            }
            TokenKind::Word(_)
            | TokenKind::Text(_)
            | TokenKind::Number(_)
            | TokenKind::Sign(_)
            | TokenKind::End => return Err(self.expected("a field")),
        };
        self.next();
        if let Some(field) = SystemField::named(&name).filter(|field| field.name() == name) {
            return Ok(Field::System(field));
        }
        if let Some(kind) = self.attributes.get(&name) {
            return Ok(Field::Attribute(name, kind));
        }
        let known = SystemField::ALL.iter().map(|field| field.name());
        let near = meant(&name, known.chain(self.attributes.iter().map(|(name, _)| name)));
        Err(QueryError::new(column, format!("there is no field {name}")).hint(match near {
            Some(near) => format!("did you mean {near}?"),
            None => "register it as a search attribute of the namespace first".to_owned(),
        }))
    }

    fn order(&mut self, condition: &Condition) -> Result<Order, QueryError> {
        let column = self.peek().column;
        let by = match self.field()? {
            Field::System(SystemField::StartTime) => OrderField::StartTime,
            Field::System(SystemField::CloseTime) if condition.closed_only() => {
                OrderField::CloseTime
            }
            Field::System(SystemField::CloseTime) => {
                let problem = "open runs have no CloseTime to order them by";
                let hint = "leave them out: AND CloseTime IS NOT NULL";
                return Err(QueryError::new(column, problem).hint(hint));
            }
            field @ (Field::System(_) | Field::Attribute(..)) => {
                let problem = format!("lists cannot be ordered by {}", field.name());
                let hint = "order them by StartTime or CloseTime";
                return Err(QueryError::new(column, problem).hint(hint));
            }
        };
        let descending = !self.take("ASC") && (self.take("DESC") || by == OrderField::StartTime);
        Ok(Order { by, descending })
    }

    fn group(&mut self) -> Result<Field, QueryError> {
        let column = self.peek().column;
        let field = self.field()?;
        if field.groups() {
            return Ok(field);
        }
        let problem = format!("runs cannot be counted by {}", field.name());
        let hint = "count them by ExecutionStatus, WorkflowType, TaskQueue or an attribute of type \
                    keyword, keyword list, int or bool";
        Err(QueryError::new(column, problem).hint(hint))
    }

    fn peek(&self) -> &'a Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn is(&self, keyword: &str) -> bool {
        self.peek().kind.is(keyword)
    }

    fn take(&mut self, keyword: &str) -> bool {
        let found = self.is(keyword);
        self.at += usize::from(found);
        found
    }

    fn take_sign(&mut self, sign: &'static str) -> bool {
        let found = self.peek().kind == TokenKind::Sign(sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, keyword: &str) -> Result<(), QueryError> {
        if self.take(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    fn error(&self, problem: &str) -> QueryError {
        QueryError::new(self.peek().column, problem)
    }

    fn expected(&self, what: &str) -> QueryError {
        self.error(&format!("expected {what}, found {}", self.peek().kind.shown()))
    }
}

/// Words that are no names unless they stand in back quotes.
pub(super) const KEYWORDS: [&str; 15] = [
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "STARTS_WITH",
    "IS",
    "NULL",
    "ORDER",
    "GROUP",
    "BY",
    "ASC",
    "DESC",
    "TRUE",
    "FALSE",
];

fn one_of(mut values: Vec<Value>) -> Check {
    match values.pop() {
        Some(value) if values.is_empty() => Check::Compare(Comparison::Equal, value),
        last => {
            values.extend(last);
            Check::OneOf(values)
        }
    }
}

/// Whether an attribute may have this name: a word that means nothing else in a query.
pub(super) fn taken_name(name: &str) -> bool {
    SystemField::named(name).is_some()
        || KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name))
}
