//! The two clients: one that knows the cluster, and one that knows nothing of it.
//!
//! Each has several writers with keys of their own ([`super::ledger`]). They pause between
//! requests, or ask at set times: what is looked at is what they are answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rufous_client::{Addr, Builder, Cmd, Stats, cmd};

use super::ledger::{Answer, Ledger, Outcome};
use super::outcome::{self, BROKEN, UNREACHABLE};
use super::record::Record;
use crate::client::{Client, encode};

/// Who does not hear for so long is not answered any more.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Before something is asked again.
const AGAIN: Duration = Duration::from_millis(5);

/// What clients are told.
#[derive(Clone)]
pub struct Load {
    pub began: Instant,
    pub ends: Arc<AtomicBool>,
    pub pace: Pace,
}

/// When each writer asks next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So long after an answer.
    After(Duration),
    /// So long after the last request was due: who was kept waiting catches up.
    Every(Duration),
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.ends.load(Ordering::Relaxed)
    }
}

impl Pace {
    /// How long to wait; `due` is when the last request was due.
    fn pause(self, due: &mut Instant, now: Instant) -> Duration {
        match self {
            Pace::After(pause) => pause,
            Pace::Every(time) => {
                *due += time;
                due.saturating_duration_since(now)
            }
        }
    }
}

/// What a client's writers have at the end.
#[derive(Default)]
pub struct Seen {
    pub ledgers: Vec<Ledger>,
    pub records: Vec<Record>,
}

type Running<T> = JoinHandle<Result<T>>;

/// Waits for a client's end.
pub fn join<T>(running: Running<T>) -> Result<T> {
    let ended = running.join();
    ended.map_err(|_| anyhow!("a client panicked"))?
}

/// A writer for each ledger, all through one client that knows the cluster.
pub fn knowing(seeds: &[SocketAddr], ledgers: Vec<Ledger>, load: Load) -> Running<(Seen, Stats)> {
    let seeds: Vec<String> = seeds.iter().map(SocketAddr::to_string).collect();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build()?;
        runtime.block_on(async {
            let url = format!("rufous://{}", seeds.join(","));
            // Who waits for a lease, or for a chain that changes, is answered in the end.
            let builder = Builder::new(&url)?.timeout(PATIENCE);
            let client = builder.attempt_timeout(PATIENCE).connect().await?;
            let writers = ledgers.into_iter().map(|ledger| {
                let (client, load) = (client.clone(), load.clone());
                tokio::spawn(async move { write_knowing(&client, ledger, &load).await })
            });
            let mut seen = Seen::default();
            for writer in writers.collect::<Vec<_>>() {
                let (ledger, record) = writer.await.context("a writer panicked")?;
                seen.ledgers.push(ledger);
                seen.records.push(record);
            }
            Ok((seen, client.stats()))
        })
    })
}

async fn write_knowing(
    client: &rufous_client::Client,
    mut ledger: Ledger,
    load: &Load,
) -> (Ledger, Record) {
    let mut record = Record::default();
    let mut due = Instant::now();
    while load.goes_on() {
        let (request, asked) = (ledger.next_request(), Instant::now());
        let words = ledger.words(request);
        let (outcome, kind) = outcome::of_result(client.run(command(&words)).await);
        match kind {
            Some(kind) => record.failed(load.began, kind),
            None => record.answered(load.began, asked),
        }
        ledger.note(request, &outcome);
        match load.pace.pause(&mut due, Instant::now()) {
            Duration::ZERO => tokio::task::yield_now().await,
            pause => tokio::time::sleep(pause).await,
        }
    }
    (ledger, record)
}

fn command(words: &[Vec<u8>]) -> Cmd {
    let name = String::from_utf8_lossy(&words[0]);
    cmd(&name).args(words.iter().skip(1))
}

/// A writer for each ledger with a connection of its own, to the first of these doors that
/// is there.
pub fn plain(doors: &[SocketAddr], ledgers: Vec<Ledger>, load: &Load) -> Vec<Running<Seen>> {
    let writers = ledgers.into_iter().enumerate().map(|(at, ledger)| {
        // Writers begin at different doors.
        let mut doors = doors.to_vec();
        let first = at % doors.len().max(1);
        doors.rotate_left(first);
        let load = load.clone();
        thread::spawn(move || {
            let mut writer = Plain::new(doors, load);
            let ledger = writer.write(ledger);
            Ok(Seen {
                ledgers: vec![ledger],
                records: vec![writer.record],
            })
        })
    });
    writers.collect()
}

struct Plain {
    doors: Vec<SocketAddr>,
    at: usize,
    client: Option<Client>,
    load: Load,
    record: Record,
}

