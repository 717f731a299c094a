//! A fuzzer that knows the schema. Strangers send messages, valid and mutated, by every method and
//! both streams, while an honest client works beside them. Now and then the server restarts on what
//! they left behind. All random choices of a stranger come from the seed of its round.

mod mutate;
mod stranger;
mod tally;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};

use self::stranger::Stranger;
pub use self::tally::Tally;
use crate::{Arena, Bytes, Finding, Machine, Report, Victim, schema::Schema};

/// Number of strangers at a time.
const STRANGERS: usize = 4;

/// Time after which the server restarts on the same store.
const BOUT: Duration = Duration::from_secs(240);

/// More memory than this is a finding: a few messages of the largest size, in pieces.
const RSS: Bytes = Bytes::mb(800);

/// How long to fuzz, and with which seeds.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The seed of the first round; each following round has the next number.
    pub seed: u64,
    /// Largest number of rounds.
    pub rounds: u64,
    /// No round begins after this.
    pub until: Instant,
}

/// State that all strangers share.
struct CampaignState {
    campaign: Campaign,
    schema: Schema,
    next: AtomicU64,
    /// Seeds of rounds in progress.
    playing: Mutex<BTreeSet<u64>>,
    tally: Mutex<Tally>,
}

impl Campaign {
    /// Plays rounds; calls `show` with the tally every second.
    pub async fn run(self, show: impl Fn(&Tally)) -> Result<Report, Finding> {
        let arena = Arena::new(Machine::Shared)?;
        let data = arena.path("fuzzed");
        let shared = Arc::new(CampaignState {
            campaign: self,
            schema: Schema::read()?,
            next: AtomicU64::new(self.seed),
            playing: Mutex::default(),
            tally: Mutex::default(),
        });
        let mut peak = Bytes::default();
        let mut slowest = Duration::ZERO;
        while !shared.over() {
            let victim = arena.start_with(|config| config.data.clone_from(&data)).await?;
            let (rss, latency) = shared.bout(victim, &show).await?;
            (peak, slowest) = (peak.max(rss), slowest.max(latency));
        }
        let victim = arena.start_with(|config| config.data.clone_from(&data)).await?;
        let runs = victim.honest().await?.look_at_all().await?;
        victim.end().await?;
        let tally = shared.tally();
        tally.check()?;
        Ok(tally
            .report()
            .with("peak RSS", peak)
            .with("slowest honest call", format!("{slowest:.1?}"))
            .with("runs left behind", runs))
    }
}

impl CampaignState {
    fn over(&self) -> bool {
        let Campaign { seed, rounds, until } = self.campaign;
        let played = self.next.load(Ordering::Relaxed) - seed;
        played >= rounds || Instant::now() >= until
    }

    fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn playing(&self) -> std::sync::MutexGuard<'_, BTreeSet<u64>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays against one server; returns its memory and the slowest call of an honest client.
    async fn bout(
        self: &Arc<Self>,
        mut victim: Victim,
        show: &impl Fn(&Tally),
    ) -> Result<(Bytes, Duration), Finding> {
        let ends = Instant::now() + BOUT;
        let watch = victim.honest().await?.watch();
        let mut strangers = JoinSet::new();
        for _ in 0..STRANGERS {
            let (shared, channel) = (Arc::clone(self), victim.channel().await?);
            strangers.spawn(async move {
                while !shared.over() && Instant::now() < ends {
                    shared.round(channel.clone()).await?;
                }
                Ok::<_, Finding>(())
            });
        }
        loop {
            let ended = tokio::select! {
                ended = strangers.join_next() => ended,
                () = sleep(Duration::from_secs(1)) => Some(Ok(Ok(()))),
            };
            // The reason for the server's death says more than a failed call.
            victim.check().map_err(|finding| self.with_seeds(&finding))?;
            match ended {
                Some(played) => played?.map_err(|finding| self.with_seeds(&finding))?,
                None => break,
            }
            show(&self.tally());
        }
        let latency = watch.end().await.map_err(|finding| self.with_seeds(&finding))?;
        check_figures(&victim.get("/metrics").await?)?;
        check_log(&victim.log())?;
        let peak = victim.peak_rss();
        Finding::unless(peak <= RSS, || format!("RSS came to {peak}, more than {RSS}"))?;
        victim.end().await?;
        Ok((peak, latency.worst))
    }

    async fn round(&self, channel: tonic::transport::Channel) -> Result<(), Finding> {
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        self.playing().insert(seed);
        let tally = Stranger::new(&self.schema, channel, seed).play().await?;
        self.playing().remove(&seed);
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(&tally);
        Ok(())
    }

    fn with_seeds(&self, finding: &Finding) -> Finding {
        let playing = self.playing();
        let first = playing.first().copied().unwrap_or(self.campaign.seed);
        let last = playing.last().copied().unwrap_or(first);
        let rounds = last - first + 1;
        Finding::new(format!(
            "{finding}\n  repeat with: cargo xtask hostile --only fuzz --seed {first} --rounds {rounds}"
        ))
    }
}

/// Metrics that stay zero unless something inside the server went wrong.
const QUIET: &[&str] = &[
    "result=\"set_aside\"",
    "result=\"unreadable\"",
    "result=\"reset\"",
    "result=\"no_answer\"",
    "abide_store_faults_total{",
];

/// A chore of the store that is done later if a read takes longer than five seconds, which depends on
/// what else the machine runs.
const CHORES: &str = "kind=\"upkeep\"";

fn check_figures(figures: &str) -> Result<(), Finding> {
    let quiet =
        |line: &&str| QUIET.iter().any(|quiet| line.contains(quiet)) && !line.contains(CHORES);
    let loud = figures.lines().filter(quiet).find(|line| !line.ends_with(" 0"));
    loud.map_or(Ok(()), |line| Err(Finding::new(format!("a figure is not zero: {line}"))))
}

fn check_log(log: &str) -> Result<(), Finding> {
    let error = log.lines().find(|line| line.contains(" ERROR "));
    error.map_or(Ok(()), |line| Err(Finding::new(format!("the server logged: {line}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_should_be_zero_is_noticed() {
        let figures = "abide_calls_total{result=\"ok\"} 7\nabide_calls_total{result=\"reset\"} 0\n";
        assert!(check_figures(figures).is_ok());
        let found = check_figures("abide_store_faults_total{kind=\"refused\"} 1\n");
        assert!(found.is_err_and(|finding| finding.to_string().contains("refused")));
    }
}
