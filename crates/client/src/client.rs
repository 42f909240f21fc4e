//! The client: commands, and the loop of attempts that gets them done.

use crate::command::{Cmd, cmd};
use crate::config::{Addr, Builder, Config};
use crate::connection::Batch;
use crate::error::{Error, Result};
use crate::node::{Held, Node};
use crate::retry::{self, Next};
use crate::shape::{ConnectionKind, Shape};
use crate::topology::Topology;
use crate::value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// What stands for no limit: longer than any process runs.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86400);

/// A client of one node, of several that serve the same data, or of a cluster. Clones share
/// everything.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) config: Arc<Config>,
    pub(crate) topology: Topology,
    retries: AtomicU64,
    moved: AtomicU64,
    asked: AtomicU64,
    timeouts: AtomicU64,
}

/// Counts since the client began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Attempts beyond a command's first.
    pub retries: u64,
    /// `MOVED` that were followed.
    pub moved: u64,
    /// `ASK` that were followed.
    pub asked: u64,
    /// Attempts without a reply in time.
    pub timeouts: u64,
    /// Times that the map of slots was asked for.
    pub refreshes: u64,
    /// Push messages that came and were dropped.
    pub pushes: u64,
    /// Nodes that are known.
    pub nodes: u64,
}

/// What is to be done: one command, or several in `MULTI` and `EXEC`.
#[derive(Clone, Copy)]
pub(crate) enum Job<'a> {
    One(&'a Cmd),
    Atomic(&'a [Cmd]),
}

impl Client {
    /// Connects to the URL that [`Builder::new`] describes.
    pub async fn connect(url: &str) -> Result<Self> {
        Builder::new(url)?.connect().await
    }

    pub(crate) async fn start(config: Config) -> Result<Self> {
        let config = Arc::new(config);
        let topology = Topology::new(config.clone());
        topology.begin().await?;
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                topology,
                retries: AtomicU64::new(0),
                moved: AtomicU64::new(0),
                asked: AtomicU64::new(0),
                timeouts: AtomicU64::new(0),
            }),
        })
    }

    /// Sends a command to the node that has its key, and again where it has to be; see the
    /// [crate's page](crate) for when. Commands without a key go to one node, whichever.
    pub async fn run(&self, command: Cmd) -> Result<Value> {
        let shape = command.shape();
        let limit = match check(&command, shape, self.is_cluster())? {
            ConnectionKind::Alone(None) => FOREVER,
            ConnectionKind::Alone(Some(wait)) => wait.min(FOREVER) + self.inner.config.timeout,
            _ => self.inner.config.timeout,
        };
        let limit = command.own_timeout().unwrap_or(limit);
        self.attempts(
            Job::One(&command),
            shape,
            Instant::now() + limit.min(FOREVER),
        )
        .await
    }

    /// Sends a command to this node and no other, once: `INFO`, `SCAN` and others that tell of a
    /// node. [`Client::nodes`] says which there are.
    pub async fn run_on(&self, node: &Addr, command: Cmd) -> Result<Value> {
        let shape = command.shape();
        check(&command, shape, false)?;
        let node = self.inner.topology.node(node);
        let limit = command
            .own_timeout()
            .unwrap_or(self.inner.config.attempt_timeout);
        let deadline = Instant::now() + limit.min(FOREVER);
        self.inner
            .attempt(Job::One(&command), shape, &node, false, deadline)
            .await
    }

    /// The nodes that are known: those of the URL, and in a cluster those that were learned of.
    pub fn nodes(&self) -> Vec<Addr> {
        self.inner.topology.known()
    }

    /// Whether the server says that it is one of a cluster.
    pub fn is_cluster(&self) -> bool {
        self.inner.topology.is_cluster()
    }

    pub fn stats(&self) -> Stats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (refreshes, pushes) = self.inner.topology.counts();
        Stats {
            retries: count(&self.inner.retries),
            moved: count(&self.inner.moved),
            asked: count(&self.inner.asked),
            timeouts: count(&self.inner.timeouts),
            refreshes,
            pushes,
            nodes: self.nodes().len() as u64,
        }
    }

    /// Tries until it is done, refused for good, or over.
    pub(crate) async fn attempts(
        &self,
        job: Job<'_>,
        shape: Shape<'_>,
        deadline: Instant,
    ) -> Result<Value> {
        let inner = &self.inner;
        // Where it failed, so that another is tried first.
        let mut avoid: Vec<Addr> = Vec::new();
        let mut asked: Option<Addr> = None;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let asking = asked.is_some();
            let node = match asked.take() {
                Some(addr) => inner.topology.node(&addr),
                None => inner.topology.choose(&shape, &avoid),
            };
            let sent = inner.attempt(job, shape, &node, asking, deadline).await;
            let error = match sent {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if matches!(error, Error::Timeout { .. }) {
                inner.timeouts.fetch_add(1, Ordering::Relaxed);
            }
            let next = retry::decide(&error, node.addr(), shape.repeatable);
            if next == Next::Return {
                return Err(error);
            }
            if attempt >= inner.config.attempts || Instant::now() >= deadline {
                return Err(Error::GaveUp {
                    attempts: attempt,
                    last: Box::new(error),
                });
            }
            inner.retries.fetch_add(1, Ordering::Relaxed);
            asked = inner
                .prepare(next, &node, &mut avoid, attempt, deadline)
                .await;
        }
    }
}

