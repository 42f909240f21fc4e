//! Transactions that are tried again until they are committed.

use crate::client::Client;
use crate::command::cmd;
use crate::dedicated::Dedicated;
use crate::error::{Error, Result};
use crate::retry::{self, Next};
use tokio::time::Instant;

/// How an attempt has ended without success.
struct Failed<T> {
    error: Error,
    /// Nothing was done, and another attempt may succeed.
    again: bool,
    /// What `body` has returned, if it came to the end.
    done: Option<T>,
}

/// Makes attempts until one is committed: [`Client::transact`], and with a token [`Client::transact_once`].
pub(crate) async fn run<T>(
    client: &Client,
    (key, token): (&[u8], Option<&[u8]>),
    mut body: impl AsyncFnMut(&mut Dedicated) -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + client.inner.config.timeout;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut own = client.dedicated(key).await?;
        let Failed { error, again, done } = match own.attempt(token, &mut body).await {
            Ok(done) => return Ok(done),
            Err(failed) => failed,
        };
        drop(own);
        if let (Some(token), Some(done), true) = (token, done, error.maybe_done()) {
            return match is_committed(client, token).await {
                Ok(true) => Ok(done),
                Ok(false) => Err(Error::Undone {
                    because: Box::new(error),
                }),
                Err(_) => Err(error),
            };
        }
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

/// The outcome of a token, which is decided then. To ask twice does no harm.
async fn is_committed(client: &Client, token: &[u8]) -> Result<bool> {
    let asks = cmd("OUTCOME").arg(token).idempotent();
    let outcome: String = asks.query(client).await?;
    Ok(outcome == "COMMITTED")
}

impl Dedicated {
    async fn attempt<T>(
        &mut self,
        token: Option<&[u8]>,
        body: &mut impl AsyncFnMut(&mut Dedicated) -> Result<T>,
    ) -> std::result::Result<T, Failed<T>> {
        let done = match self.begin("serializable").await {
            Ok(()) => body(self).await,
            Err(error) => Err(error),
        };
        // Before `COMMIT` nothing is done, whatever becomes of the connection.
        let done = done.map_err(|error| self.failed(error.undone(), true))?;
        if !self.is_open() {
            return Ok(done);
        }
        let committed = match token {
            Some(token) => self.commit_as(token).await,
            None => self.commit().await,
        };
        match committed {
            Ok(Some(_)) => Ok(done),
            Ok(None) => Err(Failed {
                error: Error::Conflict,
                again: true,
                done: None,
            }),
            Err(error) => Err(Failed {
                done: Some(done),
                ..self.failed(error, false)
            }),
        }
    }

    fn failed<T>(&self, error: Error, repeatable: bool) -> Failed<T> {
        let next = retry::decide(&error, self.addr(), repeatable);
        Failed {
            again: next != Next::Return,
            error,
            done: None,
        }
    }
}
