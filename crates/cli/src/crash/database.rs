//! The database that all nodes share: where it is, so that each node can be given a way of its own.

use crate::failed::Failed;

/// The address of a database, in the parts that matter here.
#[derive(Clone)]
pub(super) struct Database {
    before: String,
    /// Host and port.
    pub(super) place: String,
    after: String,
}

const DEFAULT_PORT: u16 = 5432;

impl Database {
    /// Understands an address with one host.
    pub(super) fn parse(address: &str) -> Result<Self, Failed> {
        // The address may hold a password, so it is not repeated.
        let refuse = |what| {
            Failed::usage(format_args!("--store {what}"))
                .hint("write it as postgres://user:password@host:5432/database")
        };
        let Some((scheme @ ("postgres" | "postgresql"), rest)) = address.split_once("://") else {
            return Err(refuse("is no address of a PostgreSQL database"));
        };
        let (authority, after) = match rest.find(['/', '?']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (format!("{user}@"), host),
            None => (String::new(), authority),
        };
        if host.is_empty() || host.contains([',', '%']) {
            return Err(refuse("must name one host, which each node reaches by a proxy"));
        }
        let port_said = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let place = if port_said { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
        Ok(Self { before: format!("{scheme}://{user}"), place, after: after.to_owned() })
    }

    /// The same database, reached at another place.
    pub(super) fn at(&self, place: impl std::fmt::Display) -> String {
        format!("{}{place}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_database_can_be_changed() {
        let check = |address: &str, place: &str, moved: &str| {
            let database = Database::parse(address).unwrap();
            assert_eq!((database.place.as_str(), database.at("p:1").as_str()), (place, moved));
        };
        check("postgres://u:p@db:77/x?a=b", "db:77", "postgres://u:p@p:1/x?a=b");
        check("postgresql://db/x", "db:5432", "postgresql://p:1/x");
        check("postgres://u@db", "db:5432", "postgres://u@p:1");
    }

    #[test]
    fn other_addresses_are_refused_without_showing_a_password() {
        for address in ["mysql://u:secret@db/x", "postgres://u:secret@a,b/x", "secret"] {
            let failed = Database::parse(address).map(drop).unwrap_err().to_string();
            assert!(failed.contains("postgres://user:password") && !failed.contains("secret"));
        }
    }
}
