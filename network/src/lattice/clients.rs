//! Who works on lattice keys: two clients at each node, one for each of its doors. Each has
//! one connection, which stays there, and asks for one thing at a time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use rufous_bench::client::{Client, Reply, encode};
use rufous_bench::elastic::ledger::{Answer, Outcome};
use rufous_bench::elastic::outcome;
use rufous_resp::Reply as Said;
use rufous_sim::engine::random::Random;
use rufous_sim::oracle::lattice::Told;

use super::acts::{Act, Came, How, What, Window};
use super::keys::{Key, Keys};
use super::quiet;

/// Who does not hear for so long gives up, later than nodes do.
const PATIENCE: Duration = Duration::from_secs(8);
/// While a fault lasts, a node that nothing disturbs has to answer within so long.
const UNTIL_SERVED: Duration = Duration::from_secs(30);
/// Between two operations of a client.
const PAUSE: Duration = Duration::from_millis(10);
/// After one that was not answered.
const AGAIN: Duration = Duration::from_millis(20);

/// Where a client of a node connects.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    pub node: usize,
    pub address: SocketAddr,
}

/// What all clients of a run share.
#[derive(Clone)]
pub(super) struct Shared {
    began: Instant,
    ends: Arc<AtomicBool>,
    pub(super) keys: Arc<Keys>,
    sessions: Arc<AtomicU64>,
}

impl Shared {
    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn new_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

/// What clients have seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub acts: Vec<Act>,
    pub windows: Vec<Window>,
    /// Errors, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Answers that make no sense.
    pub odd: Vec<String>,
}

impl Seen {
    pub(super) fn extend(&mut self, other: Seen) {
        self.acts.extend(other.acts);
        self.windows.extend(other.windows);
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.odd.extend(other.odd);
    }
}

/// A connection to one door, or the next one when it is lost.
pub(super) struct Connection {
    shared: Shared,
    pub(super) door: Door,
    open: Option<Client>,
    session: u64,
    pub(super) seen: Seen,
}

impl Connection {
    pub(super) fn new(shared: &Shared, door: Door) -> Self {
        Self {
            shared: shared.clone(),
            door,
            open: None,
            session: shared.new_session(),
            seen: Seen::default(),
        }
    }

    /// Asks, and notes it.
    pub(super) fn act(&mut self, key: Key, what: What) -> &mut Act {
        let asked_us = self.shared.now_us();
        let session = self.session;
        let reply = self.ask(&words(key, &what));
        let came = match reply {
            Ok(Reply::Error(text)) => self.refused(&text),
            Ok(reply) => came(&what, reply).unwrap_or_else(|reply| {
                let odd = format!("{what:?} of {key} was answered {reply:?}");
                self.seen.odd.push(odd);
                Came::Unknown
            }),
            Err((kind, came)) => {
                self.count(kind);
                came
            }
        };
        let at = self.seen.acts.len();
        self.seen.acts.push(Act {
            key,
            node: self.door.node,
            session,
            asked_us,
            ended_us: self.shared.now_us(),
            what,
            came,
            is_last: false,
        });
        &mut self.seen.acts[at]
    }

    /// An answer, or why there is none and what that says.
    pub(super) fn ask(&mut self, words: &[Vec<u8>]) -> Result<Reply, (&'static str, Came)> {
        let reply = self.try_ask(words);
        if reply.is_err() {
            self.session = self.shared.new_session();
        }
        reply
    }

    fn try_ask(&mut self, words: &[Vec<u8>]) -> Result<Reply, (&'static str, Came)> {
        let client = match self.open.take() {
            Some(client) => Ok(client),
            None => Client::connect_within(self.door.address, PATIENCE),
        };
        let mut client = client.map_err(|_| (outcome::UNREACHABLE, Came::NotDone))?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        encode(&mut bytes, &words);
        let reply = client.send(&bytes).and_then(|()| client.receive());
        let reply = reply.map_err(|_| (outcome::BROKEN, Came::Unknown))?;
        self.open = Some(client);
        Ok(reply)
    }

    fn refused(&mut self, text: &str) -> Came {
        if text.starts_with("LOADING") {
            self.count("LOADING");
            return Came::NotDone;
        }
        let (outcome, kind) = outcome::of_reply(Reply::Error(text.to_owned()));
        self.count(&kind.unwrap_or_default());
        match outcome {
            Outcome::NotDone => Came::NotDone,
            Outcome::Doubt => Came::Unknown,
            Outcome::Answered(Answer::Other(text)) => {
                self.seen.odd.push(format!("lattice key: {text}"));
                Came::Unknown
            }
            Outcome::Answered(_) => Came::Unknown,
        }
    }

    fn count(&mut self, kind: &str) {
        let kind = format!("{kind} (lattice keys)");
        *self.seen.errors.entry(kind).or_default() += 1;
    }
}

fn words(key: Key, what: &What) -> Vec<Vec<u8>> {
    let key = key.to_string();
    match what {
        What::Deed(deed) => deed.request(&key),
        What::Put(text) => vec![b"SET".into(), key.into(), text.to_string().into()],
        What::Get => vec![b"GET".into(), key.into()],
    }
}

