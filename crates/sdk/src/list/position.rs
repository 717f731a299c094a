//! Positions in lists. As text they fit into the address of a web page.

use std::{fmt, str::FromStr};

use abide_core::{
    ids::{RunId, ShardId},
    list,
};

use crate::Timestamp;

/// A position in a list of runs. It converts to text and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPosition {
    pub(super) at: Timestamp,
    pub(super) run: RunId,
}

/// A position in a list of waits. It converts to text and back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitPosition(pub(super) list::WaitPosition);

/// The text is not a position that was displayed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the position of a row in a list")]
pub struct ParsePositionError;

impl fmt::Display for RunPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.at, self.run)
    }
}

impl FromStr for RunPosition {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, ParsePositionError> {
        let (at, run) = text.split_once('~').ok_or(ParsePositionError)?;
        Ok(Self { at: time(at)?, run: run_id(run)? })
    }
}

impl fmt::Display for WaitPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list::WaitPosition { until, run, shard, wait } = &self.0;
        write!(f, "{until}~{run}~{}~", shard.number())?;
        wait.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for WaitPosition {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, ParsePositionError> {
        let parts: Vec<_> = text.split('~').collect();
        let [until, run, shard, wait] = parts[..] else { return Err(ParsePositionError) };
        let shard = shard.parse().ok().and_then(ShardId::new).ok_or(ParsePositionError)?;
        let (until, run, wait) = (time(until)?, run_id(run)?, bytes(wait)?.into());
        Ok(Self(list::WaitPosition { until, run, shard, wait }))
    }
}

fn time(text: &str) -> Result<Timestamp, ParsePositionError> {
    text.parse().map_err(|_| ParsePositionError)
}

fn run_id(text: &str) -> Result<RunId, ParsePositionError> {
    text.parse().map(RunId::new).map_err(|_| ParsePositionError)
}

fn bytes(hex: &str) -> Result<Vec<u8>, ParsePositionError> {
    let digit = |digit: u8| u8::try_from(char::from(digit).to_digit(16)?).ok();
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(|pair| byte(pair).ok_or(ParsePositionError)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        RunId::from_parts(Timestamp::from_unix_millis(1_700_000_000_123), 42)
    }

    #[test]
    fn positions_survive_as_text() {
        let started_at = Timestamp::new(1_700_000_000, 123_456_789).expect("a time");
        let of_run = RunPosition { at: started_at, run: run() };
        assert_eq!(of_run.to_string().parse(), Ok(of_run));
        for until in [started_at, Timestamp::NEVER] {
            let wait = "tpaid~\u{e9}".as_bytes().to_vec().into();
            let shard = ShardId::new(7).expect("a shard");
            let of_wait = WaitPosition(list::WaitPosition { until, run: run(), shard, wait });
            assert_eq!(of_wait.to_string().parse(), Ok(of_wait));
        }
    }

    #[test]
    fn other_text_is_no_position() {
        let right = format!("{}~{}", Timestamp::EPOCH, run());
        for wrong in ["", "~", "now~1", &right[1..], &right[..right.len() - 1]] {
            assert_eq!(wrong.parse::<RunPosition>(), Err(ParsePositionError), "{wrong:?}");
        }
        for tail in ["~7", "~200~74", "~7~7", "~7~zz", "~7~+1", "~7~\u{e9}", "~7~74~"] {
            let wrong = format!("{right}{tail}");
            assert_eq!(wrong.parse::<WaitPosition>(), Err(ParsePositionError), "{wrong:?}");
        }
    }
}