impl Plain {
    fn new(doors: Vec<SocketAddr>, load: Load) -> Self {
        Self {
            doors,
            at: 0,
            client: None,
            load,
            record: Record::default(),
        }
    }

    fn write(&mut self, mut ledger: Ledger) -> Ledger {
        let mut due = Instant::now();
        while self.load.goes_on() {
            let (request, asked) = (ledger.next_request(), Instant::now());
            let words = ledger.words(request);
            let outcome = self.until_known(&words, asked);
            if matches!(outcome, Outcome::Answered(_)) {
                self.record.answered(self.load.began, asked);
            }
            ledger.note(request, &outcome);
            thread::sleep(self.load.pace.pause(&mut due, Instant::now()));
        }
        ledger
    }

    /// Asks again what was not done.
    fn until_known(&mut self, words: &[Vec<u8>], asked: Instant) -> Outcome {
        loop {
            let (outcome, kind) = self.once(words);
            if let Some(kind) = kind {
                self.record.failed(self.load.began, kind);
            }
            if outcome != Outcome::NotDone || !self.load.goes_on() {
                return outcome;
            }
            if asked.elapsed() > PATIENCE {
                let kind = format!("nothing for {} s", PATIENCE.as_secs());
                self.record.failed(self.load.began, kind);
                return outcome;
            }
            thread::sleep(AGAIN);
        }
    }

    fn once(&mut self, words: &[Vec<u8>]) -> (Outcome, Option<String>) {
        let client = match self.client.take() {
            Some(client) if client.is_open() => Ok(client),
            // The node has stopped: its clients go to another one.
            Some(_) => {
                self.at = (self.at + 1) % self.doors.len();
                Client::connect_within(self.doors[self.at], PATIENCE)
            }
            None => Client::connect_within(self.doors[self.at], PATIENCE),
        };
        let Ok(mut client) = client else {
            self.at = (self.at + 1) % self.doors.len();
            return (Outcome::NotDone, Some(UNREACHABLE.into()));
        };
        let asked = Instant::now();
        match ask(&mut client, words) {
            Ok(reply) => {
                self.client = Some(client);
                outcome::of_reply(reply)
            }
            Err(_) => {
                let kind = match asked.elapsed() < PATIENCE {
                    true => BROKEN.to_owned(),
                    false => "no answer".to_owned(),
                };
                self.at = (self.at + 1) % self.doors.len();
                (Outcome::Doubt, Some(kind))
            }
        }
    }
}

fn ask(client: &mut Client, words: &[Vec<u8>]) -> Result<crate::client::Reply> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    encode(&mut bytes, &words);
    client.send(&bytes)?;
    client.receive()
}

/// Reads every key at the plain door, and says what is wrong.
pub fn audit_plain(door: SocketAddr, ledgers: &[Ledger]) -> Result<Vec<String>> {
    let mut client = Client::connect_within(door, PATIENCE)?;
    let mut wrong = Vec::new();
    for key in ledgers.iter().flat_map(Ledger::all) {
        let words = [b"GET".to_vec(), key.name.clone().into_bytes()];
        let answer = match outcome::of_reply(ask(&mut client, &words)?) {
            (Outcome::Answered(answer), _) => answer,
            (_, kind) => Answer::Other(kind.unwrap_or_default()),
        };
        wrong.extend(key.judge(&answer));
    }
    Ok(wrong)
}

/// The same by a client that knows the cluster.
pub fn audit_knowing(door: SocketAddr, ledgers: &[Ledger]) -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    runtime.block_on(async {
        let addr = Addr::new(&door.ip().to_string(), door.port());
        let client = rufous_client::Client::connect(&format!("rufous://{addr}")).await?;
        anyhow::ensure!(client.is_cluster(), "{door} knows of no cluster");
        let mut wrong = Vec::new();
        for key in ledgers.iter().flat_map(Ledger::all) {
            let words = [b"GET".to_vec(), key.name.clone().into_bytes()];
            let answer = match outcome::of_result(client.run(command(&words)).await) {
                (Outcome::Answered(answer), _) => answer,
                (_, kind) => Answer::Other(kind.unwrap_or_default()),
            };
            wrong.extend(key.judge(&answer));
        }
        Ok(wrong)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_at_set_times_catches_up() {
        let (began, ms) = (Instant::now(), Duration::from_millis);
        let (mut due, pace) = (began, Pace::Every(ms(10)));
        assert_eq!(pace.pause(&mut due, began + ms(4)), ms(6));
        assert_eq!(pace.pause(&mut due, began + ms(45)), ms(0));
        assert_eq!(pace.pause(&mut due, began + ms(45)), ms(0));
        assert_eq!(pace.pause(&mut due, began + ms(36)), ms(4));
        assert_eq!(Pace::After(ms(3)).pause(&mut due, began + ms(99)), ms(3));
    }
}
