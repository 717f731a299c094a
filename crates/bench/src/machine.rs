//! Process and machine statistics of the operating system. Where it does not report one, there is
//! no figure.

use std::{fs, time::Duration};

/// Length of a clock tick, in which processor time is counted.
const TICK: Duration = Duration::from_millis(10);

/// Resources that processes have used so far, or hold now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Processor time, user and system.
    pub(crate) cpu: Duration,
    /// Bytes written to disk.
    pub(crate) written: u64,
    /// Resident memory in bytes.
    pub(crate) resident: u64,
}

impl Usage {
    /// The total of these processes; `None` if one of them cannot be inspected.
    pub(crate) fn of(processes: &[u32]) -> Option<Self> {
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
        let (stat, io, status) = (Stat::of(process)?, read("io")?, read("status")?);
        Some(Self {
            cpu: stat.cpu()?,
            written: number(&io, "write_bytes:")?,
            resident: number(&status, "VmRSS:")? * 1024,
        })
    }
}

/// The one-line statistics of a process.
struct Stat(String);

impl Stat {
    fn of(process: u32) -> Option<Self> {
        fs::read_to_string(format!("/proc/{process}/stat")).ok().map(Self)
    }

    /// The name may hold spaces; fields are counted from the one after it.
    fn field(&self, field: usize) -> Option<u32> {
        let (_, fields) = self.0.rsplit_once(')')?;
        fields.split_whitespace().nth(field)?.parse().ok()
    }

    fn is_called(&self, name: &str) -> bool {
        self.0.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(&format!("({name})")))
    }

    fn parent(&self) -> Option<u32> {
        self.field(1)
    }

    /// Processor time, user and system.
    fn cpu(&self) -> Option<Duration> {
        Some(TICK * (self.field(11)? + self.field(12)?))
    }

    /// Processor time of children that have ended.
    fn ended_cpu(&self) -> Option<Duration> {
        Some(TICK * (self.field(13)? + self.field(14)?))
    }
}

/// The parent of a process, if both are programs of this name.
pub(crate) fn parent_of(process: u32, name: &str) -> Option<u32> {
    let stat = Stat::of(process).filter(|stat| stat.is_called(name))?;
    let parent = stat.parent()?;
    Stat::of(parent)?.is_called(name).then_some(parent)
}

/// Processor time of a process and all its children, including those that have ended.
pub(crate) fn family_cpu(parent: u32) -> Option<Duration> {
    let first = Stat::of(parent)?;
    let children = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = Stat::of(process).filter(|stat| stat.parent() == Some(parent))?;
        stat.cpu()
    });
    Some(first.cpu()? + first.ended_cpu()? + children.sum::<Duration>())
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Load average of the last minute.
pub(crate) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Number of cores that this process may use.
pub(crate) fn cores() -> Option<usize> {
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
