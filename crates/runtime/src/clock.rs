//! The real clocks.
//!
//! Time since the start is counted by the clock that goes on while the machine is suspended: a lease
//! that was held before is over afterwards. The clock of [`Instant`] stands still meanwhile, and is
//! used for timers alone; one that is armed during a suspend fires late, and nothing depends on that.
//! A virtual machine whose host stops both clocks notices nothing: see docs/operations/sick-nodes.md.

use rufous_base::Now;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// All workers of a node count from the same start, so that their times compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Duration,
}

/// Timers are never set further ahead than this; they fire early and are set again.
const FARTHEST: Duration = Duration::from_secs(24 * 3600);

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: since_boot(),
        }
    }

    /// Both clocks. That of the boot never goes back, so `mono_us` does not either.
    pub(crate) fn now(&self) -> Now {
        let mono_us = self.mono_us();
        let unix_us = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64);
        Now { mono_us, unix_us }
    }

    pub(crate) fn mono_us(&self) -> u64 {
        since_boot().saturating_sub(self.start).as_micros() as u64
    }

    pub(crate) fn us_of(&self, at: Instant) -> u64 {
        let left = at.saturating_duration_since(Instant::now());
        self.mono_us() + left.as_micros() as u64
    }

    /// When to wake for something due at `due_us`, and what that is in
    /// microseconds: then, or in a day.
    pub(crate) fn instant(&self, due_us: u64) -> (Instant, u64) {
        let now_us = self.mono_us();
        let due_us = due_us.min(now_us.saturating_add(FARTHEST.as_micros() as u64));
        let left = Duration::from_micros(due_us.saturating_sub(now_us));
        (Instant::now() + left, due_us)
    }
}

/// Time since the machine was started, that of suspends included.
fn since_boot() -> Duration {
    let at = clock_gettime(ClockId::Boottime);
    Duration::new(at.tv_sec as u64, at.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const OFFSET_S: u64 = 1_000_000;
    const INSIDE: &str = "RUFOUS_TEST_BOOT_CLOCK";

    /// In a time namespace whose boot clock leads as if the machine had been suspended for so long:
    /// the clock of [`Instant`] does not.
    #[test]
    fn time_counts_while_the_machine_is_suspended() {
        if std::env::var_os(INSIDE).is_some() {
            let least = Duration::from_secs(OFFSET_S);
            return assert!(since_boot() >= least, "{:?}", since_boot());
        }
        let this = std::env::current_exe().expect("a test has a program");
        let name = "clock::tests::time_counts_while_the_machine_is_suspended";
        let offset = OFFSET_S.to_string();
        let namespace = ["--time", "--fork", "--boottime", &offset];
        let mut unshare = Command::new("unshare");
        let probe = unshare.args(namespace).arg("true").output();
        if !probe.is_ok_and(|probe| probe.status.success()) {
            return rufous_skip::skip(rufous_skip::Missing::Permission("time namespaces"));
        }
        let inside = Command::new("unshare")
            .args(namespace)
            .arg(this)
            .args(["--exact", name])
            .env(INSIDE, "1")
            .output()
            .expect("unshare runs");
        let said = String::from_utf8_lossy(&inside.stdout);
        assert!(
            inside.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }

    #[test]
    fn what_is_due_comes_after_so_long() {
        let clock = Clock::new();
        let before = Instant::now();
        let (at, due_us) = clock.instant(clock.mono_us() + 5_000_000);
        // Microseconds are rounded.
        assert!(at >= before + Duration::from_millis(4_999));
        assert!(at <= Instant::now() + Duration::from_secs(5));
        let shown_us = clock.us_of(at);
        assert!(
            shown_us.abs_diff(due_us) < 1_000_000,
            "{shown_us}, {due_us}"
        );
        let day = Duration::from_secs(24 * 3600);
        assert!(clock.instant(u64::MAX).0 <= Instant::now() + day);
        assert!(clock.instant(0).0 <= Instant::now());
    }
}
