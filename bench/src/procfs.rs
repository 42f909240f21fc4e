//! What the kernel tells about processes and the machine: CPU time and resident memory.
//!
//! CPU time of a process is user plus system time of all its threads. `/proc/<pid>/stat` gives that
//! in ticks of 10 ms, too coarse for short windows; `/proc/<pid>/task/*/schedstat` gives the same
//! run time in nanoseconds, so that is used where the kernel has it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

/// The kernel reports times to user space in these, on every architecture of Linux.
const TICK: Duration = Duration::from_millis(10);
/// The name that Rufous gives the thread of its first worker.
const WORKER: &str = "rufous-0";

/// How long a thread has run, and how long it was ready to run without a processor to run on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scheduled {
    pub ran: Duration,
    pub waited: Duration,
}

/// Those times of the first worker of a process.
#[derive(Debug)]
pub struct WorkerTime {
    schedstat: File,
}

impl WorkerTime {
    /// Of the thread that names itself a worker; of the main thread where none does.
    pub fn of(pid: u32) -> Result<Self> {
        let tasks = format!("/proc/{pid}/task");
        let mut worker = Path::new(&tasks).join(pid.to_string());
        for task in fs::read_dir(&tasks).with_context(|| format!("reading {tasks}"))? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
            if name.trim() == WORKER {
                worker = task;
            }
        }
        let path = worker.join("schedstat");
        let schedstat = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
        Ok(Self { schedstat })
    }

    pub fn read(&self) -> Result<Scheduled> {
        let mut text = [0; 96];
        let length = self.schedstat.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]);
        parse_scheduled(&text).ok_or_else(|| anyhow!("schedstat has an unknown form: {text}"))
    }
}

/// CPU time used by all threads of process `pid` so far.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    match scheduled_time(pid) {
        Some(time) => Ok(time),
        None => cpu_time_of_all(pid),
    }
}

/// Threads that ended are not in it; the servers measured keep theirs.
fn scheduled_time(pid: u32) -> Option<Duration> {
    let mut total = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += parse_schedstat(&text)?;
    }
    (!total.is_zero()).then_some(total)
}

/// CPU time of each thread of process `pid` that has not ended, by the thread's number.
pub fn thread_times(pid: u32) -> Result<BTreeMap<u32, Duration>> {
    let tasks = format!("/proc/{pid}/task");
    let mut times = BTreeMap::new();
    for task in fs::read_dir(&tasks).with_context(|| format!("reading {tasks}"))? {
        let path = task?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str()?.parse().ok());
        // One that ends meanwhile counts no more.
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        if let (Some(number), Some(time)) = (number, parse_schedstat(&text)) {
            times.insert(number, time);
        }
    }
    Ok(times)
}

/// CPU time used by process `pid` so far, by threads that have ended too; in ticks of 10 ms.
pub fn cpu_time_of_all(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    parse_stat(&text).ok_or_else(|| anyhow!("{path} has an unknown form"))
}

/// Resident bytes of process `pid` by the kernel's running count. Asking costs the process nothing,
/// where the exact figure makes the kernel walk its whole memory.
pub fn resident_bytes_counted(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS:")
}

/// Resident bytes of process `pid` now.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let rollup = format!("/proc/{pid}/smaps_rollup");
    let exact = fs::read_to_string(rollup)
        .ok()
        .and_then(|text| parse_kib(&text, "Rss:"));
    exact.map_or_else(|| status_bytes(pid, "VmRSS:"), Ok)
}

/// The most that process `pid` has had resident.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    parse_kib(&text, field).ok_or_else(|| anyhow!("{path} has no {field}"))
}

/// Memory of the machine that programs may still take.
pub fn available_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    parse_kib(&text, "MemAvailable:").context("/proc/meminfo does not say what is available")
}

/// CPU time that all processors together have spent on anything, other guests' share included.
pub fn machine_busy_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    parse_machine(&text).ok_or_else(|| anyhow!("/proc/stat has an unknown form"))
}

/// What the figures were measured on.
#[derive(Clone, Debug)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
}