/// What a reply says, or the reply itself if it is none to this.
fn came(what: &What, reply: Reply) -> Result<Came, Reply> {
    let came = match (what, &reply) {
        (What::Deed(deed), reply) => {
            let told = said(reply).and_then(|said| deed.told(&said));
            told.map(|told| match told {
                Told::Number(number) => Came::Number(number),
                Told::All(all) => Came::All(all.into_iter().collect()),
            })
        }
        (What::Put(_), Reply::Simple(ok)) if ok == "OK" => Some(Came::Done),
        (What::Get, Reply::Nil) => Some(Came::Nothing),
        (What::Get, Reply::Bulk(text)) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| text.parse().ok()).map(Came::Number)
        }
        _ => None,
    };
    came.ok_or(reply)
}

/// As the simulator has it.
fn said(reply: &Reply) -> Option<Said> {
    Some(match reply {
        Reply::Integer(number) => Said::Integer(*number),
        Reply::Bulk(text) => Said::Bulk(text.clone()),
        Reply::Nil => Said::Null,
        Reply::Array(all) => Said::Array(all.iter().map(said).collect::<Option<_>>()?),
        Reply::Simple(_) | Reply::Error(_) => return None,
    })
}

/// All clients, while they run.
pub struct Clients {
    shared: Shared,
    running: Vec<Running>,
    windows: Mutex<Vec<Window>>,
}

struct Running {
    door: Door,
    /// When the last was asked for that was answered.
    answered_us: Arc<AtomicU64>,
    answers: Arc<AtomicU64>,
    thread: JoinHandle<Seen>,
}

impl Clients {
    pub fn start(doors: &[Door], seed: u64) -> Self {
        let shared = Shared {
            began: Instant::now(),
            ends: Arc::default(),
            keys: Arc::default(),
            sessions: Arc::default(),
        };
        let start = |(at, door): (usize, &Door)| {
            let random = Random::new(seed, &format!("lattice client {at}"));
            let connection = Connection::new(&shared, *door);
            let (answered_us, answers) = (Arc::default(), Arc::default());
            let answered = (Arc::clone(&answered_us), Arc::clone(&answers));
            Running {
                door: *door,
                answered_us,
                answers,
                thread: thread::spawn(move || stay(connection, random, &answered)),
            }
        };
        Self {
            running: doors.iter().enumerate().map(start).collect(),
            shared,
            windows: Mutex::default(),
        }
    }

    /// Lets a fault last for that time, and until every client has been answered that is at
    /// one of these nodes.
    pub fn hold(&self, time: Duration, nodes: &[(usize, How)]) -> Result<()> {
        let from_us = self.shared.now_us();
        thread::sleep(time);
        let since = Instant::now();
        for running in &self.running {
            let node = running.door.node;
            let is_reached = nodes.iter().any(|(reached, _)| *reached == node);
            while is_reached && running.answered_us.load(Ordering::Relaxed) < from_us {
                if since.elapsed() > UNTIL_SERVED {
                    bail!("node {node} serves no lattice keys while that lasts");
                }
                thread::sleep(PAUSE);
            }
        }
        let until_us = self.shared.now_us();
        let windows = nodes.iter().map(|(node, how)| Window {
            node: *node,
            how: *how,
            from_us,
            until_us,
        });
        let all = self.windows.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.extend(windows);
        Ok(())
    }

    /// How many operations these nodes have answered so far.
    pub fn answers(&self, nodes: &[(usize, How)]) -> u64 {
        let is_at = |of: &&Running| nodes.iter().any(|(node, _)| *node == of.door.node);
        let all = self.running.iter().filter(is_at);
        all.map(|of| of.answers.load(Ordering::Relaxed)).sum()
    }

    /// Has them end.
    pub fn stop(self) -> Result<Seen> {
        Ok(self.end()?.0)
    }

    /// Has them end, and reads every key at every node when all is quiet.
    pub fn finish(self, workers: usize) -> Result<Seen> {
        let doors: Vec<Door> = self.running.iter().map(|one| one.door).collect();
        let (mut seen, shared) = self.end()?;
        match quiet::look(&shared, &doors, workers) {
            Ok(last) => seen.extend(last),
            Err(error) => seen.odd.push(format!("{error:#}")),
        }
        Ok(seen)
    }

    fn end(self) -> Result<(Seen, Shared)> {
        self.shared.ends.store(true, Ordering::Relaxed);
        let windows = self.windows.into_inner();
        let mut all = Seen {
            windows: windows.unwrap_or_else(PoisonError::into_inner),
            ..Seen::default()
        };
        for running in self.running {
            let seen = running.thread.join();
            all.extend(seen.map_err(|_| anyhow!("a client panicked"))?);
        }
        Ok((all, self.shared))
    }
}

fn stay(
    mut connection: Connection,
    mut random: Random,
    (answered_us, answers): &(Arc<AtomicU64>, Arc<AtomicU64>),
) -> Seen {
    let shared = connection.shared.clone();
    while !shared.ends.load(Ordering::Relaxed) {
        let (key, what) = shared.keys.next(&mut random);
        let act = connection.act(key, what);
        if let Came::All(all) = &act.came {
            shared.keys.see(key, all);
        }
        let pause = match act.came.is_answer() {
            true => {
                answered_us.store(act.asked_us, Ordering::Relaxed);
                answers.fetch_add(1, Ordering::Relaxed);
                PAUSE
            }
            false => AGAIN,
        };
        thread::sleep(pause);
    }
    connection.seen
}
