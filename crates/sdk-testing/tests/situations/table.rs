//! The guide's tables of situations. A page has rows of the form "situation | events in history | what
//! the caller sees"; a test plays a situation through the real engine and compares the events with what
//! its row says.

use abide::client::HistoryEvent;

/// A page of the guide with its rows.
pub(crate) struct Page {
    name: &'static str,
    text: &'static str,
}

/// One situation.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) situation: &'static str,
    events: &'static str,
}

/// The head of the tables that are checked.
const HEAD: &str = "| situation | events in history | what the caller sees |";

impl Page {
    pub(crate) const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }

    /// Every row of every table of situations on the page.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut lines = self.text.lines();
        while lines.by_ref().any(|line| line == HEAD) {
            let table = lines.by_ref().skip(1).take_while(|line| line.starts_with('|'));
            rows.extend(table.map(Row::parse));
        }
        rows
    }

    /// The row of a situation.
    pub(crate) fn row(&self, situation: &str) -> Row {
        let row = self.rows().into_iter().find(|row| row.situation == situation);
        row.unwrap_or_else(|| panic!("{} has no situation {situation:?}", self.name))
    }

    /// Compares the events of a situation with a history.
    pub(crate) fn check(&self, situation: &str, history: &[HistoryEvent]) {
        let told: Vec<_> = history.iter().map(|event| event.name()).collect();
        self.row(situation).check(&told);
    }
}

impl Row {
    fn parse(line: &'static str) -> Self {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells[..] {
            [situation, events, _] => Self { situation, events },
            _ => panic!("a row has three cells: {line}"),
        }
    }

    /// The events stand in the row in their order, without those of workflow tasks; `…` stands for any
    /// number of others.
    fn check(&self, told: &[&str]) {
        let told: Vec<_> = told.iter().copied().filter(|name| !name.starts_with("Task")).collect();
        let wanted: Vec<_> = self.events.split(',').map(str::trim).collect();
        assert!(fits(&wanted, &told), "{}\n  says {wanted:?}\n  is   {told:?}", self.situation);
    }
}

fn fits(wanted: &[&str], told: &[&str]) -> bool {
    match (wanted, told) {
        ([], []) => true,
        (["…", rest @ ..], _) => (0..=told.len()).any(|skipped| fits(rest, &told[skipped..])),
        ([wanted, rest @ ..], [told, others @ ..]) => wanted == told && fits(rest, others),
        _ => false,
    }
}

/// Names the page that files of tests play, and checks that each of its rows is played in one of them.
macro_rules! page {
    ($name:literal, $($tests:literal),+) => {
        const PAGE: $crate::table::Page =
            $crate::table::Page::new($name, include_str!(concat!("../../../../docs/", $name)));

        #[test]
        fn every_row_is_played() {
            let (rows, tests) = (PAGE.rows(), concat!($(include_str!($tests)),+));
            assert!(!rows.is_empty(), "{} has no table of situations", $name);
            for row in rows {
                let played = tests.contains(&format!("\"{}\"", row.situation));
                assert!(played, "{}: nothing plays {:?}", $name, row.situation);
            }
        }
    };
}
pub(crate) use page;

#[test]
fn three_dots_stand_for_any_number_of_events() {
    assert!(fits(&["A", "…", "B"], &["A", "B"]));
    assert!(fits(&["A", "…", "B"], &["A", "C", "B", "B"]));
    assert!(!fits(&["A", "…", "B"], &["A", "B", "C"]));
    assert!(!fits(&["A"], &[]));
}
