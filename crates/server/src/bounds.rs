//! Checks the configured bounds before anything starts. With a bound of zero a server would admit
//! no client, and a very large one would be no bound.

use std::ops::RangeInclusive;

use crate::{Bounds, ServerError, connections::rooms_of_one};

/// Bounds that count things: connections, streams, calls.
const COUNT: RangeInclusive<u64> = 1..=1_000_000;

/// Bounds of memory. One connection must be able to send a small message.
const BYTES: RangeInclusive<u64> = 64 << 10..=1 << 40;

/// A third of the bytes in flight is for large messages, and one connection gets half of that.
const ALL_BYTES: RangeInclusive<u64> = 6 * BYTES_LEAST..=1 << 40;
const BYTES_LEAST: u64 = *BYTES.start();

/// A smaller message cannot hold the ids of a request. A larger one does not fit its header.
const MESSAGE: RangeInclusive<u64> = 4 << 10..=1 << 30;

/// Milliseconds of a timeout. A shorter one ends connections that are merely slow.
const TIMEOUT: RangeInclusive<u64> = 100..=3_600_000;

/// Zero stops the server immediately.
const SHUTDOWN: RangeInclusive<u64> = 0..=3_600_000;

impl Bounds {
    /// Refuses bounds with which a server cannot serve, or that limit nothing.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let Self {
            message_bytes,
            connections,
            connections_per_address,
            bytes_in_flight,
            bytes_per_connection,
            receive_windows,
            stall_ms,
            streams_per_connection,
            streams,
            streams_per_address,
            items_per_frame,
            calls_per_stream,
            credits_per_session,
            queues_per_session,
            hello_timeout_ms,
            keepalive_ms,
            shutdown_ms,
        } = self;
        let usual = Self::default();
        within("connections", *connections, COUNT, usual.connections)?;
        let per_address = (*connections_per_address, usual.connections_per_address);
        within("connections_per_address", per_address.0, COUNT, per_address.1)?;
        within("bytes_in_flight", *bytes_in_flight, ALL_BYTES, usual.bytes_in_flight)?;
        within("bytes_per_connection", *bytes_per_connection, BYTES, usual.bytes_per_connection)?;
        within("receive_windows", *receive_windows, BYTES, usual.receive_windows)?;
        within("stall_ms", *stall_ms, TIMEOUT, usual.stall_ms)?;
        let per_connection = (*streams_per_connection, usual.streams_per_connection);
        within("streams_per_connection", per_connection.0, COUNT, per_connection.1)?;
        within("streams", *streams, COUNT, usual.streams)?;
        let per_address = (*streams_per_address, usual.streams_per_address);
        within("streams_per_address", per_address.0, COUNT, per_address.1)?;
        within("items_per_frame", *items_per_frame, COUNT, usual.items_per_frame)?;
        within("calls_per_stream", *calls_per_stream, COUNT, usual.calls_per_stream)?;
        within("credits_per_session", *credits_per_session, COUNT, usual.credits_per_session)?;
        within("queues_per_session", *queues_per_session, COUNT, usual.queues_per_session)?;
        within("hello_timeout_ms", *hello_timeout_ms, TIMEOUT, usual.hello_timeout_ms)?;
        within("keepalive_ms", *keepalive_ms, TIMEOUT, usual.keepalive_ms)?;
        within("shutdown_ms", *shutdown_ms, SHUTDOWN, usual.shutdown_ms)?;
        within("message_bytes", *message_bytes, MESSAGE, usual.message_bytes)?;
        let room = rooms_of_one(self);
        if *message_bytes > room {
            return Err(ServerError::MessageBytes { bytes: *message_bytes, room });
        }
        Ok(())
    }
}

fn within(
    field: &'static str,
    value: impl TryInto<u64>,
    allowed: RangeInclusive<u64>,
    usual: impl TryInto<u64>,
) -> Result<(), ServerError> {
    let (value, usual) = (wide(value), wide(usual));
    if allowed.contains(&value) {
        return Ok(());
    }
    let (least, most) = allowed.into_inner();
    Err(ServerError::Bound { field, value, least, most, usual })
}

fn wide(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn check(bounds: &str) -> Result<(), String> {
        let config = Config::from_toml(&format!("[bounds]\n{bounds}")).expect("a good file");
        config.bounds.check().map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_without_a_limit_or_without_room_are_refused_by_name() {
        let fields = toml::Table::try_from(Bounds::default()).expect("it can be written");
        for field in fields.keys() {
            let most = check(&format!("{field} = 4000000000")).err();
            let small = check(&format!("{field} = 0")).err();
            let bytes = ["bytes_in_flight", "bytes_per_connection", "receive_windows"];
            if !bytes.contains(&field.as_str()) {
                let refused = most.expect("it is too large");
                let expected = format!("invalid bounds.{field} of 4000000000: the minimum is ");
                assert!(refused.starts_with(&expected), "{refused}");
            }
            if field != "shutdown_ms" {
                let refused = small.expect("it is too small");
                assert!(
                    refused.starts_with(&format!("invalid bounds.{field} of 0: ")),
                    "{refused}"
                );
            }
        }
        let refused = check("streams = 9000000000000000000").expect_err("it is too large");
        assert_eq!(
            refused,
            "invalid bounds.streams of 9000000000000000000: the minimum is 1, the maximum 1000000, the \
             default 10000"
        );
    }

    #[test]
    fn a_message_fits_the_room_of_its_connection() {
        let check = |message, flight, connection| {
            check(&format!(
                "message_bytes = {message}\nbytes_in_flight = {flight}\n\
                 bytes_per_connection = {connection}"
            ))
        };
        assert_eq!(check(1 << 20, 6 << 20, 1 << 20), Ok(()));
        for (flight, connection) in [(6 << 20, 1 << 19), (5 << 20, 1 << 20)] {
            let refused = check(1 << 20, flight, connection).expect_err("there is no room");
            for part in ["message_bytes of 1048576", "bytes_per_connection", "bytes_in_flight"] {
                assert!(refused.contains(part), "{refused}");
            }
        }
    }

    #[test]
    fn the_default_bounds_are_good() {
        assert_eq!(check(""), Ok(()));
    }
}
