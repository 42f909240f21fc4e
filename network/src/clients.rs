//! Who writes and reads: a client at the door of each node that knows nothing of the cluster
//! and stays there, and several through one client that knows the cluster. Each asks for one
//! thing at a time.
//!
//! What each error says of its request is what the demonstration of clusters has it say
//! ([`rufous_bench::elastic::outcome`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rufous_bench::client::{Client, encode};
use rufous_bench::elastic::ledger::{Answer, Outcome};
use rufous_bench::elastic::outcome;
use rufous_client::{Builder, cmd};
use rufous_sim::engine::random::Random;

use crate::history::{Came, Operation, What};
use crate::registers::{Next, Registers, key};

/// Who does not hear for so long gives up, later than nodes do.
const PATIENCE: Duration = Duration::from_secs(8);
/// Clients through the one that knows the cluster.
const KNOWING: u64 = 4;
/// Between two operations of a client.
const PAUSE: Duration = Duration::from_millis(4);
/// After one that was refused.
const AGAIN: Duration = Duration::from_millis(20);
/// Values of a client are these many from those of the next.
const VALUES: u64 = 1_000_000_000;

/// What all clients of a run share.
#[derive(Clone)]
pub struct Shared {
    began: Instant,
    ends: Arc<AtomicBool>,
    registers: Arc<Registers>,
    /// Acknowledged writes.
    pub done: Arc<AtomicU64>,
    seed: u64,
}

/// What clients have seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub history: Vec<Operation>,
    /// Errors, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Answers that make no sense.
    pub odd: Vec<String>,
}

impl Seen {
    fn extend(&mut self, other: Seen) {
        self.history.extend(other.history);
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.odd.extend(other.odd);
    }
}

/// All clients, while they run.
pub struct Clients {
    shared: Shared,
    plain: Vec<SocketAddr>,
    doors: Vec<SocketAddr>,
    running: Vec<JoinHandle<Result<Seen>>>,
}

impl Clients {
    pub fn start(plain: Vec<SocketAddr>, doors: Vec<SocketAddr>, seed: u64) -> Self {
        let shared = Shared {
            began: Instant::now(),
            ends: Arc::default(),
            registers: Arc::default(),
            done: Arc::default(),
            seed,
        };
        let mut running = Vec::new();
        for (at, door) in plain.iter().enumerate() {
            let (door, writer) = (*door, Writer::new(at as u64, &shared));
            running.push(thread::spawn(move || Ok(stay(door, writer))));
        }
        let first = plain.len() as u64;
        let writers = first..first + KNOWING;
        let writers = writers.map(|no| Writer::new(no, &shared)).collect();
        let at = doors.clone();
        running.push(thread::spawn(move || knowing(&at, writers)));
        Self {
            shared,
            plain,
            doors,
            running,
        }
    }

    /// Acknowledged writes so far.
    pub fn done(&self) -> u64 {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Has them end, and reads every register at every door.
    pub fn finish(self) -> Result<Seen> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for running in self.running {
            let seen = running.join().map_err(|_| anyhow!("a client panicked"))?;
            all.extend(seen?);
        }
        let used = self.shared.registers.used();
        let mut client = self.plain.len() as u64 + KNOWING;
        for door in self.plain {
            let mut writer = Writer::new(client, &self.shared);
            let mut asks = Plain { door, open: None };
            let mut registers = 0..used;
            registers.all(|register| writer.read_in_the_end(register, |words| asks.ask(words)));
            all.extend(writer.seen);
            client += 1;
        }
        let writer = Writer::new(client, &self.shared);
        all.extend(knowing_in_the_end(&self.doors, writer, used)?);
        Ok(all)
    }
}

type Words = Vec<Vec<u8>>;

/// One client's account.
struct Writer {
    shared: Shared,
    no: u64,
    order: u64,
    random: Random,
    seen: Seen,
}

impl Writer {
    fn new(no: u64, shared: &Shared) -> Self {
        Self {
            shared: shared.clone(),
            no,
            order: 0,
            random: Random::new(shared.seed, &format!("client {no}")),
            seen: Seen::default(),
        }
    }

    fn goes_on(&self) -> bool {
        !self.shared.ends.load(Ordering::Relaxed)
    }

    fn now_us(&self) -> u64 {
        self.shared.began.elapsed().as_micros() as u64
    }

    /// The next operation, and its words.
    fn begin(&mut self) -> (Operation, Words) {
        let (register, is_read) = match self.shared.registers.next(&mut self.random) {
            Next::Read(register) => (register, true),
            Next::Write(register) => (register, false),
        };
        let what = match is_read {
            true => What::Read,
            false => What::Write(self.no * VALUES + self.order + 1),
        };
        self.begin_with(register, what)
    }

    fn begin_with(&mut self, register: u64, what: What) -> (Operation, Words) {
        let mut words = vec![b"GET".to_vec(), key(register).into_bytes()];
        if let What::Write(value) = what {
            words[0] = b"SET".to_vec();
            words.push(value.to_string().into_bytes());
        }
        let operation = Operation {
            register,
            client: self.no,
            order: self.order,
            asked_us: self.now_us(),
            ended_us: u64::MAX,
            what,
            came: Came::Unknown,
        };
        self.order += 1;
        (operation, words)
    }

