//! A client's pool: several connections to each node. A session moves from one to another, with a token where it has
//! tokens.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rufous_bench::client::{Client, Reply, encode};
use rufous_sim::engine::random::Random;

use super::record::{Counts, Record};

/// Without a reply for so long, a connection is given up.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a connection is asked to wait for what a session has seen, in milliseconds.
const RESUME_MS: &str = "300";
const TOKEN_MS: &str = "300";
/// How often a session takes another connection.
const MOVES: f64 = 0.5;

/// Where a connection goes.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    pub node: usize,
    pub address: SocketAddr,
}

/// See the module's description.
pub struct Pool<'a> {
    record: &'a Record,
    doors: Vec<Door>,
    open: Vec<Option<Client>>,
    /// The connection that shows all that the session has seen.
    at: Option<usize>,
    has_tokens: bool,
    token: Option<String>,
    /// The last reply is in no token.
    has_gap: bool,
    /// The reply to `SESSION TOKEN` was not received yet.
    owes_token: bool,
    session: usize,
    pub counts: Counts,
}

impl<'a> Pool<'a> {
    pub fn new(record: &'a Record, doors: &[Door], has_tokens: bool) -> Self {
        Self {
            record,
            doors: doors.to_vec(),
            open: doors.iter().map(|_| None).collect(),
            at: None,
            has_tokens,
            token: None,
            has_gap: false,
            owes_token: false,
            session: record.new_session(),
            counts: Counts::default(),
        }
    }

    pub fn session(&self) -> usize {
        self.session
    }

    /// The node of the current connection; 0 where there is none.
    pub fn node(&self) -> usize {
        self.at.map_or(0, |at| self.doors[at].node)
    }

    /// Takes another connection now and then; false where none can serve the session now.
    pub fn is_ready(&mut self, random: &mut Random) -> bool {
        let moves = random.chance(MOVES) && !self.has_gap;
        if self.at.is_some() && !moves {
            return true;
        }
        let to = random.index(self.doors.len());
        if self.at == Some(to) {
            return true;
        }
        if self.take(to) {
            self.counts.moves += 1;
            self.counts.crossings += u64::from(self.node() != self.doors[to].node);
            self.counts.resumed += u64::from(self.token.is_some());
            self.at = Some(to);
        }
        self.at.is_some()
    }

    /// Whether that connection is open and shows what the session has seen.
    fn take(&mut self, to: usize) -> bool {
        if self.open[to].is_none() {
            self.open[to] = Client::connect_within(self.doors[to].address, PATIENCE).ok();
        }
        let Some(client) = &mut self.open[to] else {
            return false;
        };
        let Some(token) = &self.token else {
            return true;
        };
        let began = Instant::now();
        let reply = client.call(&["SESSION", "RESUME", token, "TIMEOUT", RESUME_MS]);
        match reply {
            Ok(Reply::Simple(ok)) if ok == "OK" => {
                self.counts.longest = self.counts.longest.max(began.elapsed());
                return true;
            }
            Ok(Reply::Error(text)) if text.starts_with("BEHIND") => self.counts.behind += 1,
            Ok(Reply::Error(text)) => self.counts.error(&text),
            Ok(other) => self.record.on_odd(format!("SESSION RESUME: {other:?}")),
            Err(_) => self.open[to] = None,
        }
        false
    }

    /// Asks at the current connection. None where there is no reply, or an error: the outcome is unknown then.
    pub fn ask(&mut self, words: &[&str]) -> Option<Reply> {
        self.counts.operations += 1;
        let mut bytes = Vec::new();
        let mut put = |words: &[&str]| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            encode(&mut bytes, &words);
        };
        put(words);
        if self.has_tokens {
            put(&["SESSION", "TOKEN", "TIMEOUT", TOKEN_MS]);
        }
        let client = self.open[self.at?].as_mut()?;
        let reply = client.send(&bytes).and_then(|()| client.receive());
        let Ok(reply) = reply else {
            self.on_lost();
            return None;
        };
        self.owes_token = self.has_tokens;
        match reply {
            Reply::Error(text) => {
                self.counts.error(&text);
                None
            }
            reply => {
                self.has_gap = self.has_tokens;
                Some(reply)
            }
        }
    }

    /// To be called after each [`Self::ask`] whose outcome was noted: the session's token.
    pub fn keep_token(&mut self) {
        if !std::mem::take(&mut self.owes_token) {
            return;
        }
        let Some(client) = self.at.and_then(|at| self.open[at].as_mut()) else {
            return;
        };
        match client.receive() {
            Ok(Reply::Bulk(token)) => {
                self.token = Some(String::from_utf8_lossy(&token).into_owned());
                self.has_gap = false;
            }
            Ok(Reply::Error(text)) if text.starts_with("BEHIND") => self.counts.late_tokens += 1,
            Ok(Reply::Error(text)) => self.counts.error(&text),
            Ok(other) => self.record.on_odd(format!("SESSION TOKEN: {other:?}")),
            Err(_) => self.on_lost(),
        }
    }

    /// The session goes on elsewhere, or ends if what it has seen last is in no token.
    fn on_lost(&mut self) {
        if let Some(at) = self.at.take() {
            self.open[at] = None;
        }
        if std::mem::take(&mut self.has_gap) {
            self.counts.ended += 1;
            self.token = None;
            self.session = self.record.new_session();
        }
    }

    /// Gives up the current connection, and the transaction that is open there.
    pub fn drop_connection(&mut self) {
        self.on_lost();
    }
}
