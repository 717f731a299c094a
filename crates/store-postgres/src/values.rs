//! Encodes times, ids, numbers and texts for columns, and decodes them. A value that cannot be
//! decoded is an error, never a default.

use std::{borrow::Cow, error::Error};

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked},
};
use uuid::Uuid;

/// A time as twelve bytes that sort in the order of time: no type of the database covers the full
/// range in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time([u8; 12]);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at.to_sorted_bytes())
    }
}

impl Time {
    fn read(bytes: &[u8]) -> Option<Timestamp> {
        Timestamp::from_sorted_bytes(bytes)
    }
}

impl ToSql for Time {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

/// A run id as the database's UUID type.
pub(crate) fn run_id(run: RunId) -> Uuid {
    Uuid::from_bytes(*run.as_bytes())
}

/// A shard id in the smallest integer type of the database.
pub(crate) fn shard_number(shard: ShardId) -> i16 {
    i16::from(shard.number())
}

/// A number to store or compare with. Stored numbers were checked to fit; a larger one in a
/// comparison becomes the maximum, which has the same effect.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Maximum number of rows to read.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Escapes zero characters, which the database does not accept in texts. The encoding preserves
/// order and prefixes.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte <= 1) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

fn text_of(stored: &str) -> Option<Cow<'_, str>> {
    if !stored.contains('\u{1}') {
        return Some(Cow::Borrowed(stored));
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\u{1}' => match characters.next()? {
                '\u{1}' => '\0',
                '\u{2}' => '\u{1}',
                _ => return None,
            },
            other => other,
        });
    }
    Some(Cow::Owned(text))
}

/// A column holds a value that no store writes.
#[derive(Debug, thiserror::Error)]
#[error("column {column} holds an invalid value")]
pub(crate) struct Undecodable {
    column: usize,
}

/// Typed access to the columns of a row.
pub(crate) trait Columns {
    fn time(&self, column: usize) -> Result<Timestamp, Undecodable>;
    fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>, Undecodable>;
    fn run(&self, column: usize) -> Result<RunId, Undecodable>;
    fn shard(&self, column: usize) -> Result<ShardId, Undecodable>;
    fn number(&self, column: usize) -> Result<u64, Undecodable>;
    fn flag(&self, column: usize) -> Result<bool, Undecodable>;
    fn bytes(&self, column: usize) -> Result<Bytes, Undecodable>;
    fn bytes_or_null(&self, column: usize) -> Result<Option<Bytes>, Undecodable>;
    fn text<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<T, Undecodable>;
    fn text_or_null<T: for<'a> From<&'a str>>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Undecodable>;
    /// A number that encodes a variant of an enum.
    fn choice<T>(&self, column: usize, of: impl FnOnce(u8) -> Option<T>) -> Result<T, Undecodable>;
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Undecodable> {
    row.try_get(column).map_err(|_| Undecodable { column })
}

impl Columns for Row {
    fn time(&self, column: usize) -> Result<Timestamp, Undecodable> {
        Time::read(get(self, column)?).ok_or(Undecodable { column })
    }

    fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>, Undecodable> {
        let bytes: Option<&[u8]> = get(self, column)?;
        bytes.map(|bytes| Time::read(bytes).ok_or(Undecodable { column })).transpose()
    }

    fn run(&self, column: usize) -> Result<RunId, Undecodable> {
        get(self, column).map(RunId::new)
    }

    fn shard(&self, column: usize) -> Result<ShardId, Undecodable> {
        self.choice(column, ShardId::new)
    }

    fn number(&self, column: usize) -> Result<u64, Undecodable> {
        u64::try_from(get::<i64>(self, column)?).map_err(|_| Undecodable { column })
    }

    fn flag(&self, column: usize) -> Result<bool, Undecodable> {
        get(self, column)
    }

    fn bytes(&self, column: usize) -> Result<Bytes, Undecodable> {
        get(self, column).map(Bytes::copy_from_slice)
    }

    fn bytes_or_null(&self, column: usize) -> Result<Option<Bytes>, Undecodable> {
        let bytes: Option<&[u8]> = get(self, column)?;
        Ok(bytes.map(Bytes::copy_from_slice))
    }

    fn text<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<T, Undecodable> {
        let text = text_of(get(self, column)?).ok_or(Undecodable { column })?;
        Ok(T::from(&text))
    }

    fn text_or_null<T: for<'a> From<&'a str>>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Undecodable> {
        let stored: Option<&str> = get(self, column)?;
        stored.map(|_| self.text(column)).transpose()
    }

    fn choice<T>(&self, column: usize, of: impl FnOnce(u8) -> Option<T>) -> Result<T, Undecodable> {
        let number = u8::try_from(get::<i16>(self, column)?).ok();
        number.and_then(of).ok_or(Undecodable { column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_their_bytes() {
        let all = [(-62_135_596_800, 0), (-1, 999_999_999), (0, 0), (0, 1), (253_402_300_799, 5)]
            .map(|(seconds, nanos)| Timestamp::new(seconds, nanos).unwrap());
        assert!(all.map(Time::from).is_sorted());
        assert_eq!(all.map(|at| Time::read(&Time::from(at).0).unwrap()), all);
        assert_eq!(Time::read(&Time::from(Timestamp::NEVER).0), Some(Timestamp::NEVER));
        assert_eq!(Time::read(b"short"), None);
    }

    #[test]
    fn texts_with_zeros_come_back_and_keep_their_order() {
        let all = ["", "\0", "\0\0", "\0\u{1}", "\0a", "\u{1}", "\u{1}\0", "\u{2}", "a", "a\0b"];
        assert!(all.is_sorted());
        let stored = all.map(text);
        assert!(stored.is_sorted());
        for (text, stored) in all.into_iter().zip(&stored) {
            assert!(!stored.contains('\0'));
            assert_eq!(text_of(stored).as_deref(), Some(text));
        }
        assert_eq!(text_of("\u{1}x"), None);
        assert_eq!(text_of("\u{1}"), None);
    }
}
