//! Transactions over several lists, of one slot or of any, which read them and append to them. What they read
//! shows in which order they took effect: [`verdict`] has it judged by a checker that others wrote.
//!
//! No element is appended twice, and lists are used for a few hundred transactions.

pub mod verdict;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rufous_bench::client::Reply;
use rufous_sim::engine::random::Random;

use crate::demo::account::Account;
use crate::door::{Commands, Door, Route, Told, command};

const CLIENTS: u64 = 4;
/// Lists that a transaction may name.
const LISTS: u64 = 4;
/// Transactions until other lists take their place.
const TURN: u64 = 300;
/// Operations of a transaction at most.
const MOST: u64 = 4;
/// Between two transactions of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// After one that was refused.
const AGAIN: Duration = Duration::from_millis(20);

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// With what was read, once that is known.
    Read(String, Option<Vec<u64>>),
    Append(String, u64),
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Done,
    /// It was not executed.
    NotDone,
    Unknown,
}

/// One transaction. Times are microseconds since the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// A client with an unknown outcome goes on under another number.
    pub process: u64,
    pub asked_us: u64,
    pub ended_us: u64,
    pub steps: Vec<Step>,
    pub came: Came,
}

/// Which lists transactions name.
#[derive(Clone, Debug)]
pub struct Lists {
    name: String,
    is_one_slot: bool,
}

impl Lists {
    /// Lists of one slot, as the redirecting endpoint needs them.
    pub fn of_one_slot() -> Self {
        Self {
            name: "appends".to_owned(),
            is_one_slot: true,
        }
    }

    /// Each list in a slot of its own: of several nodes.
    pub fn apart(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_one_slot: false,
        }
    }

    fn list(&self, turn: u64, no: u64) -> String {
        if self.is_one_slot {
            format!("{{{}{turn}}}{no}", self.name)
        } else {
            format!("{}{turn}:{no}", self.name)
        }
    }
}

/// What all clients of a run share.
struct Shared {
    lists: Lists,
    began: Instant,
    ends: AtomicBool,
    transactions: AtomicU64,
    elements: AtomicU64,
    processes: AtomicU64,
    account: Account,
}

/// All clients, while they run.
pub struct Clients {
    shared: Arc<Shared>,
    running: Vec<JoinHandle<Vec<Transaction>>>,
}

impl Clients {
    pub fn start(doors: &[SocketAddr], seed: u64, lists: Lists) -> Self {
        let name = lists.name.clone();
        let shared = Arc::new(Shared {
            lists,
            began: Instant::now(),
            ends: AtomicBool::new(false),
            transactions: AtomicU64::new(0),
            elements: AtomicU64::new(1),
            processes: AtomicU64::new(0),
            account: Account::default(),
        });
        let running = (0..CLIENTS).map(|no| {
            let (shared, doors) = (shared.clone(), doors.to_vec());
            let random = Random::new(seed, &format!("{name} {no}"));
            thread::spawn(move || work(&shared, doors, random))
        });
        Self {
            running: running.collect(),
            shared,
        }
    }

    /// Has them end; what they did.
    pub fn finish(self) -> Result<Vec<Transaction>> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for running in self.running {
            all.extend(running.join().map_err(|_| anyhow!("a client panicked"))?);
        }
        Ok(all)
    }
}

fn work(shared: &Shared, doors: Vec<SocketAddr>, mut random: Random) -> Vec<Transaction> {
    let mut door = Door::new(Route::Follow(doors), &shared.account);
    let mut done = Vec::new();
    let mut process = shared.processes.fetch_add(1, Ordering::Relaxed);
    while !shared.ends.load(Ordering::Relaxed) {
        let mut steps = steps(shared, &mut random);
        let asked_us = shared.began.elapsed().as_micros() as u64;
        let told = door.ask(&commands(&steps));
        let ended_us = shared.began.elapsed().as_micros() as u64;
        let came = match told {
            Told::Replies(replies) => note(&mut steps, replies.last()),
            Told::Refused(_) => Came::NotDone,
            Told::Unknown => Came::Unknown,
        };
        done.push(Transaction {
            process,
            asked_us,
            ended_us,
            steps,
            came,
        });
        match came {
            Came::Done => thread::sleep(PAUSE),
            Came::NotDone => thread::sleep(AGAIN),
            Came::Unknown => process = shared.processes.fetch_add(1, Ordering::Relaxed),
        }
    }
    done
}

fn steps(shared: &Shared, random: &mut Random) -> Vec<Step> {
    let turn = shared.transactions.fetch_add(1, Ordering::Relaxed) / TURN;
    let count = random.between(1, MOST);
    let step = |_| {
        let list = shared.lists.list(turn, random.below(LISTS));
        if random.chance(0.5) {
            Step::Read(list, None)
        } else {
            Step::Append(list, shared.elements.fetch_add(1, Ordering::Relaxed))
        }
    };
    (0..count).map(step).collect()
}

fn commands(steps: &[Step]) -> Commands {
    let mut commands = vec![command(&["MULTI"])];
    commands.extend(steps.iter().map(|step| match step {
        Step::Read(list, _) => command(&["LRANGE", list, "0", "-1"]),
        Step::Append(list, element) => command(&["RPUSH", list, &element.to_string()]),
    }));
    commands.push(command(&["EXEC"]));
    commands
}

/// Notes what was read. A reply that is none of a transaction leaves its outcome open.
fn note(steps: &mut [Step], reply: Option<&Reply>) -> Came {
    let Some(Reply::Array(replies)) = reply else {
        return Came::Unknown;
    };
    if replies.len() != steps.len() {
        return Came::Unknown;
    }
    for (step, reply) in steps.iter_mut().zip(replies) {
        match (step, reply) {
            (Step::Read(_, read), Reply::Array(elements)) => {
                *read = elements.iter().map(element).collect();
            }
            (Step::Append(..), Reply::Integer(_)) => {}
            _ => return Came::Unknown,
        }
    }
    let is_read = |step: &Step| !matches!(step, Step::Read(_, None));
    if steps.iter().all(is_read) {
        Came::Done
    } else {
        Came::Unknown
    }
}

fn element(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
