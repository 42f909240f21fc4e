//! A connection of one's own.

use crate::client::{Client, last};
use crate::command::{Cmd, ToArg, cmd};
use crate::config::Addr;
use crate::error::{Error, Result};
use crate::node::Held;
use crate::retry::{self, Next};
use crate::shape::{ConnectionKind, Shape};
use crate::transact;
use crate::value::{FromValue, Value};
use std::time::Duration;
use tokio::time::Instant;

/// A held connection, for state that lasts from one command to the next: `WATCH` and `MULTI`,
/// `BEGIN … COMMIT`, `SELECT`. Nothing is retried here, and in a cluster the connection stays with
/// its node: an error `MOVED` says that another node has the key, and that another connection is needed.
///
/// When it is dropped it returns to the pool, or is closed if a transaction is open, if keys are
/// watched, or if another database was selected.
///
/// ```no_run
/// # async fn example(client: rufous_client::Client) -> rufous_client::Result<()> {
/// use rufous_client::cmd;
/// let mut own = client.dedicated("cart:7").await?;
/// own.begin("item-cut").await?;
/// let items: i64 = own.query(cmd("HINCRBY").arg("cart:7").arg("apple").arg(1)).await?;
/// if items > 10 {
///     own.rollback().await?;
/// } else {
///     own.commit().await?;
/// }
/// # Ok(()) }
/// ```
pub struct Dedicated {
    held: Held,
    client: Client,
    timeout: Duration,
    /// A transaction is open or something is watched.
    open: bool,
    /// For good.
    spoilt: bool,
}

impl Client {
    /// Takes a connection to the node that has `key`. Where there is no cluster any key will do.
    pub async fn dedicated(&self, key: impl ToArg) -> Result<Dedicated> {
        let key = key.to_arg();
        let shape = Shape {
            key: Some(&key),
            reads: false,
            repeatable: true,
            kind: ConnectionKind::Held,
        };
        let held = self.hold(shape).await?;
        Ok(Dedicated {
            held,
            client: self.clone(),
            timeout: self.inner.config.timeout,
            open: false,
            spoilt: false,
        })
    }

    /// Reads, decides and writes in a transaction of level serializable: `body` gets the connection after `BEGIN`, and `COMMIT` follows
    /// it. If another client has changed what it has read, or a node refuses for a while, all of it is tried again, after a short
    /// random pause that grows, within the time-out of the client. An error of `body` rolls back, and so does `body` itself with
    /// [`Dedicated::rollback`]. With an error for which [`Error::maybe_done`] is true the transaction may be committed.
    ///
    /// The connection is to the node that has `key`. In a cluster, keys of all nodes may be used where the client's URL is of a
    /// plain port; at a redirecting one all keys need the slot of `key`.
    ///
    /// ```no_run
    /// # async fn example(client: rufous_client::Client) -> rufous_client::Result<()> {
    /// use rufous_client::cmd;
    /// let paid = client.transact("account:ann", async |own| {
    ///     let balance: Option<i64> = own.query(cmd("GET").arg("account:ann")).await?;
    ///     if balance.unwrap_or(0) < 30 {
    ///         own.rollback().await?;
    ///         return Ok(false);
    ///     }
    ///     own.run(cmd("DECRBY").arg("account:ann").arg(30)).await?;
    ///     own.run(cmd("INCRBY").arg("account:bob").arg(30)).await?;
    ///     Ok(true)
    /// }).await?;
    /// # Ok(()) }
    /// ```
    pub async fn transact<T>(
        &self,
        key: impl ToArg,
        body: impl AsyncFnMut(&mut Dedicated) -> Result<T>,
    ) -> Result<T> {
        transact::run(self, (&key.to_arg(), None), body).await
    }

    /// As [`Client::transact`], with a token: a key that no other transaction has, at which the server keeps the outcome for a day.
    /// If the reply to `COMMIT` is lost, the client asks for the outcome. So with an error the transaction was not executed,
    /// unless [`Error::maybe_done`] is true because that was not answered within the time-out either. Then, or when
    /// the application has started again, `OUTCOME token` tells it. A token is used once, also by a transaction that was given up.
    ///
    /// An error of a command at `COMMIT` undoes the transaction. At a redirecting port the token needs the slot of `key`.
    pub async fn transact_once<T>(
        &self,
        key: impl ToArg,
        token: impl ToArg,
        body: impl AsyncFnMut(&mut Dedicated) -> Result<T>,
    ) -> Result<T> {
        let (key, token) = (key.to_arg(), token.to_arg());
        transact::run(self, (&key, Some(&token)), body).await
    }

