//! The hosts of a database, one of which accepts writes. After a failover that is a different host,
//! and the old primary may return: as a standby, which is skipped, or by mistake as a primary.
//! Every promotion starts a new timeline, so a host whose timeline is older than one already seen
//! is skipped too. A store that has not yet seen the new timeline cannot detect this: the
//! operator who promotes a standby must keep the old primary down.

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

/// Upper bound for connecting to one of several hosts. A host that hangs still accepts connections.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) struct Hosts {
    configs: Vec<Config>,
    tls: Tls,
    /// Host of the last connection, tried first for the next one.
    current: AtomicUsize,
    /// Newest timeline seen on any host.
    newest: AtomicU32,
}

/// A connection to one of the hosts.
pub(crate) struct HostLink {
    pub(crate) client: Client,
    /// Timeline of the host; 0 if the database does not report one.
    timeline: u32,
    /// Set when a commit was acknowledged before its standby had it.
    unreplicated: Arc<AtomicBool>,
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

    /// Connects to the host that accepts writes. Each host gets an equal share of the time.
    pub(crate) async fn connect(&self, patience: Duration) -> Result<HostLink, Fault> {
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
                Err(fault) => faults.push((HostName(&self.configs[index]).to_string(), fault)),
            }
        }
        Err(combined(&faults))
    }

    async fn link(&self, config: &Config) -> Result<HostLink, Fault> {
        let (client, connection) = boxed(config.connect(self.tls.clone())).await?;
        let unreplicated = Arc::<AtomicBool>::default();
        tokio::spawn(drive(connection, Arc::clone(&unreplicated)));
        let timeline = timeline(&client).await?;
        let newest = self.newest.fetch_max(timeline, Relaxed).max(timeline);
        if timeline < newest {
            return Err(Fault::Passing(format!(
                "it is an old primary: its timeline is {timeline}, and {newest} was seen"
            )));
        }
        Ok(HostLink { client, timeline, unreplicated })
    }

    /// Whether a failover has happened since this connection was made.
    pub(crate) fn outdated(&self, link: &HostLink) -> bool {
        link.timeline < self.newest.load(Relaxed)
    }
}

impl HostLink {
    /// Whether, since the last call, the database acknowledged a commit without waiting for its
    /// synchronous standby.
    pub(crate) fn take_unreplicated(&self) -> bool {
        self.unreplicated.swap(false, Relaxed)
    }
}

/// Function of PostgreSQL that logs a warning when an administrator cancels the wait for a standby.
/// Apart from this warning, the commit looks like any other.
const WAIT_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// Drives the connection until it closes.
async fn drive(mut connection: Connection<Socket, Encrypted>, unreplicated: Arc<AtomicBool>) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(notice = notice.message(), "notice from the database");
                if notice.routine() == Some(WAIT_FOR_STANDBY) {
                    unreplicated.store(true, Relaxed);
                }
            }
            Ok(_) => {}
            Err(error) => {
                // The user of the session gets the error from its own call.
                tracing::debug!(%error, "a database connection ended");
                return;
            }
        }
    }
}

/// Timeline of the host, that is, which history of the database it continues. Databases that merely
/// speak PostgreSQL's protocol may not support the query.
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

/// Combines the faults of several hosts. The result is transient if at least one of them is.
fn combined(faults: &[(String, Fault)]) -> Fault {
    let passing = faults.iter().any(|(_, fault)| matches!(fault, Fault::Passing(_)));
    let texts: Vec<_> =
        faults.iter().map(|(host, fault)| format!("{host}: {}", fault.text())).collect();
    let text = texts.join("; ");
    if passing { Fault::Passing(text) } else { Fault::Unavailable(text) }
}

impl fmt::Display for Hosts {
    /// Shows hosts and database, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> =
            self.configs.iter().map(|config| HostName(config).to_string()).collect();
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

/// Address of one host, for messages.
struct HostName<'a>(&'a Config);

impl fmt::Display for HostName<'_> {
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
        let both = combined(&[down, wrong.clone()]);
        let text = "one:5432: refused; two:5432: no such database";
        assert_eq!(both, Fault::Passing(text.to_owned()));
        assert!(matches!(combined(&[wrong]), Fault::Unavailable(_)));
    }
}
