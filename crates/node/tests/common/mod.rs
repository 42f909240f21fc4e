//! A real server as a process of its own, clients, and a witness that checks
//! that others notice nothing. No test measures time: waits have deadlines
//! only so that a hang becomes a failure.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part")]

pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod witness;

pub(crate) use client::{Client, Reply, request};
pub(crate) use server::Server;
pub(crate) use witness::Witness;

use std::time::{Duration, Instant};

/// Longer than anything here takes on a slow and busy machine.
pub(crate) const HANG: Duration = Duration::from_secs(120);

pub(crate) const MIB: u64 = 1024 * 1024;

/// Waits for what must happen in the end.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < HANG, "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A key that worker `worker` of two owns; `n` tells keys apart.
#[track_caller]
pub(crate) fn key_of(worker: usize, n: usize) -> String {
    use rufous_base::slot::{slot_of, worker_of_slot};
    let key = format!("{{{}}}:{n}", ["b", "a"][worker]);
    assert_eq!(worker_of_slot(slot_of(key.as_bytes()), 2).index(), worker);
    key
}
