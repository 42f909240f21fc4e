//! What the operating system says of this process: memory, processor time,
//! open files. Read on the control thread, once a second.

use rufous::runtime::Handle;
use rufous_server::front::shared::Shared;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Clock ticks per second in `/proc/self/stat`: fixed for programs, whatever
/// the kernel's own rate is.
const TICKS_PER_SECOND: u64 = 100;

const PERIOD: Duration = Duration::from_secs(1);

const PURGE_STACK: usize = 64 << 10;

/// Keeps the figures of [`rufous_server::front::process::Process`] up to date as long
/// as the node runs.
pub fn watch(handle: &Handle, shared: std::sync::Arc<Shared>) {
    shared
        .process
        .pid
        .store(u64::from(std::process::id()), Ordering::Relaxed);
    if let Some(bytes) = read("/proc/meminfo").and_then(|text| kilobytes(&text, "MemTotal:")) {
        shared
            .process
            .system_memory_bytes
            .store(bytes, Ordering::Relaxed);
    }
    update(&shared, handle);
    let watched = handle.clone();
    handle.spawn(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            update(&shared, &watched);
            purge();
        }
    });
}

/// Has the allocator give back to the system what was freed a second ago. By itself it looks for such
/// memory only when a page is freed, and when a thread ends: this thread ends at once.
fn purge() {
    let thread = std::thread::Builder::new().name("rufous-purge".into());
    let spawned = thread.stack_size(PURGE_STACK).spawn(|| {
        // A thread that allocates nothing means nothing to the allocator.
        std::hint::black_box(Box::new(0_u64));
    });
    if let Err(error) = spawned {
        tracing::debug!(%error, "freed memory is given back later");
    }
}

/// Reads everything once. What cannot be read stays as it was.
pub fn update(shared: &Shared, handle: &Handle) {
    let process = &shared.process;
    let store = |to: &AtomicU64, value: Option<u64>| {
        if let Some(value) = value {
            to.store(value, Ordering::Relaxed);
        }
    };
    if let Some(status) = read("/proc/self/status") {
        store(&process.rss_bytes, kilobytes(&status, "VmRSS:"));
        store(&process.peak_rss_bytes, kilobytes(&status, "VmHWM:"));
    }
    if let Some((user_us, system_us)) = read("/proc/self/stat").and_then(|text| cpu_us(&text)) {
        store(&process.cpu_user_us, Some(user_us));
        store(&process.cpu_system_us, Some(system_us));
    }
    let stats = handle.stats();
    store(
        &process.net_input_bytes,
        Some(stats.sum(|worker| worker.bytes_in)),
    );
    store(
        &process.net_output_bytes,
        Some(stats.sum(|worker| worker.bytes_out)),
    );
    store(&process.rejected_connections, Some(stats.rejected));
    store(&process.tls_handshakes, Some(stats.handshakes));
    store(&process.tls_handshake_errors, Some(stats.handshake_errors));
}

/// The files that this process may have open at most, once it has raised its
/// soft limit.
pub fn most_open_files() -> Option<u64> {
    hard_limit(&read("/proc/self/limits")?)
}

/// The files that are open now.
pub fn open_files() -> Option<u64> {
    // Reading the directory opens one more.
    std::fs::read_dir("/proc/self/fd")
        .ok()
        .map(|files| (files.count() as u64).saturating_sub(1))
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The figure behind `name`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace()
        .next()?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// Microseconds in the program and in the kernel on its behalf.
fn cpu_us(stat: &str) -> Option<(u64, u64)> {
    // The name of the process may contain anything, blanks and brackets too.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || {
        fields
            .next()?
            .parse::<u64>()
            .ok()?
            .checked_mul(1_000_000 / TICKS_PER_SECOND)
    };
    Some((next()?, next()?))
}

fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().nth(1)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_what_the_kernel_writes() {
        let status = "Name:\trufous\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(10_485_760));
        assert_eq!(kilobytes(status, "VmHWM:"), Some(20_971_520));
        assert_eq!(kilobytes(status, "VmSwap:"), None);
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 9 0 0 0 250 30 0 0 20 0 5 0 100";
        assert_eq!(cpu_us(stat), Some((2_500_000, 300_000)));
        assert_eq!(cpu_us("7 (x) S 1"), None);
        let limits = |hard: &str| {
            format!(
                "Limit  Soft  Hard  Units\nMax open files            1024                 {hard}              files\n"
            )
        };
        assert_eq!(hard_limit(&limits("4096")), Some(4096));
        assert_eq!(hard_limit(&limits("unlimited")), Some(u64::MAX));
        assert_eq!(hard_limit(""), None);
    }

    #[test]
    fn this_process_has_figures() {
        assert!(
            read("/proc/self/stat")
                .and_then(|text| cpu_us(&text))
                .is_some()
        );
        assert!(
            read("/proc/self/status")
                .and_then(|text| kilobytes(&text, "VmRSS:"))
                .is_some_and(|rss| rss > 0)
        );
        assert!(most_open_files().is_some_and(|most| most > 0));
        assert!(open_files().is_some_and(|open| open > 0));
    }
}
