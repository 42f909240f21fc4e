//! Transactions that are tried again until they are committed.

use crate::client::Client;
use crate::dedicated::Dedicated;
use crate::error::{Error, Result};
use crate::retry::{self, Next};
use tokio::time::Instant;

/// How an attempt has ended without success.
struct Failed {
    error: Error,
    /// Nothing was done, and another attempt may succeed.
    again: bool,
}

/// Makes attempts until one is committed: [`Client::transact`].
pub(crate) async fn run<T>(
    client: &Client,
    key: &[u8],
    mut body: impl AsyncFnMut(&mut Dedicated) -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + client.inner.config.timeout;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut own = client.dedicated(key).await?;
        let Failed { error, again } = match own.attempt(&mut body).await {
            Ok(done) => return Ok(done),
            Err(failed) => failed,
        };
        drop(own);
        if !again {
            return Err(error);
        }
        let pause = retry::backoff(attempts, client.inner.topology.unit());
        if Instant::now() + pause >= deadline {
            let last = Box::new(error);
            return Err(Error::GaveUp { attempts, last });
        }
        tokio::time::sleep(pause).await;
    }
}

impl Dedicated {
    async fn attempt<T>(
        &mut self,
        body: &mut impl AsyncFnMut(&mut Dedicated) -> Result<T>,
    ) -> std::result::Result<T, Failed> {
        let done = match self.begin("serializable").await {
            Ok(()) => body(self).await,
            Err(error) => Err(error),
        };
        // Before `COMMIT` nothing is done, whatever becomes of the connection.
        let done = done.map_err(|error| self.failed(undone(error), true))?;
        if !self.is_open() {
            return Ok(done);
        }
        match self.commit().await {
            Ok(Some(_)) => Ok(done),
            Ok(None) => Err(Failed {
                error: Error::Conflict,
                again: true,
            }),
            Err(error) => Err(self.failed(error, false)),
        }
    }

    fn failed(&self, error: Error, repeatable: bool) -> Failed {
        let next = retry::decide(&error, self.addr(), repeatable);
        Failed {
            again: next != Next::Return,
            error,
        }
    }
}

/// An error of a command that is not committed.
fn undone(error: Error) -> Error {
    match error {
        Error::Lost { node, .. } => Error::Lost {
            node,
            maybe_done: false,
        },
        Error::Timeout { node, .. } => Error::Timeout {
            node,
            maybe_done: false,
        },
        error => error,
    }
}
