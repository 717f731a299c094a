//! Encodes times, ids and numbers in columns, and decodes them. A value that cannot be decoded is
//! an error, never a default.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use bytes::Bytes;
use rusqlite::{Error, Result, Row, types::Type};

/// Twelve bytes that sort like the times that they encode.
pub(crate) fn time(at: Timestamp) -> [u8; 12] {
    at.to_sorted_bytes()
}

fn time_of(bytes: &[u8]) -> Option<Timestamp> {
    Timestamp::from_sorted_bytes(bytes)
}

/// A number to be stored. Numbers of 2^63 and above do not fit a column.
pub(crate) fn number(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

/// A number to compare with: if it is above all stored ones, the largest will do.
pub(crate) fn bound(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A row limit for SQL.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Reads typed columns of a row.
pub(crate) trait Columns {
    fn time(&self, column: usize) -> Result<Timestamp>;
    fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>>;
    fn run(&self, column: usize) -> Result<RunId>;
    fn shard(&self, column: usize) -> Result<ShardId>;
    fn number(&self, column: usize) -> Result<u64>;
    fn bytes(&self, column: usize) -> Result<Bytes>;
    fn text<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<T>;
    fn text_or_null<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<Option<T>>;
    /// Reads a number that encodes one of a few cases.
    fn choice<T>(&self, column: usize, of: impl FnOnce(u8) -> Option<T>) -> Result<T>;
}

impl Columns for Row<'_> {
    fn time(&self, column: usize) -> Result<Timestamp> {
        time_of(self.get_ref(column)?.as_blob()?).ok_or_else(|| strange(column, Type::Blob))
    }

    fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>> {
        match self.get_ref(column)?.as_blob_or_null()? {
            None => Ok(None),
            Some(bytes) => time_of(bytes).map(Some).ok_or_else(|| strange(column, Type::Blob)),
        }
    }

    fn run(&self, column: usize) -> Result<RunId> {
        let bytes = self.get_ref(column)?.as_blob()?;
        RunId::from_slice(bytes).ok_or_else(|| strange(column, Type::Blob))
    }

    fn shard(&self, column: usize) -> Result<ShardId> {
        self.choice(column, ShardId::new)
    }

    fn number(&self, column: usize) -> Result<u64> {
        let value = self.get_ref(column)?.as_i64()?;
        u64::try_from(value).map_err(|_| strange(column, Type::Integer))
    }

    fn bytes(&self, column: usize) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(self.get_ref(column)?.as_blob()?))
    }

    fn text<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<T> {
        Ok(T::from(self.get_ref(column)?.as_str()?))
    }

    fn text_or_null<T: for<'a> From<&'a str>>(&self, column: usize) -> Result<Option<T>> {
        Ok(self.get_ref(column)?.as_str_or_null()?.map(T::from))
    }

    fn choice<T>(&self, column: usize, of: impl FnOnce(u8) -> Option<T>) -> Result<T> {
        let number = u8::try_from(self.get_ref(column)?.as_i64()?).ok();
        number.and_then(of).ok_or_else(|| strange(column, Type::Integer))
    }
}

fn strange(column: usize, found: Type) -> Error {
    Error::FromSqlConversionFailure(column, found, "an invalid value".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_sort_as_their_bytes() {
        let all = [(-62_135_596_800, 0), (-1, 999_999_999), (0, 0), (0, 1), (253_402_300_799, 5)]
            .map(|(seconds, nanos)| Timestamp::new(seconds, nanos).unwrap());
        assert!(all.map(time).is_sorted());
        assert_eq!(all.map(|at| time_of(&time(at)).unwrap()), all);
        assert_eq!(time_of(&time(Timestamp::NEVER)), Some(Timestamp::NEVER));
        assert_eq!(time_of(b"short"), None);
    }
}
