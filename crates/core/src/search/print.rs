//! A query as text. What is printed is read as the same query.

use std::fmt::{self, Display, Formatter};

use super::{
    Check, Comparison, Condition, Field, Order, OrderField, Query, SystemField, Test, Value,
    literal::{kind_name, status_name},
};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut space = "";
        if self.condition != Condition::default() {
            write!(f, "{}", self.condition)?;
            space = " ";
        }
        if self.order != Order::default() {
            let by = match self.order.by {
                OrderField::StartTime => SystemField::StartTime.name(),
                OrderField::CloseTime => SystemField::CloseTime.name(),
            };
            let direction = if self.order.descending { "DESC" } else { "ASC" };
            write!(f, "{space}ORDER BY {by} {direction}")?;
        }
        match &self.group {
            Some(field) => write!(f, "{space}GROUP BY {field}"),
            None => Ok(()),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(parts) => {
                let grouped = |part: &Self| matches!(part, Self::Any(_) | Self::All(_));
                joined(f, parts, " AND ", grouped)
            }
            Self::Any(parts) => joined(f, parts, " OR ", |part| matches!(part, Self::Any(_))),
            Self::Not(part) => match &**part {
                Self::Test(test) => test.print(f, true),
                Self::Wait(tests) if tests.len() == 1 => tests[0].print(f, true),
                part @ (Self::All(_) | Self::Any(_) | Self::Not(_) | Self::Wait(_)) => {
                    write!(f, "NOT ({part})")
                }
            },
            Self::Test(test) => test.print(f, false),
            Self::Wait(tests) => {
                for (index, test) in tests.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { " AND " })?;
                    test.print(f, false)?;
                }
                Ok(())
            }
        }
    }
}

fn joined(
    f: &mut Formatter<'_>,
    parts: &[Condition],
    between: &str,
    grouped: impl Fn(&Condition) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { between })?;
        if grouped(part) {
            write!(f, "({part})")?;
        } else {
            write!(f, "{part}")?;
        }
    }
    Ok(())
}

impl Test {
    fn print(&self, f: &mut Formatter<'_>, negated: bool) -> fmt::Result {
        let not = if negated { "NOT " } else { "" };
        let field = &self.field;
        match &self.check {
            Check::Compare(comparison, value) => {
                let sign = match comparison {
                    Comparison::Equal if negated => "!=",
                    Comparison::Equal => "=",
                    Comparison::Less => "<",
                    Comparison::AtMost => "<=",
                    Comparison::More => ">",
                    Comparison::AtLeast => ">=",
                };
                let before = if *comparison == Comparison::Equal { "" } else { not };
                write!(f, "{before}{field} {sign} {value}")
            }
            Check::OneOf(values) => {
                let values: Vec<_> = values.iter().map(Value::to_string).collect();
                write!(f, "{field} {not}IN ({})", values.join(", "))
            }
            Check::Between(from, to) => write!(f, "{field} {not}BETWEEN {from} AND {to}"),
            Check::StartsWith(prefix) => write!(f, "{field} {not}STARTS_WITH {}", quoted(prefix)),
            Check::Known if negated => write!(f, "{field} IS NULL"),
            Check::Known => write!(f, "{field} IS NOT NULL"),
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Int(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{:?}", number.get()),
            Self::Bool(yes) => write!(f, "{yes}"),
            Self::Time(at) => write!(f, "'{at}'"),
            Self::Status(status) => write!(f, "'{}'", status_name(*status)),
            Self::Wait(kind) => write!(f, "'{}'", kind_name(*kind)),
            Self::Run(run) => write!(f, "'{run}'"),
        }
    }
}

impl Value {
    /// The value as people read it, without quotes.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(_)
            | Self::Double(_)
            | Self::Bool(_)
            | Self::Time(_)
            | Self::Status(_)
            | Self::Wait(_)
            | Self::Run(_) => self.to_string().trim_matches('\'').to_owned(),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
