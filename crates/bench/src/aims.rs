//! Target values of the figures, each computed from others of the same run.

use std::fmt;

use serde_json::{Value, json};

use crate::{hello, idle, postgres, signal, sleep, store, timers};

/// All figures of one run that aims are computed from.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) store: Option<store::Figures>,
    pub(crate) hello: Option<hello::Figures>,
    pub(crate) hello_spawned: Option<hello::Figures>,
    pub(crate) sleep: Option<sleep::Figures>,
    pub(crate) signal: Option<signal::Figures>,
    pub(crate) idle: Option<idle::Figures>,
    pub(crate) timers: Option<timers::Figures>,
    pub(crate) postgres: Option<postgres::Figures>,
}

/// An aim, and its outcome.
#[derive(Debug)]
pub(crate) struct Aim {
    name: &'static str,
    value: f64,
    bound: Bound,
    /// How the bound was computed.
    from: String,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Store transitions that one run may cost, in process and over the network.
const TRANSITIONS_PER_RUN: f64 = 8.0;
const TRANSITIONS_PER_RUN_SPAWNED: f64 = 12.0;

/// The same for a store on PostgreSQL, over the network.
const TRANSITIONS_PER_RUN_POSTGRES: f64 = 10.0;

/// Number of concurrent runs that the aims are about.
const CONCURRENCY: usize = 256;

/// Workflow tasks of one hello run.
const TASKS_PER_RUN: f64 = 2.0;

impl Figures {
    /// The aims whose figures were measured.
    pub(crate) fn aims(&self) -> Vec<Aim> {
        let mut aims = Vec::new();
        aims.extend(self.hello_aim("hello_in_process", self.hello, TRANSITIONS_PER_RUN));
        aims.extend(self.hello_aim(
            "hello_spawned",
            self.hello_spawned,
            TRANSITIONS_PER_RUN_SPAWNED,
        ));
        aims.extend(self.sleep_aims());
        aims.extend(self.signal_aim());
        aims.extend(self.idle_aims());
        aims.extend(self.timers_aims());
        aims.extend(self.postgres_aims());
        aims
    }

    fn timers_aims(&self) -> Vec<Aim> {
        let Some(timers) = &self.timers else { return Vec::new() };
        let pending = timers.timers as f64;
        let mut aims = Vec::new();
        aims.extend(timers.added_mb.map(|added| Aim {
            name: "timers_memory",
            value: added,
            bound: Bound::AtMost(100.0 * pending / 1e6),
            from: format!("100 MB per million sleeping runs, for {pending:.0}"),
        }));
        aims.push(Aim {
            name: "timers_restart_ready",
            value: timers.ready_s,
            bound: Bound::AtMost(3.0),
            from: format!("3 s with {pending:.0} pending timers"),
        });
        aims.push(Aim {
            name: "timers_never_early",
            value: timers.early as f64,
            bound: Bound::AtMost(0.0),
            from: "sleeps that ended before their time".into(),
        });
        aims.extend(self.hello.map(|hello| {
            let tasks = TASKS_PER_RUN * hello.runs_per_s;
            Aim {
                name: "timers_all_resumed",
                value: timers.all_resumed_ms,
                bound: Bound::AtMost(1.2 * 1e3 * timers.due as f64 / tasks),
                from: format!("1.2 x {} / {tasks:.0} tasks/s, in ms after the second", timers.due),
            }
        }));
        aims.push(Aim {
            name: "timers_move",
            value: timers.move_ms / timers.move_beside_few_ms,
            bound: Bound::AtMost(1.5),
            from: "p50 of a move beside all of them / beside 1,000".into(),
        });
        aims
    }

    fn postgres_aims(&self) -> Vec<Aim> {
        let Some(postgres) = &self.postgres else { return Vec::new() };
        let (rate, one) = (postgres.transitions_per_s, postgres.one_node_per_s);
        let mut aims = vec![Aim {
            name: "postgres_hello",
            value: one,
            bound: Bound::AtLeast(rate / TRANSITIONS_PER_RUN_POSTGRES),
            from: format!("the store's {rate:.0} transitions/s / 10, in runs/s"),
        }];
        aims.extend(postgres.nodes_per_s.map(|several| Aim {
            name: "postgres_nodes",
            value: several,
            bound: Bound::AtLeast(0.8 * one),
            from: format!("0.8 x one node, {} nodes on this machine, in runs/s", postgres.nodes),
        }));
        let Some(failover) = postgres.failover else { return aims };
        aims.push(Aim {
            name: "postgres_failover",
            value: failover.first_s,
            bound: Bound::AtMost(failover.lease_s + 1.0),
            from: "the lease + 1 s, from the kill to the first run that went on, worst".into(),
        });
        aims.push(Aim {
            name: "postgres_timers_fire_once",
            value: failover.wrong as f64,
            bound: Bound::AtMost(0.0),
            from: "timers due while a node was dead that did not fire once".into(),
        });
        aims
    }

    fn hello_aim(
        &self,
        name: &'static str,
        hello: Option<hello::Figures>,
        transitions: f64,
    ) -> Option<Aim> {
        let hello = hello.filter(|hello| hello.concurrency == CONCURRENCY)?;
        let rate = self.store.as_ref()?.transitions_per_s?;
        Some(Aim {
            name,
            value: hello.runs_per_s,
            bound: Bound::AtLeast(rate / transitions),
            from: format!("the store's {rate:.0} transitions/s / {transitions:.0}, in runs/s"),
        })
    }

