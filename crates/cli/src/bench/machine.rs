//! What the operating system says about processes and the machine. Where it does not say it, there is
//! no figure.

use std::{fs, time::Duration};

/// Length of a tick in which processor time is counted.
const TICK: Duration = Duration::from_millis(10);

/// What processes have used so far, or hold now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Processor time, in user and system.
    pub(super) cpu: Duration,
    /// Bytes sent to disks.
    pub(super) written: u64,
    /// Resident memory.
    pub(super) resident: u64,
}

impl Usage {
    /// What these processes have used together; none if one of them cannot be seen.
    pub(super) fn of(processes: &[u32]) -> Option<Self> {
        processes.iter().try_fold(Self::default(), |sum, &process| {
            let one = Self::of_one(process)?;
            Some(Self {
                cpu: sum.cpu + one.cpu,
                written: sum.written + one.written,
                resident: sum.resident + one.resident,
            })
        })
    }

    fn of_one(process: u32) -> Option<Self> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
        let (stat, io, status) = (read("stat")?, read("io")?, read("status")?);
        // The name may hold spaces; what is counted from comes after it.
        let (_, counted) = stat.rsplit_once(')')?;
        let ticks = |field: usize| counted.split_whitespace().nth(field)?.parse::<u32>().ok();
        Some(Self {
            cpu: TICK * (ticks(11)? + ticks(12)?),
            written: number(&io, "write_bytes:")?,
            resident: number(&status, "VmRSS:")? * 1024,
        })
    }
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How many processes wanted to run, over the last minute.
pub(super) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// How many cores this process may use.
pub(super) fn cores() -> Option<usize> {
    std::thread::available_parallelism().ok().map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of(&[std::process::id()]).expect("this machine tells");
        assert!(usage.resident > 1 << 20, "{usage:?}");
        assert!(Usage::of(&[std::process::id(), u32::MAX]).is_none());
    }
}
