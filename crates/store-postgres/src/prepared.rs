//! The statements that a connection has prepared, by their SQL.

use std::{borrow::Cow, collections::HashMap};

/// Statements of groups that are kept. Such a statement depends on the tables that the group writes, so
/// there are some dozens.
const MADE_MAX: usize = 200;

/// Fixed statements stay for as long as the connection. Those that were made for a group go, all at
/// once, when there are too many.
#[derive(Debug)]
pub(crate) struct PreparedStatements<S> {
    fixed: HashMap<&'static str, S>,
    made: HashMap<String, S>,
}

impl<S> Default for PreparedStatements<S> {
    fn default() -> Self {
        Self { fixed: HashMap::new(), made: HashMap::new() }
    }
}

impl<S: Clone> PreparedStatements<S> {
    pub(crate) fn get(&self, sql: &str) -> Option<S> {
        self.fixed.get(sql).or_else(|| self.made.get(sql)).cloned()
    }

    pub(crate) fn insert(&mut self, sql: Cow<'static, str>, statement: S) {
        match sql {
            Cow::Borrowed(sql) => drop(self.fixed.insert(sql, statement)),
            Cow::Owned(sql) => {
                if self.made.len() >= MADE_MAX {
                    self.made.clear();
                }
                self.made.insert(sql, statement);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_statements_stay_and_others_are_bounded() {
        let mut prepared = PreparedStatements::default();
        prepared.insert(Cow::Borrowed("SELECT 1"), 0);
        for number in 1..=3 * MADE_MAX {
            let sql = format!("SELECT {number}, 'made'");
            prepared.insert(Cow::Owned(sql.clone()), number);
            assert_eq!(prepared.get(&sql), Some(number));
            assert_eq!(prepared.get("SELECT 1"), Some(0));
            assert!(prepared.made.len() <= MADE_MAX);
        }
    }
}
