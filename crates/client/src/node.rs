//! One node: its shared connection, and its held ones.

use crate::config::{Addr, Config};
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::greeting;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub(crate) struct Node {
    addr: Addr,
    config: Arc<Config>,
    shared: tokio::sync::Mutex<Shared>,
    /// Held connections that are not in use.
    idle: Mutex<Vec<Arc<Connection>>>,
    permits: Arc<Semaphore>,
    pushes: Arc<AtomicU64>,
    /// What the last greeting said.
    cluster: AtomicBool,
}

#[derive(Default)]
struct Shared {
    connection: Option<Arc<Connection>>,
    /// When connecting last failed, and why.
    failed: Option<(Instant, Error)>,
}

impl Node {
    pub(crate) fn new(addr: Addr, config: Arc<Config>, pushes: Arc<AtomicU64>) -> Self {
        Self {
            addr,
            shared: tokio::sync::Mutex::default(),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(config.pool)),
            config,
            pushes,
            cluster: AtomicBool::new(false),
        }
    }

    pub(crate) fn addr(&self) -> &Addr {
        &self.addr
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.cluster.load(Ordering::Relaxed)
    }

    /// Whether there is a living connection at this moment.
    pub(crate) fn is_connected(&self) -> bool {
        match self.shared.try_lock() {
            Ok(shared) => shared.connection.as_ref().is_some_and(|c| !c.is_closed()),
            // The lock is taken by a task that is connecting, which does not mean that the connection ended.
            Err(_) => true,
        }
    }

    pub(crate) async fn shared(&self) -> Result<Arc<Connection>> {
        let asked = Instant::now();
        let mut shared = self.shared.lock().await;
        if let Some(connection) = &shared.connection
            && !connection.is_closed()
        {
            return Ok(connection.clone());
        }
        // A task that waited for another task's failed attempt does not repeat the attempt.
        if let Some((when, error)) = &shared.failed
            && *when >= asked
        {
            return Err(error.clone());
        }
        shared.connection = None;
        match self.connect().await {
            Ok(connection) => {
                shared.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                shared.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// A held connection: an idle one, or a new one if the pool has room.
    pub(crate) async fn hold(self: &Arc<Self>, deadline: Instant) -> Result<Held> {
        let permit = tokio::time::timeout_at(deadline, self.permits.clone().acquire_owned());
        let permit = match permit.await {
            Ok(Ok(permit)) => permit,
            _ => {
                return Err(Error::Timeout {
                    node: format!("the pool of {}", self.addr),
                    maybe_done: false,
                });
            }
        };
        let idle = loop {
            let found = self.idle().pop();
            match found {
                Some(connection) if connection.is_closed() => {}
                other => break other,
            }
        };
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Held {
            connection,
            node: self.clone(),
            clean: true,
            _permit: permit,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Arc<Connection>> {
        let deadline = Instant::now() + self.config.connect_timeout;
        let late = || Error::Connect {
            node: self.addr.to_string(),
            reason: "no answer within the connect time-out".into(),
        };
        let opened = Connection::open(&self.addr, &self.config, self.pushes.clone());
        let opened = tokio::time::timeout_at(deadline, opened).await;
        let connection = opened.map_err(|_| late())??;
        let greeted = greeting::greet(&connection, &self.addr, &self.config, deadline);
        self.cluster.store(greeted.await?, Ordering::Relaxed);
        Ok(Arc::new(connection))
    }
}

/// A connection of one's own. It goes back to the pool unless it has been made unfit for others.
pub(crate) struct Held {
    pub(crate) connection: Arc<Connection>,
    pub(crate) node: Arc<Node>,
    /// The last user left no state on it. False also while a request is in transit, since its replies
    /// would be taken for those of the next user.
    pub(crate) clean: bool,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.clean && !self.connection.is_closed() {
            self.node.idle().push(self.connection.clone());
        } else {
            self.connection.close();
        }
    }
}
