//! Builds a WHERE clause from a filter.

use tokio_postgres::types::{ToSql, Type};

use crate::session::{Made, Param};

/// Conditions joined by AND, and the values of their parameters in order.
pub(crate) struct Conditions {
    sql: String,
    params: Vec<(Param<'static>, Type)>,
}

impl Conditions {
    /// No condition yet: every row passes.
    pub(crate) fn none() -> Self {
        Self { sql: "TRUE".to_owned(), params: Vec::new() }
    }

    /// Adds a condition with one value per question mark.
    pub(crate) fn require(
        &mut self,
        condition: &str,
        values: impl IntoIterator<Item = (Param<'static>, Type)>,
    ) {
        self.sql.push_str(" AND ");
        let mut values = values.into_iter();
        for (index, piece) in condition.split('?').enumerate() {
            if index > 0
                && let Some(value) = values.next()
            {
                let place = self.place(value);
                self.sql.push_str(&place);
            }
            self.sql.push_str(piece);
        }
    }

    /// The whole statement: `head`, the conditions, `tail`, and a row limit if `page` is given.
    pub(crate) fn made(mut self, head: &str, tail: &str, page: Option<i64>) -> Made {
        let limit = page.map_or(String::new(), |rows| {
            let place = self.place(value(rows, Type::INT8));
            format!("LIMIT {place}")
        });
        let sql = format!("{head} WHERE {} {tail} {limit}", self.sql);
        Made { sql, params: self.params }
    }

    /// Ends the clause and returns it. What is required from then on is another clause of the same
    /// statement.
    pub(crate) fn end_clause(&mut self) -> String {
        std::mem::replace(&mut self.sql, "TRUE".to_owned())
    }

    /// Adds a value and returns its placeholder.
    pub(crate) fn place(&mut self, value: (Param<'static>, Type)) -> String {
        self.params.push(value);
        format!("${}", self.params.len())
    }
}

/// Counts, by two columns, the rows of a bounded query that pass `chosen`, and all of them.
pub(crate) fn tally(seen: Made, groups: &str, chosen: &str) -> Made {
    let sql = format!(
        "WITH seen AS ({}) SELECT {groups}, count(*) FILTER (WHERE {chosen}), count(*) FROM seen \
         GROUP BY 1, 2",
        seen.sql
    );
    Made { sql, params: seen.params }
}

/// A parameter and its type.
pub(crate) fn value(
    value: impl ToSql + Sync + Send + 'static,
    kind: Type,
) -> (Param<'static>, Type) {
    (Box::new(value), kind)
}

/// A text parameter and its type.
pub(crate) fn text(text: &str) -> (Param<'static>, Type) {
    value(crate::values::text(text).into_owned(), Type::TEXT)
}

/// A text array parameter, for `= ANY`.
pub(crate) fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> (Param<'static>, Type) {
    let texts: Vec<String> = texts.map(|text| crate::values::text(text).into_owned()).collect();
    value(texts, Type::TEXT_ARRAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_in_order() {
        let mut conditions = Conditions::none();
        conditions.require("a = ?", [text("x")]);
        conditions.require("(b, c) < (?, ?)", [text("y"), value(7_i64, Type::INT8)]);
        let made = conditions.made("SELECT a FROM t", "ORDER BY a", Some(3));
        let expected =
            "SELECT a FROM t WHERE TRUE AND a = $1 AND (b, c) < ($2, $3) ORDER BY a LIMIT $4";
        assert_eq!((made.sql.as_str(), made.params.len()), (expected, 4));
    }
}
