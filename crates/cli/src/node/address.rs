//! A listening address as typed: with a port, and with or without a scheme.

use std::net::{SocketAddr, ToSocketAddrs as _};

use abide_command::Failed;

pub(super) fn parse(text: &str) -> Result<SocketAddr, Failed> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failed::usage(format_args!("cannot listen on {text:?}: {why}"))
            .hint("write it as 127.0.0.1:7233; port 0 picks a free port")
    };
    if text.contains(',') {
        return Err(refuse(&"an engine listens on one address, not on a list"));
    }
    if text.starts_with("https://") {
        return Err(refuse(&"TLS is set up with --tls-certificate of `abide serve`"));
    }
    let place = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let mut found = place.to_socket_addrs().map_err(|error| refuse(&error))?;
    found.next().ok_or_else(|| refuse(&"the host has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_may_be_left_out() {
        for text in ["127.0.0.1:7000", "http://127.0.0.1:7000", "http://127.0.0.1:7000/"] {
            assert_eq!(parse(text).unwrap().to_string(), "127.0.0.1:7000");
        }
        assert!(parse("7000").unwrap_err().to_string().contains("write it as 127.0.0.1:7233"));
        assert!(parse("https://example.org:1").is_err());
        assert!(parse("127.0.0.1:1,127.0.0.1:2").unwrap_err().to_string().contains("a list"));
    }
}
