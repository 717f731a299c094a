//! What the crash test tells when nothing was found.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    faults::{Failovers, Fault},
    options::Plan,
    register::Readings,
};
use crate::{failed::Failed, output::Output};

/// What was found when nothing was found.
pub(super) struct Survived {
    pub(super) journeys: usize,
    /// Attempts of activities beyond the first.
    pub(super) repeated: usize,
    /// How often servers and workers were killed at once.
    pub(super) both: u32,
    /// How long others took to have the runs of a dead node.
    pub(super) failovers: Failovers,
    /// How often each fault happened.
    pub(super) times: BTreeMap<Fault, u32>,
    /// The longest call during or after each fault.
    pub(super) longest_calls: BTreeMap<Fault, Duration>,
    /// What nodes answered when they were asked directly.
    pub(super) readings: Readings,
    /// Commits whose answers were lost.
    pub(super) lost_answers: usize,
}

/// Says so, to people or programs.
pub(super) fn tell(
    output: Output,
    plan: &Plan,
    survived: &Survived,
    took: Duration,
) -> Result<(), Failed> {
    let Survived { journeys, repeated, both, readings, lost_answers, .. } = survived;
    let kills = if plan.has(Fault::Kill) { plan.kills } else { 0 };
    let (seed, nodes, seconds) = (plan.seed, plan.layout.nodes, took.as_secs_f64());
    let failover = survived.failovers.median_and_longest().map(|(median, longest)| {
        json!({
            "lease_ms": millis(plan.layout.lease), "kills": survived.failovers.count(),
            "median_ms": millis(median), "longest_ms": millis(longest),
        })
    });
    let object = json!({
        "seed": seed, "nodes": nodes, "kills_of_server": kills, "kills_of_worker": kills,
        "kills_of_both_at_once": both, "journeys": journeys, "repeated_attempts": repeated,
        "faults": faults(survived), "failover": failover, "lost_answers": lost_answers,
        "direct_readings": readings.answered, "refused_readings": readings.refused,
        "seconds": seconds,
    });
    let mut words = format!(
        "{journeys} journeys over {kills} kills of servers and {kills} of workers, {both} of them at \
         once, in {seconds:.0} s: nothing lost, nothing doubled, no sleep cut short; {repeated} \
         attempts of activities were repeated (seed {seed})"
    );
    for (fault, times) in &survived.times {
        let longest = survived.longest_calls.get(fault).copied().unwrap_or_default();
        words.push_str(&format!("\n  {fault}: {times} times, longest call {longest:.1?}"));
    }
    if let Some((median, longest)) = survived.failovers.median_and_longest() {
        let lease = plan.layout.lease;
        words.push_str(&format!(
            "\n  from a kill until all runs answered: median {median:.1?}, longest {longest:.1?}, \
             with a lease of {lease:?}"
        ));
    }
    output.say(&object, words)
}

fn faults(survived: &Survived) -> Value {
    let told = survived.times.iter().map(|(fault, times)| {
        let longest = survived.longest_calls.get(fault).copied().unwrap_or_default();
        (fault.to_string(), json!({ "times": times, "longest_call_ms": millis(longest) }))
    });
    Value::Object(told.collect::<Map<_, _>>())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
