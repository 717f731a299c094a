//! One connection with its settings and prepared statements, and the lane that replaces it when it
//! is lost.
//!
//! Every session limits how long the database works, waits for locks and stays idle for it. So a
//! node that stalls in the middle of a transaction, or is cut off, does not block a node that takes
//! over its shards: the database releases its locks on epoch rows after at most `idle_timeout`, or
//! `statement_timeout` if the database itself is slow, and a statement that waits for them fails
//! after `lock_timeout`.

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{
    Error, Row, Statement,
    types::{ToSql, Type},
};

use crate::{
    Options,
    fault::Fault,
    hosts::{HostLink, Hosts},
    prepared::PreparedStatements,
};

pub(crate) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A statement that is prepared once per connection, with its parameters.
pub(crate) struct Call<'a> {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) params: Vec<Param<'a>>,
}

/// A statement that was built for one query, with its parameters and their types.
pub(crate) struct Made {
    pub(crate) sql: String,
    pub(crate) params: Vec<(Param<'static>, Type)>,
}

/// A call whose statement is prepared, so that it is sent as soon as it is polled. It does not rely on
/// what the connection keeps: that may be less by then.
pub(crate) struct Prepared<'a> {
    statement: Statement,
    params: Vec<Param<'a>>,
}

pub(crate) struct Session {
    link: HostLink,
    hosts: Arc<Hosts>,
    prepared: Mutex<PreparedStatements<Statement>>,
    discarded: AtomicBool,
}

impl Session {
    /// Connects and applies the settings; the tables need not exist yet.
    pub(crate) async fn connect(options: &Options, patience: Duration) -> Result<Self, Fault> {
        let hosts = Arc::clone(&options.hosts);
        let link = hosts.connect(patience).await?;
        link.client.batch_execute(&settings(options)).await?;
        Ok(Self { link, hosts, prepared: Mutex::default(), discarded: AtomicBool::new(false) })
    }

    /// Whether the connection is closed.
    pub(crate) fn ended(&self) -> bool {
        self.link.client.is_closed()
            || self.discarded.load(Relaxed)
            || self.hosts.outdated(&self.link)
    }

    /// Marks the connection as unusable, because its state is unknown.
    pub(crate) fn discard(&self) {
        self.discarded.store(true, Relaxed);
    }

    /// Whether, since the last call, the database acknowledged a commit before its standby had it.
    pub(crate) fn take_unreplicated(&self) -> bool {
        self.link.take_unreplicated()
    }

    /// Runs SQL that returns no rows.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.link.client.batch_execute(sql).await
    }

    /// Prepares the statements, pipelined.
    pub(crate) async fn prepare(
        &self,
        statements: impl IntoIterator<Item = Cow<'static, str>>,
    ) -> Result<(), Error> {
        let prepare = |sql| boxed(async move { self.statement(&sql).await.map(drop) });
        flight(statements.into_iter().map(prepare).collect()).await.into_iter().collect()
    }

    pub(crate) async fn prepare_call<'a>(&self, call: Call<'a>) -> Result<Prepared<'a>, Error> {
        let statement = self.statement(&call.sql).await?;
        Ok(Prepared { statement, params: call.params })
    }

    /// Prepares the statements of these calls, pipelined.
    pub(crate) async fn prepare_calls<'a>(
        &self,
        calls: Vec<Call<'a>>,
    ) -> Result<Vec<Prepared<'a>>, Error> {
        let prepare = |call| boxed(self.prepare_call(call));
        flight(calls.into_iter().map(prepare).collect()).await.into_iter().collect()
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) async fn execute(&self, call: Prepared<'_>) -> Result<u64, Error> {
        self.link.client.execute_raw(&call.statement, call.params).await
    }

    /// Runs a prepared statement and returns its rows.
    pub(crate) async fn query(&self, call: &Call<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.statement(&call.sql).await?;
        self.link.client.query(&statement, &borrowed(call.params.iter())).await
    }

    /// Like [`Self::query`], for a statement that is not worth preparing.
    pub(crate) async fn query_made(&self, made: &Made) -> Result<Vec<Row>, Error> {
        let params: Vec<_> =
            made.params.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
        self.link.client.query_typed(&made.sql, &params).await
    }

    /// The first column of all rows, as text.
    pub(crate) async fn texts(&self, sql: &str, param: &str) -> Result<Vec<String>, Error> {
        let rows = self.link.client.query_typed(sql, &[(&param, Type::TEXT)]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    /// The first column of the first row, as a number.
    pub(crate) async fn number(&self, sql: &str) -> Result<Option<i64>, Error> {
        let rows = self.link.client.query_typed(sql, &[]).await?;
        rows.first().map(|row| row.try_get(0)).transpose()
    }

    /// The first two columns of the first row, as numbers.
    pub(crate) async fn numbers(&self, sql: &str) -> Result<Option<[i64; 2]>, Error> {
        let rows = self.link.client.query_typed(sql, &[]).await?;
        rows.first().map(|row| Ok([row.try_get(0)?, row.try_get(1)?])).transpose()
    }

    #[expect(
        clippy::ptr_arg,
        reason = "it becomes a key as it is, so that fixed texts are not copied"
    )]
    async fn statement(&self, sql: &Cow<'static, str>) -> Result<Statement, Error> {
        let known = self.lock().get(sql);
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.link.client.prepare(sql).await?;
        self.lock().insert(sql.clone(), statement.clone());
        Ok(statement)
    }

    /// No code that could panic runs while the lock is held.
    fn lock(&self) -> MutexGuard<'_, PreparedStatements<Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn borrowed<'a>(params: impl Iterator<Item = &'a Param<'a>>) -> Vec<&'a (dyn ToSql + Sync)> {
    params.map(|value| &**value as &(dyn ToSql + Sync)).collect()
}

