//! Sessions: what a keyspace's level promises to one sequence of operations.

use crate::client::{Client, last};
use crate::command::{Cmd, ToArg, cmd};
use crate::config::Addr;
use crate::connection::Batch;
use crate::error::{Error, Result};
use crate::node::Held;
use crate::retry::{self, Next};
use crate::shape::{ConnectionKind, Shape};
use crate::value::{FromValue, Value};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Keys whose tokens a session keeps; the oldest one is forgotten first.
const TOKENS: usize = 4096;

/// How long a server may wait at most until it has what the session has seen.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// One sequence of operations, to which keyspaces' levels make their promises, on whatever connections and nodes.
///
/// To a server a session is a connection, so a session holds connections of its own, one per node that it
/// has used. With each reply it gets a token of what it has seen; before it uses another connection, that waits until its node
/// has received all of that (`SESSION TOKEN` and `SESSION RESUME`). So the promises outlast connections and nodes: a read, or a
/// write that was not sent, is tried again elsewhere. A write whose reply is lost returns an error with
/// [`Error::maybe_done`]. If no node has in time what the session has seen, the error's code is `BEHIND`.
///
/// [`Session::seen`] and [`Session::resume`] hand a session to another process. With a server that has no such tokens, an operation
/// on a lost connection returns [`Error::SessionLost`]; [`Session::renew`] starts again.
///
/// At `LEVEL causal` tokens *of keys* carry what was seen of concurrent values: [`Session::causal_get`], [`Session::causal_set`]
/// and [`Session::causal_delete`] keep them by key. A write replaces what the session has read or written of the
/// key, and nothing else.
///
/// ```no_run
/// # async fn example(client: rufous_client::Client) -> rufous_client::Result<()> {
/// use rufous_client::cmd;
/// let mut session = client.session();
/// session.run(cmd("SADD").arg("cart:7").arg("apple")).await?;
/// let seen = session.seen().map(<[u8]>::to_vec);
/// // The user's next request, perhaps at another application server:
/// let mut later = client.session();
/// later.resume(seen.unwrap_or_default());
/// let cart: Vec<String> = later.query(cmd("SMEMBERS").arg("cart:7")).await?;
/// # Ok(()) }
/// ```
pub struct Session {
    client: Client,
    held: HashMap<Addr, Held>,
    /// The node whose connection has all that was seen.
    at: Option<Addr>,
    seen: Seen,
    /// The last reply shows what is in no token: that connection alone has it.
    has_gap: bool,
    tokens: Tokens,
}

/// What the session has seen.
#[derive(Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Nothing,
    Token(Vec<u8>),
    /// The server has no tokens: a session ends with its connection.
    Unsaid,
}

/// The concurrent values of a key, the latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Siblings<T> {
    pub values: Vec<T>,
    /// For [`Session::set_token`], here or in another process.
    pub token: Vec<u8>,
}

#[derive(Default)]
struct Tokens {
    by_key: HashMap<Vec<u8>, Vec<u8>>,
    order: VecDeque<Vec<u8>>,
}

impl Tokens {
    fn put(&mut self, key: Vec<u8>, token: Vec<u8>) {
        if self.by_key.insert(key.clone(), token).is_none() {
            self.order.push_back(key);
            if self.order.len() > TOKENS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_key.remove(&oldest);
            }
        }
    }
}

impl Client {
    pub fn session(&self) -> Session {
        Session {
            client: self.clone(),
            held: HashMap::new(),
            at: None,
            seen: Seen::default(),
            has_gap: false,
            tokens: Tokens::default(),
        }
    }
}