    /// A connection to the node that has the shape's key; another node is tried if there is one.
    pub(crate) async fn hold(&self, shape: Shape<'_>) -> Result<Held> {
        let deadline = Instant::now() + self.inner.config.timeout;
        let mut avoid = Vec::new();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let node = self.inner.topology.choose(&shape, &avoid);
            let error = match node.hold(deadline).await {
                Ok(held) => return Ok(held),
                Err(error) => error,
            };
            let next = retry::decide(&error, node.addr(), true);
            let over = Instant::now() >= deadline || attempt >= self.inner.config.attempts;
            if next != Next::Elsewhere || over {
                return Err(error);
            }
            avoid.push(node.addr().clone());
            tokio::time::sleep(retry::backoff(attempt, self.inner.topology.unit())).await;
            self.inner.topology.refresh(&avoid).await;
        }
    }
}

impl Dedicated {
    /// Sends one command, once.
    pub async fn run(&mut self, command: Cmd) -> Result<Value> {
        let kind = command.shape().kind;
        if kind == ConnectionKind::Never || command.args_len() == 0 {
            let text = "this client does not subscribe or change protocols";
            return Err(Error::Refused(text.into()));
        }
        // Before it is sent: it may be executed although its reply never arrives.
        let opens = ["MULTI", "WATCH", "BEGIN"]
            .iter()
            .any(|name| command.is(name));
        let spoils = ["SELECT", "ASKING", "READONLY", "READWRITE"];
        self.open |= opens;
        self.spoilt |= spoils.iter().any(|name| command.is(name));
        self.held.clean = false;
        let limit = match (command.own_timeout(), kind) {
            (Some(own), _) => Some(own),
            (None, ConnectionKind::Alone(None)) => None,
            (None, ConnectionKind::Alone(Some(wait))) => wait.checked_add(self.timeout),
            (None, _) => Some(self.timeout),
        };
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(365 * 86400));
        let sent = self.held.connection.send(command.encoded(), 1, until).await;
        let whole = sent.failure.is_none();
        let result = last(sent);
        let ends = ["EXEC", "DISCARD", "COMMIT", "ROLLBACK", "UNWATCH"];
        // `ROLLBACK TO` a savepoint ends nothing.
        let goes_on = command.is("ROLLBACK") && command.args_len() > 1;
        if result.is_ok() && !goes_on && ends.iter().any(|name| command.is(name)) {
            self.open = false;
        }
        self.held.clean = whole && !self.open && !self.spoilt;
        self.learn(&result);
        result
    }

    pub async fn query<T: FromValue>(&mut self, command: Cmd) -> Result<T> {
        self.run(command).await?.to()
    }

    /// Whether a transaction is open, or something is watched.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    pub(crate) fn addr(&self) -> &Addr {
        self.held.node.addr()
    }

    /// Opens a transaction of a level: `serializable`, `item-cut`, `read-committed` or `read-uncommitted`. With `None` the
    /// keyspaces of its keys give the level. See also [`Client::transact`].
    pub async fn begin<'l>(&mut self, level: impl Into<Option<&'l str>>) -> Result<()> {
        self.query(cmd("BEGIN").args(level.into())).await
    }

    /// The replies that count, or `None` where a watched key was touched and nothing was done.
    pub async fn commit(&mut self) -> Result<Option<Vec<Value>>> {
        self.query(cmd("COMMIT")).await
    }

    /// As [`Dedicated::commit`], with a token at which the outcome is kept; see [`Client::transact_once`].
    pub async fn commit_as(&mut self, token: impl ToArg) -> Result<Option<Vec<Value>>> {
        self.query(cmd("COMMIT").arg("TOKEN").arg(token)).await
    }

    pub async fn rollback(&mut self) -> Result<()> {
        self.query(cmd("ROLLBACK")).await
    }

    pub async fn watch<K: ToArg>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<()> {
        self.query(cmd("WATCH").args(keys)).await
    }

    pub async fn multi(&mut self) -> Result<()> {
        self.query(cmd("MULTI")).await
    }

    /// The replies, or `None` where a watched key was touched and nothing was done.
    pub async fn exec(&mut self) -> Result<Option<Vec<Value>>> {
        self.query(cmd("EXEC")).await
    }

    /// Applies a refusal's information on slots to the map, for later requests.
    fn learn(&self, result: &Result<Value>) {
        if let Err(error) = result
            && let Next::Moved(slot, to) = retry::decide(error, self.held.node.addr(), false)
        {
            self.client.inner.topology.moved(slot, &to);
        }
    }
}
