//! Threads, each bound to a processor, that run requests against a store for a while; and what that
//! took, in wall time and in CPU time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::requests::Key;
use super::rufous::Worker;
use rufous_bench::procfs;
use rufous_bench::servers::pin_this_thread;

/// Requests between two looks at whether it is time to stop, as many as a pipeline may bring.
pub(crate) const TURN: usize = 64;

/// One thread's way to a store.
pub(crate) trait Client: Send {
    /// Updates these keys in this order.
    fn update(&mut self, keys: &[Key]);

    /// Where this thread's CPU time went so far, if it keeps account of that.
    fn split(&self) -> Split {
        Split::default()
    }

    /// The worker behind it, where it is one of ours.
    fn worker(&mut self) -> Option<&mut Worker> {
        None
    }
}

/// CPU time by what it was for, and counts that belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Split {
    pub merge_ns: f64,
    pub multicast_ns: f64,
    /// Clocks, looks into rings.
    pub other_ns: f64,
    pub merged_keys: f64,
    pub updates: f64,
    pub sent_keys: f64,
    pub sent_messages: f64,
}

impl Split {
    pub(crate) fn since(&self, before: &Self) -> Self {
        self.with(before, |now, then| now - then)
    }

    pub(crate) fn plus(&self, more: &Self) -> Self {
        self.with(more, |a, b| a + b)
    }

    fn with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            merge_ns: f(self.merge_ns, other.merge_ns),
            multicast_ns: f(self.multicast_ns, other.multicast_ns),
            other_ns: f(self.other_ns, other.other_ns),
            merged_keys: f(self.merged_keys, other.merged_keys),
            updates: f(self.updates, other.updates),
            sent_keys: f(self.sent_keys, other.sent_keys),
            sent_messages: f(self.sent_messages, other.sent_messages),
        }
    }
}

/// Which keys a thread is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    /// Those that it owns.
    Own,
}

/// A store, filled, with a client for each thread.
pub(crate) struct Contestant {
    pub name: String,
    pub reach: Reach,
    seats: Vec<Seat>,
}

struct Seat {
    client: Box<dyn Client>,
    /// The next of its requests.
    at: usize,
}

/// What one thread did.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ran {
    pub operations: f64,
    pub wall_ns: f64,
    pub cpu_ns: f64,
    pub split: Split,
}

/// What a window gave.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Window {
    pub threads: Vec<Ran>,
    /// Processors' worth of time used by anything else.
    pub others_cores: f64,
}

impl Window {
    /// Million operations per second by either clock. `parts` says which part of all requests each
    /// thread must take: then the thread that is busiest decides.
    pub(crate) fn rate(&self, clock: impl Fn(&Ran) -> f64, parts: Option<&[f64]>) -> f64 {
        let rates = self
            .threads
            .iter()
            .map(|ran| ran.operations * 1e3 / clock(ran));
        match parts {
            None => rates.sum(),
            Some(parts) => rates
                .zip(parts)
                .map(|(rate, part)| rate / part)
                .fold(f64::INFINITY, f64::min),
        }
    }

    pub(crate) fn cpu_ns_per_operation(&self) -> f64 {
        let sum = |f: fn(&Ran) -> f64| self.threads.iter().map(f).sum::<f64>();
        sum(|ran| ran.cpu_ns) / sum(|ran| ran.operations)
    }
}

