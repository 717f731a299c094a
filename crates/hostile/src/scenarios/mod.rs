//! All scenarios, one file each.

mod all_streams;
mod clock_step;
mod counts;
mod foreign_namespace;
mod forged_nodes;
mod full_disk;
mod gigabyte;
mod idle;
mod large_buffer;
mod lost_files;
mod many_links;
mod many_queues;
mod small_parts;
mod taken_ids;
mod unfinished;
mod unread;
mod unread_work;
mod worst_shapes;

use std::{pin::Pin, time::Duration};

use tokio::time::timeout;

use crate::{Arena, Finding, Machine, Report};

/// A scenario that takes longer than this counts as hanging.
const LIMIT: Duration = Duration::from_secs(600);

/// An attack that an unauthenticated client may try.
#[derive(Debug)]
pub struct Scenario {
    /// Name on the command line.
    pub name: &'static str,
    /// The attack, in a sentence.
    pub plays: &'static str,
    play: fn(&Arena) -> Play<'_>,
}

/// A scenario in progress.
type Play<'a> = Pin<Box<dyn Future<Output = Result<Report, Finding>> + Send + 'a>>;

/// All scenarios, in the order in which they are played.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "many-links",
        plays: "failures of very many links, in every message that can hold one",
        play: |arena| Box::pin(many_links::play(arena)),
    },
    Scenario {
        name: "taken-ids",
        plays: "starts with the run id of another client",
        play: |arena| Box::pin(taken_ids::play(arena)),
    },
    Scenario {
        name: "foreign-namespace",
        plays: "a worker that sends commands to workflows of another namespace",
        play: |arena| Box::pin(foreign_namespace::play(arena)),
    },
    Scenario {
        name: "forged-nodes",
        plays: "messages of a client that claims to be a node but does not know the secret",
        play: |arena| Box::pin(forged_nodes::play(arena)),
    },
    Scenario {
        name: "lost-files",
        plays: "files of the store that are removed, emptied or cut",
        play: |arena| Box::pin(lost_files::play(arena)),
    },
    Scenario {
        name: "full-disk",
        plays: "hundreds of starts on a disk without room, and room again",
        play: |arena| Box::pin(full_disk::play(arena)),
    },
    Scenario {
        name: "clock-step",
        plays: "a clock that is set forward by an hour, and back",
        play: |arena| Box::pin(clock_step::play(arena)),
    },
    Scenario {
        name: "worst-shapes",
        plays: "each field of each message very often, very long and inside itself, up to 16 MB",
        play: |arena| Box::pin(worst_shapes::play(arena)),
    },
    Scenario {
        name: "unfinished",
        plays: "160 messages of 16 MB that never end, on three connections",
        play: |arena| Box::pin(unfinished::play(arena)),
    },
    Scenario {
        name: "unread",
        plays: "900 followers that never read a history of 56 MB",
        play: |arena| Box::pin(unread::play(arena)),
    },
    Scenario {
        name: "unread-work",
        plays: "workers that take the tasks of 400 runs of 2 MB and never read them, then a signal to each",
        play: |arena| Box::pin(unread_work::play(arena)),
    },
    Scenario {
        name: "idle",
        plays: "a thousand idle connections that answer pings, while other clients connect",
        play: |arena| Box::pin(idle::play(arena)),
    },
    Scenario {
        name: "small-parts",
        plays: "waiting updates of very many empty payloads",
        play: |arena| Box::pin(small_parts::play(arena)),
    },
    Scenario {
        name: "many-queues",
        plays: "workers that name thousands of queues",
        play: |arena| Box::pin(many_queues::play(arena)),
    },
    Scenario {
        name: "large-buffer",
        plays: "200 signals of 2 MB to a run whose task is held",
        play: |arena| Box::pin(large_buffer::play(arena)),
    },
    Scenario {
        name: "all-streams",
        plays: "as many streams of one address as the server has",
        play: |arena| Box::pin(all_streams::play(arena)),
    },
    Scenario {
        name: "counts",
        plays: "thousands of counts of many runs at once",
        play: |arena| Box::pin(counts::play(arena)),
    },
    Scenario {
        name: "gigabyte",
        plays: "unfinished messages, unread histories and answers of more than a gigabyte at once",
        play: |arena| Box::pin(gigabyte::play(arena)),
    },
];

impl Scenario {
    /// Plays the scenario in an arena of its own.
    pub async fn play(&self, machine: Machine) -> Result<Report, Finding> {
        let arena = Arena::new(machine)?;
        let played = timeout(LIMIT, (self.play)(&arena)).await;
        played.unwrap_or_else(|_| Err(Finding::new(format!("it takes more than {LIMIT:?}"))))
    }
}
