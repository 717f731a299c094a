//! `abide waits tally`.

use std::{collections::BTreeMap, time::Duration};

use abide::Timestamp;
use abide_command::{
    Common, Failed, Table,
    time::{absolute, parse_length, parse_moment, system_now},
};
use abide_core::{
    list::WaitKind,
    tally::{TallyWaits, WaitGroup},
};
use clap::Args;
use serde_json::json;

use super::list::Kind;
use crate::output::snake_case;

/// Count waits by kind and by the interval in which they end
#[derive(Args)]
#[command(after_help = "Example:
  abide waits tally
  abide waits tally --interval 15m --intervals 8 --kind timer --kind activity-retry
  abide waits tally --from 2027-01-01T00:00:00Z --interval 1d --intervals 31")]
pub(crate) struct Tally {
    /// Only waits of this kind; repeat for several
    #[arg(short, long, value_enum, value_name = "KIND")]
    kind: Vec<Kind>,
    /// Only waits of workflows of this type
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Start of the first interval [default: now]
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    from: Option<Timestamp>,
    /// Length of an interval
    #[arg(long, value_name = "TIME", value_parser = parse_length, default_value = "1h")]
    interval: Duration,
    /// Number of intervals
    #[arg(long, value_name = "COUNT", default_value_t = 24)]
    intervals: u32,
}

impl Tally {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let from = self.from.unwrap_or_else(system_now);
        let client = common.client().await?;
        let asked = TallyWaits {
            namespace: Some(client.namespace().clone()),
            known: Default::default(),
            workflow_type: self.workflow_type,
            kinds: self.kind.into_iter().map(WaitKind::from).collect(),
            from,
            interval: self.interval,
            intervals: self.intervals,
        };
        let tally = client.ask(asked).await?;
        let mut counts: BTreeMap<u32, BTreeMap<WaitKind, u64>> = BTreeMap::new();
        for (WaitGroup { interval, kind }, count) in tally.groups {
            counts.entry(interval).or_default().insert(kind, count);
        }
        let begin = |interval| from.saturating_add(self.interval.saturating_mul(interval));
        let output = common.output();
        if output.json() {
            for (interval, kinds) in counts {
                let named = |(kind, count)| (snake_case(&format!("{kind:?}")), count);
                let kinds: BTreeMap<String, u64> = kinds.into_iter().map(named).collect();
                let begins = begin(interval).to_string();
                let (more, whole) = (tally.more, interval < tally.whole);
                output.object(
                    &json!({ "from": begins, "counts": kinds, "whole": whole, "more": more }),
                )?;
            }
            return Ok(());
        }
        if counts.is_empty() && !tally.more {
            return output.line("no waits end in these intervals");
        }
        let mut table = Table::new(["from", "kind", "waits"]);
        for (interval, kinds) in counts {
            for (kind, count) in kinds {
                let kind = snake_case(&format!("{kind:?}")).replace('_', " ");
                table.row([absolute(begin(interval)), kind, count.to_string()]);
            }
        }
        output.lines(table)?;
        if tally.more {
            let from = absolute(begin(tally.whole));
            output.line(format!(
                "there are more waits than a tally examines: from {from} on, the counts are incomplete; \
                 ask for shorter or fewer intervals"
            ))?;
        }
        Ok(())
    }
}
