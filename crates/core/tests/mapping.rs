//! The tables of `mapping.md`, which map foreign protocols, are complete: no event or command of ours
//! is missing, none of theirs is left over, and each of ours stands for exactly one event of Temporal.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::event::Fact;

const MAPPING: &str = include_str!("mapping.md");
const COMMANDS: &str = include_str!("../src/command.rs");

/// The section under a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let start = MAPPING.find(heading).expect("the section exists") + heading.len();
    let rest = &MAPPING[start..];
    &rest[..rest.find("\n##").unwrap_or(rest.len())]
}

/// Number and our side of each row.
fn rows(heading: &str) -> BTreeMap<u32, &'static str> {
    section(heading)
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let number = cells.next()?.parse().ok()?;
            Some((number, cells.nth(1)?))
        })
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn mentions(text: &str, name: &str) -> usize {
    words(text).filter(|word| *word == name).count()
}

fn commands() -> BTreeSet<&'static str> {
    let body = &COMMANDS[COMMANDS.find("pub enum Ask {").expect("the enum exists")..];
    let body = &body[..body.find("\n}").expect("it ends")];
    body.lines()
        .filter_map(|line| line.strip_prefix("    ")?.split(['(', '{', ',']).next())
        .map(str::trim)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect()
}

#[test]
fn every_event_of_ours_is_exactly_one_of_temporal() {
    let rows = rows("## Temporal events");
    for name in Fact::NAMES {
        let found: usize = rows.values().map(|ours| mentions(ours, name)).sum();
        assert_eq!(found, 1, "{name}");
    }
}

#[test]
fn no_event_or_command_of_temporal_is_left_over() {
    let events: Vec<_> = rows("## Temporal events").into_keys().collect();
    assert_eq!(events, (1..=60).collect::<Vec<_>>());
    let commands: Vec<_> = rows("## Temporal commands").into_keys().collect();
    assert_eq!(commands, (1..=14).chain(16..=18).collect::<Vec<_>>());
}

#[test]
fn every_command_of_ours_is_one_of_temporal_or_native() {
    let text = section("## Temporal commands");
    assert_eq!(commands().len(), 23);
    for name in commands() {
        assert!(mentions(text, name) >= 1, "{name}");
    }
}

#[test]
fn every_event_of_ours_is_sent_to_durable_task_workers_or_named_as_not() {
    let text = section("## Durable Task events");
    for name in Fact::NAMES {
        assert!(mentions(text, name) >= 1, "{name}");
    }
}

#[test]
fn no_event_or_action_of_durable_task_is_left_over() {
    let events: Vec<_> = rows("## Durable Task events").into_keys().collect();
    assert_eq!(events, (3..=32).collect::<Vec<_>>());
    let actions: Vec<_> = rows("## Durable Task actions").into_keys().collect();
    assert_eq!(actions, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}
