//! The report of a crash test that found nothing.

use std::{collections::BTreeMap, time::Duration};

use abide_command::{Failed, Output};
use serde_json::{Map, Value, json};

use crate::{
    deadlines::Moves,
    faults::{Failovers, FaultKind},
    options::Plan,
    register::Readings,
    stopwatch,
};

/// Figures of a crash test that found nothing.
pub(crate) struct Survived {
    pub(crate) journeys: usize,
    /// Attempts of activities beyond the first.
    pub(crate) repeated: usize,
    /// How often servers and workers were killed together.
    pub(crate) both: u32,
    /// How long other nodes took to take over the runs of a dead node.
    pub(crate) failovers: Failovers,
    /// How often each fault happened.
    pub(crate) times: BTreeMap<FaultKind, u32>,
    /// The longest calls, in all and by fault.
    pub(crate) calls: stopwatch::Times,
    /// Results of reads at single nodes.
    pub(crate) readings: Readings,
    /// What happened to moved deadlines.
    pub(crate) moves: Moves,
    /// Commits whose answers were lost.
    pub(crate) lost_answers: usize,
}

/// Prints it, for people or programs.
pub(crate) fn tell(
    output: Output,
    plan: &Plan,
    survived: &Survived,
    took: Duration,
) -> Result<(), Failed> {
    let Survived { journeys, repeated, both, readings, moves, lost_answers, .. } = survived;
    let Moves { moved, void, too_late } = moves;
    let kills = if plan.has(FaultKind::Kill) { plan.kills } else { 0 };
    let (seed, nodes, seconds) = (plan.seed, plan.layout.nodes, took.as_secs_f64());
    let object = json!({
        "seed": seed, "nodes": nodes, "kills_of_server": kills, "kills_of_worker": kills,
        "kills_of_both_at_once": both, "journeys": journeys, "repeated_attempts": repeated,
        "faults": faults(survived), "failover": failover(plan, &survived.failovers), "lost_answers": lost_answers,
        "moved_deadlines": moved, "void_firings": void, "moves_too_late": too_late,
        "direct_readings": readings.answered, "refused_readings": readings.refused,
        "longest_call_ms": millis(survived.calls.longest), "seconds": seconds,
    });
    let longest = survived.calls.longest;
    let mut words = format!(
        "{journeys} journeys over {kills} kills of servers and {kills} of workers, {both} of them at \
         once, in {seconds:.0} s: nothing lost, nothing doubled, no sleep cut short; {repeated} \
         attempts of activities were repeated, no call took longer than {longest:.1?} (seed {seed})\n  deadlines: moved {moved} times, \
         {void} of them when they had come and no worker had seen it; {too_late} moves were too late"
    );
    for (fault, times) in &survived.times {
        let longest = survived.calls.by_fault.get(fault).copied().unwrap_or_default();
        words.push_str(&format!("\n  {fault}: {times} times, longest call {longest:.1?}"));
    }
    let Failovers { first, all, .. } = &survived.failovers;
    for (what, times) in [("a first run of the dead node", first), ("the last of all runs", all)] {
        if let Some((median, longest)) = times.median_and_longest() {
            let lease = plan.layout.lease;
            words.push_str(&format!(
                "\n  from a kill until {what} answered: median {median:.1?}, longest {longest:.1?}, \
                 with a lease of {lease:?}"
            ));
        }
    }
    output.say_lines(&object, words)
}

fn faults(survived: &Survived) -> Value {
    let told = survived.times.iter().map(|(fault, times)| {
        let longest = survived.calls.by_fault.get(fault).copied().unwrap_or_default();
        (fault.to_string(), json!({ "times": times, "longest_call_ms": millis(longest) }))
    });
    Value::Object(told.collect::<Map<_, _>>())
}

fn failover(plan: &Plan, failovers: &Failovers) -> Option<Value> {
    let (first_median, first_longest) = failovers.first.median_and_longest()?;
    let (all_median, all_longest) = failovers.all.median_and_longest()?;
    Some(json!({
        "lease_ms": millis(plan.layout.lease), "kills": failovers.count,
        "first_median_ms": millis(first_median), "first_longest_ms": millis(first_longest),
        "all_median_ms": millis(all_median), "all_longest_ms": millis(all_longest),
    }))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
