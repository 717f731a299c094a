//! `abide bench postgres`: the store, one node, several nodes, waiting runs and a failover on a
//! PostgreSQL server, all in one run, because each figure is judged by the others.

mod cluster;
mod database;
mod failover;
mod waiting;

use std::time::{Duration, Instant};

use abide_benches::{clients::Until, latencies::Latencies, postgres, workload::Workload};
use abide_command::Failed;
use abide_store_postgres::Options;
use clap::Args;
use tokio::time::sleep;

use self::{
    cluster::Cluster,
    database::{Database, DatabaseServer},
};
use crate::{
    hello,
    report::{Report, spinner},
    session::Session,
    store::blocking,
};

/// Measure on PostgreSQL: the store, one node, several nodes, waiting runs, a killed node
#[derive(Args)]
#[command(after_help = "Example:
  abide bench postgres --store postgres://abide:password@db.example.org/postgres
  abide bench postgres --store postgres://abide@127.0.0.1/postgres --nodes 3 --kills 0")]
pub(crate) struct Postgres {
    /// The PostgreSQL server; databases are made there for the measurement and dropped afterwards
    #[arg(
        long,
        hide_env_values = true,
        env = "ABIDE_BENCH_STORE",
        value_name = "postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    store: String,
    /// How many runs at a time, and how many clients of the store
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    concurrency: usize,
    /// How many nodes are compared with one
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    nodes: usize,
    /// How often a node is killed to see how long its runs stand still
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    kills: u64,
    /// How many runs wait while it is looked at what they cost
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    waiting: u64,
}

#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) transitions_per_s: f64,
    pub(crate) one_node_per_s: f64,
    pub(crate) nodes: usize,
    pub(crate) nodes_per_s: Option<f64>,
    pub(crate) failover: Option<Failover>,
}

pub(crate) use self::failover::Figures as Failover;

/// How long the database may take to update its statistics.
const COUNTED: Duration = Duration::from_millis(1_500);

impl Postgres {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let server = DatabaseServer::connect(&self.store).await?;
        let mut figures = Figures { nodes: self.nodes, ..Figures::default() };
        figures.transitions_per_s =
            server.with_database("store", async |it| self.raw(&it, session).await).await?;
        figures.one_node_per_s =
            server.with_database("one", async |it| self.hello(&it, 1, session).await).await?;
        if self.nodes > 1 {
            let hello = async |it: Database| self.hello(&it, self.nodes, session).await;
            figures.nodes_per_s = Some(server.with_database("several", hello).await?);
        }
        if self.waiting > 0 {
            let waiting = async |it: Database| waiting::measure(&it, self.waiting, session).await;
            server.with_database("waiting", waiting).await?;
        }
        if self.kills > 0 {
            let failover = async |it: Database| failover::measure(&it, self.kills, session).await;
            figures.failover = Some(server.with_database("failover", failover).await?);
        }
        session.figures.postgres = Some(figures);
        Ok(())
    }

    /// The store alone, with group commits.
    async fn raw(&self, database: &Database, session: &Session<'_>) -> Result<f64, Failed> {
        let options = Options::new(&database.address).map_err(Failed::usage)?;
        let (clients, time) = (self.concurrency, Until::Elapsed(session.time));
        let bar = spinner(format!("the store on PostgreSQL, {clients} clients"));
        let before = database.work().await?;
        let measured = move || postgres::fresh(&options, Workload::Hello, clients, time);
        let (measured, _) = blocking(move || measured().map_err(Failed::refused)).await?;
        sleep(COUNTED).await;
        let work = database.work().await?.since(before);
        bar.finish_and_clear();
        let per_transition = |value: f64| value / measured.transitions as f64;
        session.report(
            &Report::new("postgres-store", format!("hello's transitions, {clients} clients"))
                .count("clients", clients as u64)
                .figure("transitions_per_s", measured.rate())
                .figure("p50_ms", measured.latencies.percentile_ms(50))
                .figure("p99_ms", measured.latencies.percentile_ms(99))
                .known("database_cpu_ms", work.cpu_s.map(|cpu| per_transition(cpu * 1e3)))
                .figure("rows", per_transition(work.rows))
                .figure("log_bytes", per_transition(work.log_bytes))
                .figure("table_bytes", per_transition(work.table_bytes)),
        )?;
        Ok(measured.rate())
    }

    /// Whole runs, with clients and workers spread over so many nodes.
    async fn hello(
        &self,
        database: &Database,
        nodes: usize,
        session: &Session<'_>,
    ) -> Result<f64, Failed> {
        let mut cluster = Cluster::start(database, nodes).await?;
        cluster.start_workers().await?;
        let clients = cluster.clients().await?;
        hello::drive(&clients, self.concurrency, hello::WARM_UP).await?;
        let bar = spinner(format!("hello on PostgreSQL, {nodes} nodes"));
        sleep(COUNTED).await;
        let (work, used, begun) = (database.work().await?, cluster.usage(), Instant::now());
        let latencies = hello::drive(&clients, self.concurrency, session.time).await?;
        let (elapsed, used) = (begun.elapsed(), used.zip(cluster.usage()));
        sleep(COUNTED).await;
        let work = database.work().await?.since(work);
        bar.finish_and_clear();
        let runs = latencies.len() as f64;
        let (latencies, per_run) = (Latencies::from(latencies), |value: f64| value / runs);
        let cpu = used.map(|(before, after)| after.cpu.saturating_sub(before.cpu).as_secs_f64());
        let what = format!("{nodes} nodes, each with a worker, {} at a time", self.concurrency);
        session.report(
            &Report::new("postgres-hello", what)
                .count("nodes", nodes as u64)
                .count("concurrency", self.concurrency as u64)
                .count("runs", latencies.count() as u64)
                .figure("runs_per_s", runs / elapsed.as_secs_f64())
                .figure("p50_ms", latencies.percentile_ms(50))
                .figure("p99_ms", latencies.percentile_ms(99))
                .known("cpu_ms_per_run", cpu.map(|cpu| per_run(cpu * 1e3)))
                .known("database_cpu_ms_per_run", work.cpu_s.map(|cpu| per_run(cpu * 1e3)))
                .figure("commits_per_run", per_run(work.commits))
                .figure("rows_per_run", per_run(work.rows))
                .figure("log_bytes_per_run", per_run(work.log_bytes))
                .figure("table_bytes_per_run", per_run(work.table_bytes)),
        )?;
        Ok(runs / elapsed.as_secs_f64())
    }
}