    /// Notes what came, and says how long to wait before the next.
    fn end(&mut self, mut operation: Operation, came: (Outcome, Option<String>)) -> Duration {
        operation.ended_us = self.now_us();
        let (outcome, kind) = came;
        if let Some(kind) = kind {
            let kind = match kind.starts_with("LOADING ") {
                true => "LOADING".to_owned(),
                false => kind,
            };
            *self.seen.errors.entry(kind).or_default() += 1;
        }
        operation.came = match (operation.what, outcome) {
            (What::Write(_), Outcome::Answered(Answer::Done)) => {
                self.shared.done.fetch_add(1, Ordering::Relaxed);
                Came::Done
            }
            (What::Read, Outcome::Answered(Answer::Nil)) => Came::Value(None),
            (What::Read, Outcome::Answered(Answer::Text(text))) => match number(&text) {
                Some(value) => Came::Value(Some(value)),
                None => self.odd(&operation, &format!("{:?}", String::from_utf8_lossy(&text))),
            },
            (_, Outcome::NotDone) => Came::NotDone,
            // A node that has just started.
            (_, Outcome::Answered(Answer::Other(text))) if text.starts_with("LOADING ") => {
                Came::NotDone
            }
            (_, Outcome::Doubt) => Came::Unknown,
            (_, Outcome::Answered(other)) => self.odd(&operation, &format!("{other:?}")),
        };
        self.seen.history.push(operation);
        match operation.came {
            Came::NotDone | Came::Unknown => AGAIN,
            _ => PAUSE,
        }
    }

    fn odd(&mut self, operation: &Operation, answer: &str) -> Came {
        self.seen.odd.push(format!("{operation}: {answer}"));
        Came::Unknown
    }

    /// Until it is answered, within reason: what is not is odd by then. False for that.
    fn read_in_the_end(
        &mut self,
        register: u64,
        mut ask: impl FnMut(&Words) -> (Outcome, Option<String>),
    ) -> bool {
        let since = Instant::now();
        loop {
            let (operation, words) = self.begin_with(register, What::Read);
            let pause = self.end(operation, ask(&words));
            let last = self.seen.history.last();
            if last.is_some_and(|last| matches!(last.came, Came::Value(_))) {
                return true;
            }
            if since.elapsed() > PATIENCE * 2 {
                let odd = format!("no node answers for {}", key(register));
                self.seen.odd.push(odd);
                return false;
            }
            thread::sleep(pause);
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A client that knows one door and nothing else.
struct Plain {
    door: SocketAddr,
    open: Option<Client>,
}

impl Plain {
    fn ask(&mut self, words: &Words) -> (Outcome, Option<String>) {
        let client = match self.open.take() {
            Some(client) => Ok(client),
            None => Client::connect_within(self.door, PATIENCE),
        };
        let Ok(mut client) = client else {
            return (Outcome::NotDone, Some(outcome::UNREACHABLE.to_owned()));
        };
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        encode(&mut bytes, &words);
        let reply = client.send(&bytes).and_then(|()| client.receive());
        match reply {
            Ok(reply) => {
                self.open = Some(client);
                outcome::of_reply(reply)
            }
            Err(_) => (Outcome::Doubt, Some(outcome::BROKEN.to_owned())),
        }
    }
}

fn stay(door: SocketAddr, mut writer: Writer) -> Seen {
    let mut plain = Plain { door, open: None };
    while writer.goes_on() {
        let (operation, words) = writer.begin();
        let pause = writer.end(operation, plain.ask(&words));
        thread::sleep(pause);
    }
    writer.seen
}

async fn connect(doors: &[SocketAddr]) -> Result<rufous_client::Client> {
    let doors: Vec<String> = doors.iter().map(SocketAddr::to_string).collect();
    let builder = Builder::new(&format!("rufous://{}", doors.join(",")))?;
    let builder = builder.timeout(PATIENCE).attempt_timeout(PATIENCE);
    let client = builder.connect().await?;
    anyhow::ensure!(client.is_cluster(), "{doors:?} know of no cluster");
    Ok(client)
}

async fn ask(client: &rufous_client::Client, words: &Words) -> (Outcome, Option<String>) {
    let name = String::from_utf8_lossy(&words[0]);
    let command = cmd(&name).args(words.iter().skip(1));
    outcome::of_result(client.run(command).await)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build()?)
}

fn knowing(doors: &[SocketAddr], writers: Vec<Writer>) -> Result<Seen> {
    runtime()?.block_on(async {
        let client = connect(doors).await?;
        let writers = writers.into_iter().map(|mut writer| {
            let client = client.clone();
            tokio::spawn(async move {
                while writer.goes_on() {
                    let (operation, words) = writer.begin();
                    let came = ask(&client, &words).await;
                    tokio::time::sleep(writer.end(operation, came)).await;
                }
                writer.seen
            })
        });
        let mut all = Seen::default();
        for writer in writers.collect::<Vec<_>>() {
            all.extend(writer.await.context("a client panicked")?);
        }
        Ok(all)
    })
}

fn knowing_in_the_end(doors: &[SocketAddr], mut writer: Writer, used: u64) -> Result<Seen> {
    let runtime = runtime()?;
    let client = runtime.block_on(connect(doors))?;
    let mut ask = |words: &Words| runtime.block_on(ask(&client, words));
    (0..used).all(|register| writer.read_in_the_end(register, &mut ask));
    Ok(writer.seen)
}
