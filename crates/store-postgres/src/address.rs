//! Parses the address of a database. PostgreSQL's client library for Rust parses most of it; the
//! TLS settings that the library does not know are extracted here. Each host gets its own
//! configuration, so that a host that accepts connections but never answers does not hide the next
//! one.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;

use crate::{
    OpenError,
    tls::{Mode, Roots, Settings},
};

/// A parsed address: how to connect to each host, in order, and its TLS settings.
pub(crate) struct Address {
    pub(crate) hosts: Vec<Config>,
    pub(crate) tls: Settings,
}

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl Address {
    pub(crate) fn read(address: &str) -> Result<Self, OpenError> {
        let without_scheme = |scheme: &&str| address.strip_prefix(*scheme);
        let Some(rest) = SCHEMES.iter().find_map(without_scheme) else {
            return Err(refused("it does not begin with postgres://"));
        };
        let (user, rest) = match rest.find('@') {
            Some(at) => rest.split_at(at + 1),
            None => ("", rest),
        };
        let (hosts, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if hosts.contains('@') {
            // The text before it may be the end of a password, which error messages would show as a
            // host.
            return Err(refused("an @ in user or password is written as %40"));
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut tls = Settings::default();
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if !take(&mut tls, pair)? {
                others.push(pair);
            }
        }
        let others = others.join("&");
        let read = |host: &str| config(&format!("postgres://{user}{host}{path}?{others}"));
        let hosts = hosts.split(',').map(str::trim).map(read).collect::<Result<_, _>>()?;
        tls.check().map_err(|reason| refused(&reason))?;
        Ok(Self { hosts, tls })
    }
}

/// Stores the pair in `tls` if it is a TLS setting, and returns whether it was.
fn take(tls: &mut Settings, pair: &str) -> Result<bool, OpenError> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let value = || {
        let decoded = percent_decode_str(value).decode_utf8();
        decoded.map_err(|_| refused(&format!("the value of {name} is not UTF-8")))
    };
    match name {
        "sslmode" => tls.mode = Mode::read(&value()?).map_err(|reason| refused(&reason))?,
        "sslrootcert" => {
            let value = value()?;
            let system = value == "system";
            tls.roots = Some(if system { Roots::System } else { Roots::File(file(&value)) });
        }
        "sslcert" => tls.certificate = Some(file(&value()?)),
        "sslkey" => tls.key = Some(file(&value()?)),
        _ => return Ok(false),
    }
    Ok(true)
}

fn file(path: &str) -> PathBuf {
    PathBuf::from(path)
}

/// Client configuration from the address of a single host.
fn config(address: &str) -> Result<Config, OpenError> {
    let config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
        // The message names the faulty part and never the password.
        let source = std::error::Error::source(&error);
        refused(&source.map_or_else(|| error.to_string(), ToString::to_string))
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(refused("it has no host"));
    }
    Ok(config)
}

fn refused(reason: &str) -> OpenError {
    OpenError::Address { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn each_host_is_reached_with_the_same_user_and_database() {
        let read =
            Address::read("postgresql://me:pw@one:1, [::1]:2,three /things?user=you").unwrap();
        let hosts: Vec<_> =
            read.hosts.iter().map(|host| (host.get_hosts(), host.get_ports())).collect();
        let tcp = |name: &str| Host::Tcp(name.to_owned());
        assert_eq!(
            hosts,
            [(&[tcp("one")][..], &[1][..]), (&[tcp("::1")], &[2]), (&[tcp("three")], &[5432])]
        );
        for host in &read.hosts {
            assert_eq!((host.get_user(), host.get_dbname()), (Some("you"), Some("things")));
        }
        assert_eq!(read.tls, Settings::default());
    }

    #[test]
    fn settings_of_tls_are_read_wherever_they_stand() {
        let query =
            "sslmode=verify-full&application_name=x&sslrootcert=%2Fa%20b.pem&sslcert=c&sslkey=k";
        let read = Address::read(&format!("postgres://host?{query}")).unwrap();
        assert_eq!(read.hosts[0].get_application_name(), Some("x"));
        let expected = Settings {
            mode: Mode::VerifyFull,
            roots: Some(Roots::File("/a b.pem".into())),
            certificate: Some("c".into()),
            key: Some("k".into()),
        };
        assert_eq!(read.tls, expected);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let cases = [
            ("host=one", "does not begin with postgres://"),
            ("postgres:///things", "has no host"),
            ("postgres://me@one,/things", "has no host"),
            ("postgres://me:p@ss@host/things", "%40"),
            ("postgres://host?sslmode=allow", "sslmode"),
            ("postgres://host?sslmode=prefer&sslrootcert=x", "sslrootcert"),
            ("postgres://host?sslmode=verify-ca", "sslrootcert"),
            ("postgres://host?sslmode=verify-ca&sslrootcert=system", "verify-full"),
            ("postgres://host?sslmode=require&sslcert=x", "sslkey"),
            ("postgres://host?sslmode=disable&sslcert=x&sslkey=y", "disable"),
            ("postgres://host?nonsense=1", "nonsense"),
        ];
        for (address, named) in cases {
            let reason = Address::read(address).err().unwrap().to_string();
            assert!(reason.contains(named), "{address}: {reason}");
        }
    }
}