/// Whether the command may be sent on a shared connection.
fn check(command: &Cmd, shape: Shape<'_>, cluster: bool) -> Result<ConnectionKind> {
    let refused = |text: &str| Err(Error::Refused(text.into()));
    if command.args_len() == 0 {
        return refused("a command without a name");
    }
    if cluster && command.is("SCAN") {
        return refused(
            "SCAN is of one node, and so are its cursors: use `run_on` with each of `nodes()`",
        );
    }
    match shape.kind {
        ConnectionKind::Held => refused(
            "this changes what later commands on the connection mean: use `Client::dedicated`",
        ),
        ConnectionKind::Never => refused(
            "this client does not subscribe or change protocols, and logs in by its settings",
        ),
        kind => Ok(kind),
    }
}

impl Inner {
    /// Makes ready for the next attempt; returns the node to ask, if it is one for this once.
    pub(crate) async fn prepare(
        &self,
        next: Next,
        node: &Arc<Node>,
        avoid: &mut Vec<Addr>,
        attempt: u32,
        deadline: Instant,
    ) -> Option<Addr> {
        let pause = retry::backoff(attempt, self.topology.unit());
        match next {
            Next::Moved(slot, to) => {
                self.moved.fetch_add(1, Ordering::Relaxed);
                avoid.retain(|addr| *addr != to);
                self.topology.moved(slot, &to);
                self.topology.refresh_later(&to);
                // Nodes that redirect clients to each other in a circle must not be overloaded.
                if attempt > 3 {
                    sleep(pause, deadline).await;
                }
            }
            Next::Ask(to) => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if attempt > 3 {
                    sleep(pause, deadline).await;
                }
                return Some(to);
            }
            Next::Later | Next::Return => sleep(pause, deadline).await,
            Next::Elsewhere => {
                if !avoid.contains(node.addr()) {
                    avoid.push(node.addr().clone());
                }
                sleep(pause, deadline).await;
                let refresh = self.topology.refresh(avoid);
                // Late is the same as failed: the next attempt finds out.
                let _ = tokio::time::timeout_at(deadline, refresh).await;
            }
        }
        None
    }

    /// One attempt at one node. An error reply is an error.
    pub(crate) async fn attempt(
        &self,
        job: Job<'_>,
        shape: Shape<'_>,
        node: &Arc<Node>,
        asking: bool,
        deadline: Instant,
    ) -> Result<Value> {
        let soon = Instant::now() + self.config.attempt_timeout;
        match (job, shape.kind) {
            (Job::One(command), ConnectionKind::Alone(wait)) => {
                let mut held = node.hold(soon.min(deadline)).await?;
                let wait = wait.map_or(FOREVER, |wait| wait.min(FOREVER));
                let until = deadline.min(soon + wait);
                let values = held.send(bytes(command, asking), 1 + usize::from(asking), until);
                last(values.await)
            }
            (Job::One(command), _) => {
                let connection = node.shared().await?;
                let replies = 1 + usize::from(asking);
                let sent = connection.send(bytes(command, asking), replies, soon.min(deadline));
                last(sent.await)
            }
            (Job::Atomic(commands), _) => {
                let mut held = node.hold(soon.min(deadline)).await?;
                atomic(&mut held, commands, soon.min(deadline)).await
            }
        }
    }
}

impl Held {
    /// Sends; a caller that gives up before the replies arrive leaves a connection that is not reused.
    pub(crate) async fn send(&mut self, bytes: Vec<u8>, replies: usize, until: Instant) -> Batch {
        let was_clean = std::mem::replace(&mut self.clean, false);
        let batch = self.connection.send(bytes, replies, until).await;
        self.clean = was_clean && batch.failure.is_none();
        batch
    }
}

fn bytes(command: &Cmd, asking: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if asking {
        cmd("ASKING").encode(&mut out);
    }
    command.encode(&mut out);
    out
}

pub(crate) fn last(batch: Batch) -> Result<Value> {
    match (batch.failure, batch.values.into_iter().last()) {
        (Some(error), _) => Err(error),
        (None, Some(value)) => value.check(),
        (None, None) => Ok(Value::Nil),
    }
}

/// Sends `MULTI`, the commands and `EXEC` at once. If a command is refused when it is queued, its
/// error is returned instead of `EXECABORT`.
async fn atomic(held: &mut Held, commands: &[Cmd], until: Instant) -> Result<Value> {
    let mut out = Vec::new();
    cmd("MULTI").encode(&mut out);
    commands.iter().for_each(|command| command.encode(&mut out));
    cmd("EXEC").encode(&mut out);
    let batch = held.send(out, commands.len() + 2, until).await;
    if let Some(error) = batch.failure {
        return Err(error);
    }
    let mut values = batch.values;
    match values.pop() {
        Some(Value::Error(aborted)) => {
            let first = values.into_iter().find_map(|value| value.check().err());
            let error = first.unwrap_or_else(|| aborted.clone().into());
            // Within a transaction there is no asking: it waits until the slot has moved.
            match error.code() {
                Some("ASK") => Err(crate::ServerError::new(b"TRYAGAIN the slot is moving").into()),
                _ if aborted.code() == "EXECABORT" => Err(error),
                _ => Err(aborted.into()),
            }
        }
        value => Ok(value.unwrap_or(Value::Nil)),
    }
}

async fn sleep(pause: Duration, deadline: Instant) {
    tokio::time::sleep_until((Instant::now() + pause).min(deadline)).await;
}