    fn sleep_aims(&self) -> Vec<Aim> {
        let Some(sleep) = &self.sleep else { return Vec::new() };
        let mut aims = vec![Aim {
            name: "sleep_never_early",
            value: sleep.early as f64,
            bound: Bound::AtMost(0.0),
            from: "sleeps that ended before their time".into(),
        }];
        aims.extend(self.hello.map(|hello| {
            let tasks = TASKS_PER_RUN * hello.runs_per_s;
            Aim {
                name: "sleep_at_once_p99",
                value: sleep.at_once_p99_ms,
                bound: Bound::AtMost(1.2 * 1e3 * sleep.runs as f64 / tasks),
                from: format!("1.2 x {} / {tasks:.0} tasks/s, in ms", sleep.runs),
            }
        }));
        aims.extend(self.store.as_ref().map(|store| {
            let sync = store.fdatasync.percentile_ms(99);
            Aim {
                name: "sleep_lone_p99",
                value: sleep.lone_p99_ms,
                bound: Bound::AtMost(2.0 * sync + 2.0),
                from: format!("2 x {sync:.2} ms (fdatasync p99) + 2 ms"),
            }
        }));
        aims
    }

    fn signal_aim(&self) -> Option<Aim> {
        let sync = self.store.as_ref()?.fdatasync.percentile_ms(50);
        Some(Aim {
            name: "signal_p50",
            value: self.signal.as_ref()?.p50_ms,
            bound: Bound::AtMost(4.0 * sync + 1.0),
            from: format!("4 x {sync:.2} ms (fdatasync p50) + 1 ms"),
        })
    }

    fn idle_aims(&self) -> Vec<Aim> {
        let Some(idle) = &self.idle else { return Vec::new() };
        let runs = idle.runs as f64;
        let mut aims = Vec::new();
        aims.extend(idle.added_mb.map(|added| Aim {
            name: "idle_memory",
            value: added,
            bound: Bound::AtMost(50.0 * runs / 100_000.0),
            from: format!("50 MB per 100,000 sleeping runs, for {runs:.0}"),
        }));
        aims.push(Aim {
            name: "restart_ready",
            value: idle.ready_s,
            bound: Bound::AtMost(2.0),
            from: format!("2 s with {runs:.0} pending timers"),
        });
        aims.extend(idle.cpu_percent.map(|percent| Aim {
            name: "idle_cpu",
            value: percent,
            bound: Bound::AtMost(1.0),
            from: "1 % of one core, server and worker together".into(),
        }));
        aims
    }
}

impl Aim {
    fn met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.value >= bound,
            Bound::AtMost(bound) => self.value <= bound,
        }
    }

    pub(crate) fn object(&self) -> Value {
        let (kind, bound) = match self.bound {
            Bound::AtLeast(bound) => ("at_least", bound),
            Bound::AtMost(bound) => ("at_most", bound),
        };
        let mut object = json!({
            "bench": "aim", "aim": self.name, "met": self.met(), "value": self.value,
            "computed_from": self.from,
        });
        object[kind] = bound.into();
        object
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, bound) = match self.bound {
            Bound::AtLeast(bound) => (">=", bound),
            Bound::AtMost(bound) => ("<=", bound),
        };
        let met = if self.met() { "met    " } else { "missed " };
        let Self { name, value, from, .. } = self;
        write!(f, "{met} {name}: {value:.2}, aim {sign} {bound:.2} ({from})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(runs_per_s: f64) -> Figures {
        let store =
            store::Figures { transitions_per_s: Some(8_000.0), fdatasync: Default::default() };
        let hello = hello::Figures { runs_per_s, concurrency: CONCURRENCY };
        Figures { store: Some(store), hello: Some(hello), ..Figures::default() }
    }

    #[test]
    fn an_aim_says_whether_it_was_met_and_from_what() {
        let said = |figures: Figures| figures.aims()[0].to_string();
        assert_eq!(
            said(hello(1_000.0)),
            "met     hello_in_process: 1000.00, aim >= 1000.00 \
             (the store's 8000 transitions/s / 8, in runs/s)"
        );
        assert!(said(hello(999.0)).starts_with("missed"));
    }

    #[test]
    fn nodes_are_judged_by_the_store_by_one_node_and_by_their_lease() {
        let failover = postgres::Failover { first_s: 5.9, wrong: 1, lease_s: 5.0 };
        let postgres = postgres::Figures {
            transitions_per_s: 30_000.0,
            one_node_per_s: 3_000.0,
            nodes: 2,
            nodes_per_s: Some(2_399.0),
            failover: Some(failover),
        };
        let figures = Figures { postgres: Some(postgres), ..Figures::default() };
        let met: Vec<_> = figures.aims().iter().map(|aim| (aim.name, aim.met())).collect();
        assert_eq!(
            met,
            [
                ("postgres_hello", true),
                ("postgres_nodes", false),
                ("postgres_failover", true),
                ("postgres_timers_fire_once", false),
            ]
        );
    }

    #[test]
    fn what_was_not_measured_has_no_aim() {
        assert!(Figures::default().aims().is_empty());
        assert_eq!(hello(1.0).aims().len(), 1);
    }
}
