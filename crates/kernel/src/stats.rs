//! Counters of a worker: calls and time per command, hits and misses.

/// Counters of one command on one worker.
#[derive(Clone, Debug, Default)]
pub struct CommandStats {
    pub calls: u64,
    /// Microseconds times 1024: commands that run together share the time of
    /// their batch evenly.
    pub time_1024us: u64,
    /// Refused before running: wrong arity, no permission.
    pub rejected: u64,
    /// Executed; the reply is an error.
    pub failed: u64,
    /// Calls per power of two of nanoseconds, allocated at the first call.
    pub latency: Option<Box<[u64; LATENCY_BUCKETS]>>,
}

/// Powers of two from 2^10 ns up; the last takes everything above.
pub const LATENCY_BUCKETS: usize = 24;

impl CommandStats {
    /// Adds `calls` that took `each_ns` each.
    pub fn record(&mut self, calls: u64, each_ns: u64) {
        self.calls += calls;
        self.time_1024us += calls * each_ns * 1024 / 1000;
        let bucket = (64 - (each_ns >> 10).leading_zeros() as usize).min(LATENCY_BUCKETS - 1);
        self.latency.get_or_insert_with(Default::default)[bucket] += calls;
    }

    /// Adds another worker's counters.
    pub fn merge(&mut self, other: &CommandStats) {
        self.calls += other.calls;
        self.time_1024us += other.time_1024us;
        self.rejected += other.rejected;
        self.failed += other.failed;
        if let Some(theirs) = &other.latency {
            let ours = self.latency.get_or_insert_with(Default::default);
            ours.iter_mut()
                .zip(theirs.iter())
                .for_each(|(a, b)| *a += b);
        }
    }

    pub fn usec(&self) -> u64 {
        self.time_1024us / 1024
    }
}