impl Contestant {
    pub(crate) fn new(name: &str, reach: Reach, clients: Vec<Box<dyn Client>>) -> Self {
        let seats = clients.into_iter().map(|client| Seat { client, at: 0 });
        Self {
            name: name.to_owned(),
            reach,
            seats: seats.collect(),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.seats.len()
    }

    /// The workers behind it; none where it is a peer.
    pub(crate) fn workers(&mut self) -> Vec<&mut Worker> {
        let clients = self.seats.iter_mut();
        clients.filter_map(|seat| seat.client.worker()).collect()
    }

    /// Runs for `time`, thread `n` on processor `n` with `requests[n]`.
    pub(crate) fn window(&mut self, requests: &[Vec<Key>], time: Duration) -> Result<Window> {
        ensure!(
            requests.len() == self.seats.len(),
            "requests for each thread"
        );
        let (stop, start) = (AtomicBool::new(false), Barrier::new(self.seats.len() + 1));
        let process = std::process::id();
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .seats
                .iter_mut()
                .zip(requests)
                .enumerate()
                .map(|(core, (seat, requests))| {
                    let (stop, start) = (&stop, &start);
                    scope.spawn(move || seat.run(core, requests, start, stop))
                })
                .collect();
            start.wait();
            let (busy, own) = (
                procfs::machine_busy_time()?,
                procfs::cpu_time_of_all(process)?,
            );
            let began = Instant::now();
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            let ran: Result<Vec<Ran>> = threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|e| std::panic::resume_unwind(e))
                })
                .collect();
            let elapsed = began.elapsed().as_secs_f64();
            let busy = procfs::machine_busy_time()?.saturating_sub(busy);
            let own = procfs::cpu_time_of_all(process)?.saturating_sub(own);
            Ok(Window {
                threads: ran?,
                others_cores: busy.saturating_sub(own).as_secs_f64() / elapsed,
            })
        })
    }
}

impl Seat {
    fn run(
        &mut self,
        core: usize,
        requests: &[Key],
        start: &Barrier,
        stop: &AtomicBool,
    ) -> Result<Ran> {
        let pinned = pin_this_thread(core);
        // Before anything can fail: the others wait for it.
        start.wait();
        pinned?;
        let split = self.client.split();
        let (wall, cpu) = (Instant::now(), thread_cpu_ns());
        let mut turns = 0u64;
        while !stop.load(Ordering::Relaxed) {
            let end = self.at + TURN;
            self.client.update(&requests[self.at..end]);
            self.at = if end + TURN <= requests.len() { end } else { 0 };
            turns += 1;
        }
        Ok(Ran {
            operations: (turns * TURN as u64) as f64,
            wall_ns: wall.elapsed().as_nanos() as f64,
            cpu_ns: thread_cpu_ns() - cpu,
            split: self.client.split().since(&split),
        })
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(Vec<Key>);

    impl Client for Counting {
        fn update(&mut self, keys: &[Key]) {
            self.0.extend_from_slice(keys);
            self.0.truncate(1000);
        }
    }

    fn ran(operations: f64, wall_ns: f64) -> Ran {
        Ran {
            operations,
            wall_ns,
            cpu_ns: wall_ns / 2.0,
            split: Split::default(),
        }
    }

    #[test]
    fn the_busiest_thread_decides_where_requests_cannot_move() {
        let window = Window {
            threads: vec![ran(1000.0, 1e6), ran(3000.0, 1e6)],
            others_cores: 0.0,
        };
        assert_eq!(window.rate(|ran| ran.wall_ns, None), 4.0);
        assert_eq!(window.rate(|ran| ran.cpu_ns, None), 8.0);
        assert_eq!(window.rate(|ran| ran.wall_ns, Some(&[0.5, 0.5])), 2.0);
        assert_eq!(window.rate(|ran| ran.wall_ns, Some(&[0.25, 0.75])), 4.0);
        assert_eq!(window.cpu_ns_per_operation(), 250.0);
    }

    #[test]
    fn windows_run_the_requests_of_each_thread() {
        let client = Box::new(Counting(Vec::new()));
        let mut contestant = Contestant::new("counting", Reach::All, vec![client]);
        let requests = vec![vec![*b"00000001"; 200]];
        let window = contestant
            .window(&requests, Duration::from_millis(5))
            .unwrap();
        assert!(window.threads[0].operations > 0.0);
        assert!(contestant.seats[0].at + TURN <= 200);
        assert!(contestant.window(&[], Duration::ZERO).is_err());
    }
}