impl Session {
    /// Sends a command on the session's connection to the node that has its key; see [`Session`] for when it is tried again.
    pub async fn run(&mut self, command: Cmd) -> Result<Value> {
        let shape = command.shape();
        if !matches!(shape.kind, ConnectionKind::Shared) || command.args_len() == 0 {
            let text = "a session takes no command that waits or binds a connection: use `Client::dedicated`";
            return Err(Error::Refused(text.into()));
        }
        // At the owner, not whichever the lot falls on.
        let repeatable = shape.repeatable;
        let shape = Shape {
            reads: false,
            ..shape
        };
        let config = &self.client.inner.config;
        let limit = command.own_timeout().unwrap_or(config.timeout);
        let (attempts, deadline) = (config.attempts, Instant::now() + limit);
        let (mut avoid, mut attempt) = (Vec::new(), 0);
        loop {
            attempt += 1;
            let node = self.client.inner.topology.choose(&shape, &avoid);
            let sent = self.attempt(&command, node.addr(), deadline).await;
            let error = match sent {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let next = retry::decide(&error, node.addr(), repeatable);
            // Asked for once only, the other node would not keep the session.
            if matches!(next, Next::Return | Next::Ask(_)) || self.seen == Seen::Unsaid {
                return Err(error);
            }
            if attempt >= attempts || Instant::now() >= deadline {
                let last = Box::new(error);
                return Err(Error::GaveUp {
                    attempts: attempt,
                    last,
                });
            }
            let inner = &self.client.inner;
            inner
                .prepare(next, &node, &mut avoid, attempt, deadline)
                .await;
        }
    }

    /// One attempt at one node.
    async fn attempt(&mut self, command: &Cmd, to: &Addr, deadline: Instant) -> Result<Value> {
        let soon = deadline.min(Instant::now() + self.client.inner.config.attempt_timeout);
        let lost = || Error::SessionLost {
            node: to.to_string(),
        };
        let is_lost = |held: &Held| held.connection.is_closed();
        let goes_on = self.at.as_ref() == Some(to) && !self.held.get(to).is_none_or(is_lost);
        if self.has_gap && !goes_on {
            return Err(lost());
        }
        if self.held.get(to).is_some_and(is_lost) && self.seen != Seen::Unsaid {
            self.held.remove(to);
        }
        if !self.held.contains_key(to) {
            let node = self.client.inner.topology.node(to);
            let mut held = node.hold(soon).await?;
            // The connection keeps what the session has seen: it must not be reused.
            held.clean = false;
            self.held.insert(to.clone(), held);
            self.at.take_if(|at| at == to);
        }
        let held = self.held.get(to).ok_or_else(lost)?;
        if let (Seen::Token(token), true) = (&self.seen, self.at.as_ref() != Some(to)) {
            let wait = (soon - Instant::now()).min(MOST_WAIT) / 2;
            let resume = cmd("SESSION").arg("RESUME").arg(token);
            let resume = resume.arg("TIMEOUT").arg(wait.as_millis() as u64);
            let sent = held.connection.send(resume.encoded(), 1, soon).await;
            // Nothing of the command was sent.
            last(sent).map_err(Error::undone)?;
        }
        let mut bytes = command.encoded();
        let asks = self.seen != Seen::Unsaid;
        if asks {
            cmd("SESSION").arg("TOKEN").encode(&mut bytes);
        }
        let sent = held.connection.send(bytes, 1 + usize::from(asks), soon);
        let Batch {
            mut values,
            failure,
        } = sent.await;
        match values.len() {
            2 => self.on_token(values.pop(), to),
            // The connection ended between the two: its reply is in no token.
            1 if asks => (self.at, self.has_gap) = (Some(to.clone()), true),
            _ => {}
        }
        match (failure, values.pop()) {
            (_, Some(value)) => value.check(),
            (
                Some(Error::Lost {
                    maybe_done: false, ..
                }),
                None,
            ) if !asks => Err(lost()),
            (Some(error), None) => Err(error),
            (None, None) => Ok(Value::Nil),
        }
    }

    fn on_token(&mut self, value: Option<Value>, at: &Addr) {
        self.has_gap = false;
        match value.map(Value::to::<Vec<u8>>) {
            Some(Ok(token)) => (self.seen, self.at) = (Seen::Token(token), Some(at.clone())),
            // An unknown command: another server.
            Some(Err(Error::Server(error))) if error.code() == "ERR" => self.seen = Seen::Unsaid,
            _ => (self.at, self.has_gap) = (Some(at.clone()), true),
        }
    }

    /// A token of what the session has seen, for [`Session::resume`] in another process, or `SESSION RESUME` of any client.
    pub fn seen(&self) -> Option<&[u8]> {
        match &self.seen {
            Seen::Token(token) => Some(token),
            Seen::Nothing | Seen::Unsaid => None,
        }
    }

    /// Goes on where another session was when it had this token; without bytes, from the beginning. What this one has seen before
    /// is not counted.
    pub fn resume(&mut self, token: impl ToArg) {
        let token = token.to_arg();
        (self.at, self.has_gap) = (None, false);
        self.seen = if token.is_empty() {
            Seen::Nothing
        } else {
            Seen::Token(token)
        };
    }

    pub async fn query<T: FromValue>(&mut self, command: Cmd) -> Result<T> {
        self.run(command).await?.to()
    }

    /// Drops the session's connections and what it has seen: the promises start again. Tokens of keys stay.
    pub fn renew(&mut self) {
        self.held.clear();
        (self.at, self.seen, self.has_gap) = (None, Seen::Nothing, false);
    }

    /// All values of a key at `LEVEL causal`; the session has seen them then.
    pub async fn causal_get<T: FromValue>(&mut self, key: impl ToArg) -> Result<Siblings<T>> {
        let key = key.to_arg();
        let get = cmd("CAUSAL.GET").arg(&key);
        let mut parts: Vec<Value> = self.client.run(get).await?.to()?;
        if parts.is_empty() {
            return Err(Error::Convert {
                wanted: "a token and values",
                got: "an empty array".into(),
            });
        }
        let token: Vec<u8> = parts.remove(0).to()?;
        self.tokens.put(key, token.clone());
        let values = parts.into_iter().map(T::from_value);
        Ok(Siblings {
            values: values.collect::<Result<_>>()?,
            token,
        })
    }

    /// Replaces what the session has seen of the key.
    pub async fn causal_set(&mut self, key: impl ToArg, value: impl ToArg) -> Result<()> {
        let key = key.to_arg();
        let seen = self.token(&key).unwrap_or_default().to_vec();
        let set = cmd("CAUSAL.SET").arg(&key).arg(seen).arg(value);
        let token = set.query(&self.client).await?;
        self.tokens.put(key, token);
        Ok(())
    }

    /// Deletes what the session has seen of the key; false where nothing of that was there.
    pub async fn causal_delete(&mut self, key: impl ToArg) -> Result<bool> {
        let key = key.to_arg();
        let seen = self.token(&key).unwrap_or_default().to_vec();
        cmd("CAUSAL.DEL")
            .arg(&key)
            .arg(seen)
            .query(&self.client)
            .await
    }

    /// What the session has seen of a key.
    pub fn token(&self, key: impl ToArg) -> Option<&[u8]> {
        self.tokens.by_key.get(&key.to_arg()).map(Vec::as_slice)
    }

    /// Takes over a token from another session, such as of a request that continues in another process.
    pub fn set_token(&mut self, key: impl ToArg, token: impl ToArg) {
        self.tokens.put(key.to_arg(), token.to_arg());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_bounded_and_the_first_goes_first() {
        let mut tokens = Tokens::default();
        for n in 0..TOKENS as u32 + 3 {
            tokens.put(n.to_be_bytes().to_vec(), vec![1]);
            tokens.put(n.to_be_bytes().to_vec(), vec![2]);
        }
        assert_eq!((tokens.by_key.len(), tokens.order.len()), (TOKENS, TOKENS));
        assert!(!tokens.by_key.contains_key(&2u32.to_be_bytes()[..]));
        assert_eq!(tokens.by_key.get(&3u32.to_be_bytes()[..]), Some(&vec![2]));
    }
}
