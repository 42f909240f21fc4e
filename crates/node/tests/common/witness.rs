//! Clients that do nothing wrong, at both workers, while others misbehave.

use super::client::ok;
use super::{Client, Reply, Server, key_of, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Checks every answer it gets, until it is told to stop.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    pub(crate) fn start(server: &Server) -> Self {
        let mut clients = server.one_at_each_worker();
        let (stop, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            while !stopped.load(SeqCst) {
                let round = count.load(SeqCst);
                clients.iter_mut().for_each(|client| check(client, round));
                count.fetch_add(1, SeqCst);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let witness = Self {
            stop,
            rounds,
            thread: Some(thread),
        };
        witness.goes_on();
        witness
    }

    /// Waits until whole rounds that began after this call were answered right.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        let before = self.rounds.load(SeqCst);
        wait_until("the witness is answered", || {
            let thread = self.thread.as_ref().expect("runs");
            assert!(!thread.is_finished(), "the witness saw something wrong");
            self.rounds.load(SeqCst) >= before + 3
        });
    }

    /// The clients that it has.
    pub(crate) const CLIENTS: u64 = 2;

    /// Ends it; everything it saw must have been right.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        self.goes_on();
        self.stop.store(true, SeqCst);
        let ended = self.thread.take().expect("runs").join();
        assert!(ended.is_ok(), "the witness saw something wrong");
    }
}

/// Keys of both workers, one by one and together.
fn check(client: &mut Client, round: u64) {
    let value = round.to_string();
    let keys = [key_of(0, 0), key_of(1, 0)].map(|key| format!("witness:{key}"));
    for key in &keys {
        assert_eq!(client.run(&["SET", key, &value]), ok());
        assert_eq!(
            client.run(&["GET", key]),
            Reply::Bulk(value.clone().into_bytes())
        );
    }
    let (one, other) = (format!("{value}a"), format!("{value}b"));
    assert_eq!(
        client.run(&["MSET", &keys[0], &one, &keys[1], &other]),
        ok()
    );
    let both = [one, other].map(|v| Reply::Bulk(v.into_bytes()));
    assert_eq!(
        client.run(&["MGET", &keys[0], &keys[1]]),
        Reply::Array(both.to_vec())
    );
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
    }
}
