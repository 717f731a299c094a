//! The address of the shared database, so that each node can reach it through its own proxy.

use abide_command::Failed;

/// The parts of a database address that matter here.
#[derive(Clone)]
pub(crate) struct Database {
    before: String,
    /// Host and port of the database.
    pub(crate) place: String,
    after: String,
}

const DEFAULT_PORT: u16 = 5432;

impl Database {
    /// Parses an address with one host.
    pub(crate) fn parse(address: &str) -> Result<Self, Failed> {
        // The address may hold a password, so errors do not repeat it.
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
        // Inside TLS the proxy could not see which message is a commit, and so could not lose its
        // answer.
        let mut settings = after.split_once('?').map_or("", |(_, query)| query).split('&');
        let tls = settings.find_map(|setting| setting.strip_prefix("sslmode="));
        let after = match tls {
            Some("disable") => after.to_owned(),
            Some(_) => {
                return Err(refuse("asks for TLS, and the proxy of each node must see commits"));
            }
            None => {
                format!("{after}{}sslmode=disable", if after.contains('?') { '&' } else { '?' })
            }
        };
        let port_said = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let place = if port_said { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") };
        Ok(Self { before: format!("{scheme}://{user}"), place, after })
    }

    /// The same database, reached at another host and port.
    pub(crate) fn at(&self, place: impl std::fmt::Display) -> String {
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
        check("postgres://u:p@db:77/x?a=b", "db:77", "postgres://u:p@p:1/x?a=b&sslmode=disable");
        check("postgresql://db/x", "db:5432", "postgresql://p:1/x?sslmode=disable");
        check("postgres://u@db", "db:5432", "postgres://u@p:1?sslmode=disable");
        let plain = "postgres://p:1/x?sslmode=disable&a=b";
        check("postgres://db/x?sslmode=disable&a=b", "db:5432", plain);
    }

    #[test]
    fn other_addresses_are_refused_without_showing_a_password() {
        let tls = "postgres://u:secret@db/x?sslmode=require";
        for address in ["mysql://u:secret@db/x", "postgres://u:secret@a,b/x", "secret", tls] {
            let failed = Database::parse(address).map(drop).unwrap_err().to_string();
            assert!(failed.contains("postgres://user:password") && !failed.contains("secret"));
        }
    }
}