impl Machine {
    pub fn read() -> Self {
        let field = |path: &str, name: &str| {
            let text = fs::read_to_string(Path::new(path)).unwrap_or_default();
            text.lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned)
        };
        let cpu = field("/proc/cpuinfo", "model name")
            .and_then(|line| line.split(':').nth(1).map(|v| v.trim().to_owned()))
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let memory = field("/proc/meminfo", "MemTotal:")
            .and_then(|line| parse_kib(&line, "MemTotal:"))
            .unwrap_or(0);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            memory_gib: memory as f64 / (1u64 << 30) as f64,
            kernel: kernel.trim().to_owned(),
        }
    }

    pub fn describe(&self) -> String {
        let Self {
            cpu,
            cores,
            memory_gib,
            kernel,
        } = self;
        format!("{cores} cores of {cpu}, {memory_gib:.0} GiB, Linux {kernel}")
    }
}

/// Fields 14 and 15 count after the command name, which may itself hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<Duration> {
    let after_name = &text[text.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

fn parse_schedstat(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

fn parse_scheduled(text: &str) -> Option<Scheduled> {
    let mut fields = text.split_ascii_whitespace();
    let mut time = || fields.next()?.parse().ok().map(Duration::from_nanos);
    Some(Scheduled {
        ran: time()?,
        waited: time()?,
    })
}

fn parse_kib(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// All but idle and waiting for disks; guest time is already within user time.
fn parse_machine(text: &str) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Option<Vec<u64>> = line
        .split_ascii_whitespace()
        .take(8)
        .map(|field| field.parse().ok())
        .collect();
    match ticks?.as_slice() {
        [user, nice, system, _idle, _iowait, irq, softirq, steal] => {
            let busy = user + nice + system + irq + softirq + steal;
            Some(Duration::from_millis(busy * TICK.as_millis() as u64))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_survives_odd_names() {
        let text = "4711 (a (b) c d) S 1 2 3 0 -1 4194560 9 0 0 0 250 75 8 9 20 0 4 0 131446 1 2";
        assert_eq!(parse_stat(text), Some(Duration::from_millis(3_250)));
        assert_eq!(parse_stat("4711 (x) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn schedstat_is_nanoseconds() {
        assert_eq!(
            parse_schedstat("276222 58077 3\n"),
            Some(Duration::from_nanos(276_222))
        );
        assert_eq!(parse_schedstat(""), None);
        let both = Scheduled {
            ran: Duration::from_nanos(276_222),
            waited: Duration::from_nanos(58_077),
        };
        assert_eq!(parse_scheduled("276222 58077 3\n"), Some(both));
        assert_eq!(parse_scheduled("276222"), None);
    }

    #[test]
    fn memory_fields() {
        let rollup = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:    1234 kB\nPss:  999 kB\n";
        assert_eq!(parse_kib(rollup, "Rss:"), Some(1_234 * 1_024));
        let status = "Name:\tx\nVmHWM:\t    20 kB\nVmRSS:\t    10 kB\n";
        assert_eq!(parse_kib(status, "VmRSS:"), Some(10_240));
        assert_eq!(parse_kib(status, "VmHWM:"), Some(20_480));
        assert_eq!(parse_kib(status, "VmSwap:"), None);
    }

    #[test]
    fn the_machine_is_busy_but_for_idle_and_iowait() {
        let text = "cpu  15278 10347 4808 231111 595 1 48 17 5 5\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let busy = 15_278 + 10_347 + 4_808 + 1 + 48 + 17;
        assert_eq!(parse_machine(text), Some(Duration::from_millis(busy * 10)));
        assert_eq!(parse_machine("cpu 1 2 3\n"), None);
    }

    #[test]
    fn this_process_has_run() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let mut x = 1u64;
        while cpu_time(pid).unwrap() == before {
            x = std::hint::black_box(x.wrapping_mul(31));
        }
        // Threads of other tests may have ended meanwhile, whose times count for the process alone.
        let threads = thread_times(pid).unwrap();
        assert!(threads.values().any(|time| !time.is_zero()));
        assert!(resident_bytes(pid).unwrap() > 0);
        assert!(peak_resident_bytes(pid).unwrap() > 0);
        assert!(!machine_busy_time().unwrap().is_zero());
    }
}
