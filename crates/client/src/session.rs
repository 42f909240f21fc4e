//! Sessions: what a keyspace's level promises to one sequence of operations.

use crate::client::{Client, last};
use crate::command::{Cmd, ToArg, cmd};
use crate::config::Addr;
use crate::error::{Error, Result};
use crate::node::Held;
use crate::shape::ConnectionKind;
use crate::value::{FromValue, Value};
use std::collections::{HashMap, VecDeque};
use tokio::time::Instant;

/// Keys whose tokens a session keeps; the oldest one is forgotten first.
const TOKENS: usize = 4096;

/// One sequence of operations, to which keyspaces' levels make their promises.
///
/// To a server a session is a connection, so a session holds connections of its own, one per node that it
/// has used, and the levels' promises to it last as long as these. When one is lost, an operation
/// returns [`Error::SessionLost`] instead of continuing silently; [`Session::renew`]
/// starts again. Servers cannot yet hand a session's state from one node to another.
///
/// At `LEVEL causal` *tokens* carry what was seen: [`Session::causal_get`], [`Session::causal_set`] and
/// [`Session::causal_delete`] keep them by key, so they hold on any connection and node, and across
/// `renew`. A write replaces what the session has read or written of the key, and nothing else.
///
/// ```no_run
/// # async fn example(client: rufous_client::Client) -> rufous_client::Result<()> {
/// let mut session = client.session();
/// let notes = session.causal_get::<String>("note:1").await?;
/// let agreed = notes.values.join("; ");
/// session.causal_set("note:1", agreed).await?;
/// # Ok(()) }
/// ```
pub struct Session {
    client: Client,
    held: HashMap<Addr, Held>,
    tokens: Tokens,
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
            tokens: Tokens::default(),
        }
    }
}

impl Session {
    /// Sends a command on the session's connection to the node that has its key, once.
    pub async fn run(&mut self, command: Cmd) -> Result<Value> {
        let shape = command.shape();
        if !matches!(shape.kind, ConnectionKind::Shared) || command.args_len() == 0 {
            let text = "a session takes no command that waits or binds a connection: use `Client::dedicated`";
            return Err(Error::Refused(text.into()));
        }
        // A level's promises hold at one replica: the owner, not whichever the lot falls on.
        let mut shape = shape;
        shape.reads = false;
        let chosen = self
            .client
            .inner
            .topology
            .choose(&shape, &[])
            .addr()
            .clone();
        if !self.held.contains_key(&chosen) {
            let mut held = self.client.hold(shape).await?;
            // The connection keeps what the session has seen: it must not be reused.
            held.clean = false;
            self.held.insert(held.node.addr().clone(), held);
        }
        // `hold` may have come to another node than was chosen, if that one is down.
        let at = match self.held.contains_key(&chosen) {
            true => chosen,
            false => self
                .client
                .inner
                .topology
                .choose(&shape, &[])
                .addr()
                .clone(),
        };
        let Some(held) = self.held.get(&at) else {
            return Err(Error::SessionLost {
                node: at.to_string(),
            });
        };
        let limit = command
            .own_timeout()
            .unwrap_or(self.client.inner.config.timeout);
        let until = Instant::now() + limit;
        match last(held.connection.send(command.encoded(), 1, until).await) {
            Err(Error::Lost {
                maybe_done: false, ..
            }) => Err(Error::SessionLost {
                node: at.to_string(),
            }),
            other => other,
        }
    }

    pub async fn query<T: FromValue>(&mut self, command: Cmd) -> Result<T> {
        self.run(command).await?.to()
    }

    /// Drops the session's connections. Tokens stay; the promises of other levels start again.
    pub fn renew(&mut self) {
        self.held.clear();
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
