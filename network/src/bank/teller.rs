//! A client's connection to the plain port of one node, and what became of what it sent.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use rufous_bench::client::{Client, Reply, encode};

use super::ledger::Wrong;
use super::till::Till;

/// Longer than any promise lasts.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a busy machine may add to a documented bound.
const SLACK: Duration = Duration::from_secs(2);

/// How long a client may have to wait, as documented.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// A command on one key.
    Key,
    /// A transaction over nodes, be it only a watch.
    Transaction,
}

impl Bound {
    fn time(self) -> Duration {
        match self {
            Bound::Key => Duration::from_secs(5),
            Bound::Transaction => Duration::from_secs(10),
        }
    }
}

/// What became of commands that were sent in one packet.
#[derive(Debug)]
pub enum Answer {
    Replies(Vec<Reply>),
    /// They may have been executed.
    Lost,
    /// They were not sent.
    NoConnection,
}

/// What became of `MULTI` … `EXEC`.
#[derive(Debug)]
pub enum Outcome {
    Done(Vec<Reply>),
    /// A watched key was changed: nothing was executed.
    Changed,
    /// Nothing was executed.
    Refused(String),
    Unknown(String),
}

/// See the module's description.
pub struct Teller<'a> {
    till: &'a Till,
    node: usize,
    at: SocketAddr,
    open: Option<Client>,
}

impl<'a> Teller<'a> {
    pub fn new(till: &'a Till, node: usize, at: SocketAddr) -> Self {
        Self {
            till,
            node,
            at,
            open: None,
        }
    }

    pub fn node(&self) -> usize {
        self.node
    }

    /// Sends commands in one packet, over a new connection where there is none.
    pub fn ask(&mut self, commands: &[Vec<String>], bound: Bound) -> Answer {
        let is_open = self.open.as_ref().is_some_and(Client::is_open);
        if !is_open {
            self.open = Client::connect_within(self.at, PATIENCE).ok();
        }
        self.go_on(commands, bound)
    }

    /// Likewise, over the connection of the last request only: its watches are needed.
    pub fn go_on(&mut self, commands: &[Vec<String>], bound: Bound) -> Answer {
        let Some(mut client) = self.open.take().filter(Client::is_open) else {
            return Answer::NoConnection;
        };
        let since = Instant::now();
        let stood_still = self.till.stands_still(self.node);
        let replies = exchange(&mut client, commands);
        let took = since.elapsed();
        // A node that stands still promises nothing.
        if !stood_still && !self.till.stands_still(self.node) {
            self.till.on_wait(took);
            if took > bound.time() + SLACK {
                let words = format!("{:?} at node {}: {took:?}", commands.last(), self.node);
                self.till.on_wrong(Wrong::Late, words);
            }
        }
        match replies {
            Ok(replies) => {
                self.open = Some(client);
                Answer::Replies(replies)
            }
            Err(_) => Answer::Lost,
        }
    }
}

fn exchange(client: &mut Client, commands: &[Vec<String>]) -> Result<Vec<Reply>> {
    let mut bytes = Vec::new();
    for words in commands {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        encode(&mut bytes, &words);
    }
    client.send(&bytes)?;
    commands.iter().map(|_| client.receive()).collect()
}

impl Outcome {
    /// Of the replies to `MULTI`, commands and `EXEC`.
    pub fn of(answer: Answer) -> Self {
        let mut replies = match answer {
            Answer::Replies(replies) => replies,
            Answer::Lost => return Self::Unknown("connection lost".to_owned()),
            Answer::NoConnection => return Self::Refused("no connection".to_owned()),
        };
        match replies.pop() {
            Some(Reply::Array(replies)) => Self::Done(replies),
            Some(Reply::Nil) => Self::Changed,
            Some(Reply::Error(text)) if code(&text) == "UNKNOWNRESULT" => {
                Self::Unknown(code(&text).to_owned())
            }
            Some(Reply::Error(text)) => {
                let queued = replies.iter().find_map(error);
                Self::Refused(code(queued.unwrap_or(&text)).to_owned())
            }
            other => Self::Refused(format!("unexpected reply {other:?}")),
        }
    }
}

fn error(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(text) => Some(text),
        _ => None,
    }
}

/// The code of an error is its first word.
pub fn code(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(replies: &[Reply]) -> Outcome {
        Outcome::of(Answer::Replies(replies.to_vec()))
    }

    fn failed(text: &str) -> Reply {
        Reply::Error(text.to_owned())
    }

    #[test]
    fn what_became_of_a_transaction_is_told_by_the_reply_to_exec() {
        let ok = Reply::Simple("OK".to_owned());
        let done = [ok.clone(), Reply::Array(vec![Reply::Integer(1)])];
        assert!(matches!(outcome(&done), Outcome::Done(replies) if replies.len() == 1));
        assert!(matches!(
            outcome(&[ok.clone(), Reply::Nil]),
            Outcome::Changed
        ));
        let down = failed("CLUSTERDOWN no");
        let aborted = [ok.clone(), down, failed("EXECABORT because")];
        assert!(matches!(outcome(&aborted), Outcome::Refused(code) if code == "CLUSTERDOWN"));
        let unknown = [ok, failed("UNKNOWNRESULT after 10 s")];
        assert!(matches!(outcome(&unknown), Outcome::Unknown(_)));
        assert!(matches!(Outcome::of(Answer::Lost), Outcome::Unknown(_)));
        let none = Outcome::of(Answer::NoConnection);
        assert!(matches!(none, Outcome::Refused(_)));
    }
}
