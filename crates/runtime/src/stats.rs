//! Counters that one thread writes and any thread reads, without locks and
//! without atomic read-modify-write.

use std::sync::atomic::{AtomicU64, Ordering};

/// Written by its owner only, so that adding is a plain load and store.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_add(n);
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn sub(&self, n: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_sub(n);
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn raise(&self, n: u64) {
        if n > self.0.load(Ordering::Relaxed) {
            self.0.store(n, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker counts. On cache lines of its own: no two workers share one.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerStats {
    pub(crate) connections: Counter,
    pub(crate) connections_total: Counter,
    pub(crate) dropped_for_output: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) reads: Counter,
    pub(crate) sends: Counter,
    pub(crate) pieces_made: Counter,
    pub(crate) turns: Counter,
    pub(crate) steps: Counter,
    pub(crate) busy_us: Counter,
    pub(crate) idle_us: Counter,
    pub(crate) ring_full: Counter,
    pub(crate) overflow_peak: Counter,
    pub(crate) wakes: Counter,
    pub(crate) messages_sent: Counter,
    pub(crate) messages_received: Counter,
    pub(crate) disk_requests: Counter,
    pub(crate) held_turns: Counter,
}

impl WorkerStats {
    pub(crate) fn snapshot(&self) -> WorkerSnapshot {
        WorkerSnapshot {
            connections: self.connections.get(),
            connections_total: self.connections_total.get(),
            dropped_for_output: self.dropped_for_output.get(),
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            reads: self.reads.get(),
            sends: self.sends.get(),
            pieces_made: self.pieces_made.get(),
            turns: self.turns.get(),
            steps: self.steps.get(),
            busy_us: self.busy_us.get(),
            idle_us: self.idle_us.get(),
            ring_full: self.ring_full.get(),
            overflow_peak: self.overflow_peak.get(),
            wakes: self.wakes.get(),
            messages_sent: self.messages_sent.get(),
            messages_received: self.messages_received.get(),
            disk_requests: self.disk_requests.get(),
            held_turns: self.held_turns.get(),
        }
    }
}

/// One worker's counters at some moment; all but `connections`, `held_turns`
/// and `overflow_peak` only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerSnapshot {
    /// Open now, in-process ones included.
    pub connections: u64,
    pub connections_total: u64,
    /// Connections dropped because too many reply bytes waited for them.
    pub dropped_for_output: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Reads that brought bytes.
    pub reads: u64,
    /// Sends that took bytes.
    pub sends: u64,
    /// Pieces of replies that were made while these were sent.
    pub pieces_made: u64,
    pub turns: u64,
    /// Times the actor was stepped.
    pub steps: u64,
    /// Time in turns, against time waiting for the next one.
    pub busy_us: u64,
    pub idle_us: u64,
    /// Times a ring to another worker was found full.
    pub ring_full: u64,
    /// The most messages that ever waited for room towards one worker.
    pub overflow_peak: u64,
    /// Other workers woken from sleep.
    pub wakes: u64,
    pub messages_sent: u64,
    pub messages_received: u64,
    pub disk_requests: u64,
    /// Turns whose replies wait for the disk now.
    pub held_turns: u64,
}

/// The counters of a whole node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub workers: Vec<WorkerSnapshot>,
    /// Clients turned away because the node had the most it accepts.
    pub rejected: u64,
    /// Times that accepting failed, for want of file descriptors or memory.
    pub accept_errors: u64,
    /// TLS handshakes that succeeded, and that did not.
    pub handshakes: u64,
    pub handshake_errors: u64,
}

impl Snapshot {
    /// The sum of one counter over all workers.
    pub fn sum(&self, counter: impl Fn(&WorkerSnapshot) -> u64) -> u64 {
        self.workers.iter().map(counter).sum()
    }
}
