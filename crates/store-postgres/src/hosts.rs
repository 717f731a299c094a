//! The hosts of a database, of which one can be written to. After a failover that is another one, and the
//! one from before may come back: as a standby, which is passed over, or by mistake as it was. Every
//! promotion begins a new timeline, so a host with an older one than was seen before is passed over too.
//! A store that has not seen the new one yet cannot know: keeping the old one down is the task of
//! whoever promotes.

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, Socket,
    config::{Host, TargetSessionAttrs},
    error::{DbError, SqlState},
};

use crate::{
    OpenError,
    address::Address,
    fault::Fault,
    session::{boxed, within},
    tls::{Encrypted, Tls},
};

/// How long one of several hosts may take at most to let us in. One that stands still accepts connections
/// too.
const PATIENCE: Duration = Duration::from_secs(3);

/// The hosts, in the order of the address.
pub(crate) struct Hosts {
    configs: Vec<Config>,
    tls: Tls,
    /// Where the last connection was made: the next one is tried there first.
    current: AtomicUsize,
    /// The newest timeline that was seen.
    newest: AtomicU32,
}

/// A connection to one of them.
pub(crate) struct Link {
    pub(crate) client: Client,
    /// The host's timeline; 0 if the database does not know what that is.
    timeline: u32,
    /// A commit was answered before its standby had it.
    hasty: Arc<AtomicBool>,
}

impl Hosts {
    pub(crate) fn read(address: &str) -> Result<Self, OpenError> {
        let address = Address::read(address)?;
        let tls = Tls::new(&address.tls)?;
        let mut configs = address.hosts;
        for config in &mut configs {
            config.ssl_mode(address.tls.mode.negotiation());
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            config.connect_timeout(Duration::from_secs(5));
            config.keepalives_idle(Duration::from_secs(10));
            config.tcp_user_timeout(Duration::from_secs(15));
            if config.get_application_name().is_none() {
                config.application_name("abide");
            }
        }
        Ok(Self { configs, tls, current: AtomicUsize::new(0), newest: AtomicU32::new(0) })
    }

    /// Connects to the host that can be written to. Each has its share of the time.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<Link, Fault> {
        if let [only] = &self.configs[..] {
            return self.link(only).await;
        }
        let count = self.configs.len();
        let share = patience.mul_f64(1.0 / count as f64).min(PATIENCE);
        let first = self.current.load(Relaxed);
        let mut faults = Vec::new();
        for index in (first..first + count).map(|number| number % count) {
            match within(share, self.link(&self.configs[index])).await {
                Ok(link) => {
                    self.current.store(index, Relaxed);
                    return Ok(link);
                }
                Err(fault) => faults.push((Place(&self.configs[index]).to_string(), fault)),
            }
        }
        Err(together(&faults))
    }

    async fn link(&self, config: &Config) -> Result<Link, Fault> {
        let (client, connection) = boxed(config.connect(self.tls.clone())).await?;
        let hasty = Arc::<AtomicBool>::default();
        tokio::spawn(drive(connection, Arc::clone(&hasty)));
        let timeline = timeline(&client).await?;
        let newest = self.newest.fetch_max(timeline, Relaxed).max(timeline);
        if timeline < newest {
            return Err(Fault::Passing(format!(
                "it is an old primary: its timeline is {timeline}, and {newest} was seen"
            )));
        }
        Ok(Link { client, timeline, hasty })
    }

    /// Whether another host has taken over since the connection was made.
    pub(crate) fn outdated(&self, link: &Link) -> bool {
        link.timeline < self.newest.load(Relaxed)
    }
}

impl Link {
    /// Whether, since this was asked before, the database answered a commit without waiting for the
    /// standby that it is set to wait for.
    pub(crate) fn was_hasty(&self) -> bool {
        self.hasty.swap(false, Relaxed)
    }
}

/// Where PostgreSQL gives up waiting for a standby because somebody told it to. The commit then looks
/// like any other, but for a warning from here.
const WAIT_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// Carries what is asked and answered.
async fn drive(mut connection: Connection<Socket, Encrypted>, hasty: Arc<AtomicBool>) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(notice = notice.message(), "the database says");
                if notice.routine() == Some(WAIT_FOR_STANDBY) {
                    hasty.store(true, Relaxed);
                }
            }
            Ok(_) => {}
            Err(error) => {
                // Whoever uses the session is told of its end by it.
                tracing::debug!(%error, "a connection to the database has ended");
                return;
            }
        }
    }
}

/// Which of the database's histories the host continues. Databases that only speak PostgreSQL's protocol
/// need not know the question.
async fn timeline(client: &Client) -> Result<u32, Fault> {
    let asked = client.query_typed("SELECT pg_walfile_name(pg_current_wal_lsn())", &[]).await;
    match asked {
        Ok(rows) => {
            let name = rows.first().map(|row| row.try_get::<_, &str>(0)).transpose()?;
            let digits = name.and_then(|name| name.get(..8)).unwrap_or_default();
            Ok(u32::from_str_radix(digits, 16).unwrap_or_default())
        }
        Err(error) if unknown_question(&error) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn unknown_question(error: &Error) -> bool {
    let code = error.as_db_error().map(DbError::code);
    let codes = [
        &SqlState::UNDEFINED_FUNCTION,
        &SqlState::FEATURE_NOT_SUPPORTED,
        &SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    code.is_some_and(|code| codes.contains(&code))
}

/// What several hosts say. It may pass if it may pass for one of them.
fn together(faults: &[(String, Fault)]) -> Fault {
    let passing = faults.iter().any(|(_, fault)| matches!(fault, Fault::Passing(_)));
    let texts: Vec<_> =
        faults.iter().map(|(host, fault)| format!("{host}: {}", fault.text())).collect();
    let text = texts.join("; ");
    if passing { Fault::Passing(text) } else { Fault::Unavailable(text) }
}

impl fmt::Display for Hosts {
    /// Hosts and database, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self.configs.iter().map(|config| Place(config).to_string()).collect();
        let database = |config: &Config| {
            config.get_dbname().or(config.get_user()).unwrap_or_default().to_owned()
        };
        let database = self.configs.first().map(database).unwrap_or_default();
        write!(f, "postgres://{}/{database}", places.join(","))
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where one host is.
struct Place<'a>(&'a Config);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.get_hosts().first(), self.0.get_hostaddrs().first()) {
            (Some(Host::Tcp(name)), _) => f.write_str(name)?,
            #[cfg(unix)]
            (Some(Host::Unix(path)), _) => write!(f, "{}", path.display())?,
            (None, Some(address)) => write!(f, "{address}")?,
            (None, None) => {}
        }
        write!(f, ":{}", self.0.get_ports().first().copied().unwrap_or(5432))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_hosts_say_is_told_with_their_names() {
        let down = ("one:5432".to_owned(), Fault::Passing("refused".to_owned()));
        let wrong = ("two:5432".to_owned(), Fault::Unavailable("no such database".to_owned()));
        let both = together(&[down, wrong.clone()]);
        let text = "one:5432: refused; two:5432: no such database";
        assert_eq!(both, Fault::Passing(text.to_owned()));
        assert!(matches!(together(&[wrong]), Fault::Unavailable(_)));
    }
}