/// The tables are small when statements are first planned and large later. Every query finds its
/// rows by key, so other plans are disabled regardless of statistics. Warnings are enabled
/// because a warning is the only sign of a commit that did not wait for its standby.
fn settings(options: &Options) -> String {
    let millis = |duration: Duration| duration.as_millis().max(1);
    format!(
        "SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}; \
         SET search_path = {}; SET client_encoding = 'UTF8'; \
         SET client_min_messages = warning; \
         SET default_transaction_isolation = 'read committed'; \
         SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; \
         SET enable_mergejoin = off; \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') = 'off'",
        millis(options.statement_timeout),
        millis(options.lock_timeout),
        millis(options.idle_timeout),
        quoted(&options.schema),
    )
}

/// Quotes a name as an SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// One request of a pipeline.
pub(crate) type Piece<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub(crate) fn boxed<'a, T>(piece: impl Future<Output = T> + Send + 'a) -> Piece<'a, T> {
    Box::pin(piece)
}

/// Sends all pieces in this order without waiting for responses in between, then waits for all of
/// them. If a piece fails before it is sent, no later piece is sent: the result is then shorter,
/// with that failure last.
pub(crate) async fn flight<T, E>(mut pieces: Vec<Piece<'_, Result<T, E>>>) -> Vec<Result<T, E>> {
    let mut answers: Vec<Option<Result<T, E>>> = Vec::new();
    poll_fn(|context| {
        let sent = answers.len();
        while answers.len() < pieces.len() {
            let answer = match pieces[answers.len()].as_mut().poll(context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            };
            let failed = matches!(answer, Some(Err(_)));
            answers.push(answer);
            if failed {
                pieces.truncate(answers.len());
            }
        }
        for (piece, answer) in pieces.iter_mut().zip(&mut answers).take(sent) {
            if answer.is_none()
                && let Poll::Ready(value) = piece.as_mut().poll(context)
            {
                *answer = Some(value);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// Plans a writer's statements once, for any parameters: theirs are arrays, of which only the lengths
/// differ. Otherwise each is planned five times on each connection. Databases that lack the setting are
/// left alone.
const PLAN_ONCE: &str = "SELECT set_config(name, 'force_generic_plan', false) FROM pg_settings \
    WHERE name = 'plan_cache_mode'";

/// Slot for one session, connected on first use and again whenever it is lost.
pub(crate) struct Lane {
    options: Arc<Options>,
    /// Prepared on connect, so that no statement of a group waits for another to be prepared.
    prepare: &'static [&'static str],
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    /// How long to wait for a response.
    patience: Duration,
    /// How long transient failures are retried.
    retry_for: Duration,
}

/// Pause before the first retry; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Lane {
    pub(crate) fn new(options: &Arc<Options>, prepare: &'static [&'static str]) -> Self {
        Self {
            options: Arc::clone(options),
            prepare,
            session: tokio::sync::Mutex::default(),
            patience: options.patience(),
            retry_for: options.retry_for,
        }
    }

    /// A lane for the registry, where a late response is worthless.
    pub(crate) fn for_registry(options: &Arc<Options>, prepare: &'static [&'static str]) -> Self {
        let patience = options.registry_timeout;
        Self { patience, retry_for: patience, ..Self::new(options, prepare) }
    }

    /// The session, reconnected if necessary.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Fault> {
        let mut place = self.session.lock().await;
        if let Some(session) = place.as_ref().filter(|session| !session.ended()) {
            return Ok(Arc::clone(session));
        }
        *place = None;
        let connected = async {
            let session = Session::connect(&self.options, self.patience).await?;
            if !self.prepare.is_empty() {
                session.run(PLAN_ONCE).await?;
            }
            session.prepare(self.prepare.iter().copied().map(Cow::Borrowed)).await?;
            Ok(session)
        };
        let session = within(self.patience, connected).await?;
        Ok(Arc::clone(place.insert(Arc::new(session))))
    }

    /// How long to wait for a response.
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Until when work that starts now is retried.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.retry_for
    }

    /// A lane with the same settings and no session yet.
    pub(crate) fn without_session(&self) -> Self {
        let (patience, retry_for) = (self.patience, self.retry_for);
        Self { patience, retry_for, ..Self::new(&self.options, self.prepare) }
    }

    /// Runs an operation on the lane's session, and retries transient failures for a while.
    pub(crate) async fn attempt<'a, T>(
        &self,
        work: impl FnMut(Arc<Session>) -> Piece<'a, Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.attempt_until(self.deadline(), work).await
    }

    /// Like [`Self::attempt`], with an explicit deadline.
    pub(crate) async fn attempt_until<'a, T>(
        &self,
        deadline: Instant,
        mut work: impl FnMut(Arc<Session>) -> Piece<'a, Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let mut pause = FIRST_PAUSE;
        loop {
            let session = self.session().await;
            let outcome = match &session {
                Ok(session) => work(Arc::clone(session)).await,
                Err(fault) => Err(fault.clone()),
            };
            if let (Ok(session), Err(Fault::Passing(_))) = (&session, &outcome) {
                session.discard();
            }
            match outcome {
                Err(Fault::Passing(_) | Fault::Conflict(_))
                    if Instant::now() + pause < deadline =>
                {
                    sleep(pause).await;
                }
                outcome => return outcome,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Fails if no response arrives in time, which means that the connection is dead.
pub(crate) async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let silent = |_| Err(Fault::Passing(format!("the database did not answer in {patience:?}")));
    timeout(patience, work).await.unwrap_or_else(silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sent = Arc<Mutex<Vec<u8>>>;
    type Answer = Result<u8, &'static str>;

    /// A piece that is sent on its first poll and answered on its second.
    fn piece(name: u8, sent: &Sent) -> Piece<'static, Answer> {
        let (sent, mut waits) = (Arc::clone(sent), true);
        boxed(poll_fn(move |context| {
            if std::mem::take(&mut waits) {
                sent.lock().unwrap().push(name);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Ok(name))
        }))
    }

    #[test]
    fn all_pieces_are_sent_before_the_first_is_answered() {
        let sent = Sent::default();
        let answers = pollster::block_on(flight(vec![piece(1, &sent), piece(2, &sent)]));
        assert_eq!((answers, &*sent.lock().unwrap()), (vec![Ok(1), Ok(2)], &vec![1, 2]));
    }

    #[test]
    fn nothing_is_sent_behind_what_cannot_be_sent() {
        let sent = Sent::default();
        let unsent = boxed(async { Err("too long") });
        let pieces = vec![piece(1, &sent), unsent, piece(2, &sent)];
        let answers = pollster::block_on(flight(pieces));
        assert_eq!((answers, &*sent.lock().unwrap()), (vec![Ok(1), Err("too long")], &vec![1]));
    }
}
