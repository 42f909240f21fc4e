//! A client's connection: bound to one address, or following the redirections of a cluster.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use rufous_bench::client::{Client, Reply, encode};

use crate::demo::account::{Account, Ended, FOLLOWS};

/// A client that knows the cluster asks another node when one says nothing for so long.
const SILENCE: Duration = Duration::from_secs(3);
/// A client of one node waits longer than any promise lasts.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Where a client connects.
#[derive(Clone, Debug)]
pub enum Route {
    /// One address of a node, whatever its state.
    Stay(usize, SocketAddr),
    /// The redirecting endpoints of all nodes: the client goes to the node that has the key.
    Follow(Vec<SocketAddr>),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Stay(node, at) => write!(f, "node {node} ({at})"),
            Route::Follow(_) => f.write_str("the cluster"),
        }
    }
}

/// What became of commands that were sent together.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Replies(Vec<Reply>),
    /// Nothing was executed; the code of the error.
    Refused(String),
    /// They may have been executed, or may be later.
    Unknown,
}

/// Commands in one packet; each is a list of words.
pub type Commands = Vec<Vec<Vec<u8>>>;

/// A command of words.
pub fn command(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

enum Attempt {
    Ended(Told),
    /// Nothing was executed, and another attempt may succeed.
    Again,
}

/// See the module's description.
pub struct Door<'a> {
    route: Route,
    account: &'a Account,
    open: Option<Client>,
    /// Which address of [`Route::Follow`] is tried next.
    next: usize,
    moved: Option<SocketAddr>,
}

impl<'a> Door<'a> {
    pub fn new(route: Route, account: &'a Account) -> Self {
        Self {
            route,
            account,
            open: None,
            next: 0,
            moved: None,
        }
    }

    /// Sends commands in one packet and counts what becomes of them.
    pub fn ask(&mut self, commands: &Commands) -> Told {
        let node = match self.route {
            Route::Stay(node, _) => node,
            Route::Follow(_) => FOLLOWS,
        };
        let asked = self.account.on_ask(node);
        let told = self.attempts(commands);
        let ended = match &told {
            Told::Replies(_) => Ended::Answered,
            Told::Refused(code) => Ended::Refused(code),
            Told::Unknown => Ended::Unknown,
        };
        self.account.on_end(asked, node, ended);
        told
    }

    fn attempts(&mut self, commands: &Commands) -> Told {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.attempt(commands) {
                Attempt::Ended(told) => return told,
                Attempt::Again => std::thread::sleep(PAUSE),
            }
        }
        Told::Refused("no connection".to_owned())
    }

    fn attempt(&mut self, commands: &Commands) -> Attempt {
        let mut client = match self.client() {
            Ok(client) => client,
            Err(_) => {
                self.next += 1;
                self.moved = None;
                return match self.route {
                    Route::Stay(..) => Attempt::Ended(Told::Refused("no connection".to_owned())),
                    Route::Follow(_) => Attempt::Again,
                };
            }
        };
        match exchange(&mut client, commands) {
            Ok(replies) => {
                self.open = Some(client);
                self.judge(replies)
            }
            Err(_) => {
                self.next += 1;
                self.moved = None;
                Attempt::Ended(Told::Unknown)
            }
        }
    }

    fn client(&mut self) -> Result<Client> {
        if let Some(open) = self.open.take() {
            return Ok(open);
        }
        match &self.route {
            Route::Stay(_, at) => Client::connect_within(*at, PATIENCE),
            Route::Follow(doors) => {
                let door = doors[self.next % doors.len()];
                Client::connect_within(self.moved.unwrap_or(door), SILENCE)
            }
        }
    }

    /// A redirection or refusal of any of the commands means that none was executed: they are one
    /// command, or one transaction.
    fn judge(&mut self, replies: Vec<Reply>) -> Attempt {
        let error = replies.iter().find_map(error_in);
        let Some(error) = error else {
            return Attempt::Ended(Told::Replies(replies));
        };
        let mut words = error.split(' ');
        let code = words.next().unwrap_or_default();
        match (code, &self.route) {
            ("MOVED", Route::Follow(_)) => {
                self.moved = words.nth(1).and_then(|at| at.parse().ok());
                self.open = None;
                Attempt::Again
            }
            // The key is at another node, where this client does not go.
            ("MOVED", Route::Stay(..)) => Attempt::Ended(Told::Replies(replies)),
            ("UNKNOWNRESULT", _) => Attempt::Ended(Told::Unknown),
            (code, _) => Attempt::Ended(Told::Refused(code.to_owned())),
        }
    }
}

/// The error of a reply, or of a command of a transaction: these are executed all, or none.
fn error_in(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Error(text) => Some(text.clone()),
        Reply::Array(replies) => replies.iter().find_map(error_in),
        _ => None,
    }
}

fn exchange(client: &mut Client, commands: &Commands) -> Result<Vec<Reply>> {
    let mut bytes = Vec::new();
    for words in commands {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        encode(&mut bytes, &words);
    }
    client.send(&bytes)?;
    commands.iter().map(|_| client.receive()).collect()
}
