//! Several writes and a check as one statement. PostgreSQL executes it as a transaction of its own, so
//! it needs one message each way and no commit.

use std::borrow::Cow;

use crate::session::Call;

/// A statement that performs the check and then the writes, none if the check fails. The writes must
/// not touch the same rows: all of them see the tables as they were before.
pub(super) fn one_statement<'a>(writes: Vec<Call<'a>>, check: Call<'a>) -> Call<'a> {
    let mut sql = String::new();
    let mut params = Vec::new();
    for (number, write) in writes.into_iter().enumerate() {
        sql.push_str(if number == 0 { "WITH " } else { ", " });
        sql.push_str(&format!("w{number} AS ("));
        append(&mut sql, &write.sql, params.len());
        sql.push(')');
        params.extend(write.params);
    }
    sql.push(' ');
    append(&mut sql, &check.sql, params.len());
    params.extend(check.params);
    Call { sql: Cow::Owned(sql), params }
}

/// Appends SQL whose parameters follow so many others.
fn append(sql: &mut String, part: &str, params_before: usize) {
    let mut pieces = part.split('$');
    sql.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        let number = number.parse().unwrap_or(0) + params_before;
        sql.push_str(&format!("${number}{rest}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(sql: &'static str, params: i64) -> Call<'static> {
        Call { sql: sql.into(), params: (0..params).map(|number| Box::new(number) as _).collect() }
    }

    #[test]
    fn parameters_are_numbered_through() {
        let writes = vec![call("A $1, $2", 2), call("B ($1), $12::x", 12)];
        let one = one_statement(writes, call("C $1", 1));
        assert_eq!(one.sql, "WITH w0 AS (A $1, $2), w1 AS (B ($3), $14::x) C $15");
        assert_eq!(one.params.len(), 15);
    }
}
