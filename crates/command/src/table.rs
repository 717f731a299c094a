//! Text in aligned columns.

use std::fmt;

use abide_core::visible::visible;

const GAP: &str = "  ";

/// Rows in aligned columns, below a heading.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![columns.into_iter().map(str::to_uppercase).collect()] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell)).collect());
    }

    /// A name and a value per line, without a heading. A value without a name continues the one
    /// above.
    pub fn facts(facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let named = |name: &str| if name.is_empty() { String::new() } else { format!("{name}:") };
        let rows = facts.into_iter().map(|(name, value)| vec![named(name), visible(&value)]);
        Self { rows: rows.collect() }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            f.write_str(line.join(GAP).trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["id", "status"]);
        table.row(["order-1".into(), "running".into()]);
        table.row(["ü".into(), String::new()]);
        assert_eq!(table.to_string(), "ID       STATUS\norder-1  running\nü");
    }

    #[test]
    fn a_cell_stays_on_its_line() {
        let mut table = Table::new(["id"]);
        table.row(["a\nb\u{1b}[1A".into()]);
        assert_eq!(table.to_string(), "ID\na\\nb\\u{1b}[1A");
    }

    #[test]
    fn facts_have_no_heading() {
        let table = Table::facts([("run", "1".into()), ("workflow", "order-1".into())]);
        assert_eq!(table.to_string(), "run:       1\nworkflow:  order-1");
        let table = Table::facts([("why", "because".into()), ("", "because: it is".into())]);
        assert_eq!(table.to_string(), "why:  because\n      because: it is");
    }

    #[test]
    fn a_value_cannot_pass_for_another_fact() {
        let table = Table::facts([("workflow", "order-1\ntype: fake".into())]);
        assert_eq!(table.to_string(), "workflow:  order-1\\ntype: fake");
    }
}
