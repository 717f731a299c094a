//! `abide waits`: what runs wait for, over all workflows or in one, one file per command.

mod filter;
mod follow;
mod list;
mod show;
mod tally;
mod words;

use abide::Client;
use abide_command::{Common, Failed};
use abide_core::{
    list::{WaitFilter, WaitRow},
    operation::ListWaits,
    run::ShownWait,
};
use clap::Subcommand;

pub(crate) use self::{
    filter::{Filter, Paged},
    words::{details, ended_by, object, row_object, times, until, waits_for},
};

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::List),
    Show(show::Show),
    Tally(tally::Tally),
    Follow(follow::Follow),
}

impl Command {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        match self {
            Self::List(command) => command.run(common).await,
            Self::Show(command) => command.run(common).await,
            Self::Tally(command) => command.run(common).await,
            Self::Follow(command) => command.run(common).await,
        }
    }
}

use self::words::APPROVAL_PREFIX;

const PAGE: usize = 200;

/// Reads pages until enough rows match, or there are no more.
pub(crate) async fn pages(
    client: &Client,
    mut filter: WaitFilter,
    limit: usize,
    passes: impl Fn(&WaitRow) -> bool,
) -> Result<Vec<WaitRow>, Failed> {
    let mut rows = Vec::new();
    filter.namespace = Some(client.namespace().clone());
    while rows.len() < limit {
        let page = ListWaits { filter: filter.clone(), limit: Some(PAGE) };
        let page = client.ask(page).await?.rows;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.position());
        rows.extend(page.into_iter().filter(|row| passes(row)));
    }
    rows.truncate(limit);
    Ok(rows)
}

/// Finds a wait by its id, by the id of its timer, by its name, or by the id of the request that a
/// person decides.
pub(crate) fn find<'a>(
    waits: &'a [ShownWait],
    named: &str,
) -> Result<Option<&'a ShownWait>, Failed> {
    let timer = |wait: &ShownWait| wait.timer.as_ref().is_some_and(|id| id.as_str() == named);
    let by_id = waits.iter().find(|wait| wait.key.to_string() == named || timer(wait));
    if by_id.is_some() {
        return Ok(by_id);
    }
    let request = |wait: &ShownWait| {
        let details = wait.details.as_ref();
        details.and_then(|it| it.approval.as_ref()).is_some_and(|it| it.request == named)
    };
    let mut by_name = waits.iter().filter(|wait| wait.name == named || request(wait));
    match (by_name.next(), by_name.next()) {
        (found, None) => Ok(found),
        (Some(one), Some(another)) => {
            let what =
                format!("{named:?} is ambiguous: it matches {} and {}", one.key, another.key);
            Err(Failed::usage(what).hint("use the id of the wait"))
        }
        (None, Some(_)) => Ok(None),
    }
}
