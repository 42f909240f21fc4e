//! Many commands at once.

use crate::client::{Client, Job};
use crate::command::Cmd;
use crate::connection::Batch;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::retry::{self, Next};
use crate::shape::ConnectionKind;
use crate::value::{FromValue, Value};
use rufous_base::slot::slot_of;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Commands that are sent without waiting for one another's replies.
///
/// They are independent: other clients' commands may run between them, and one may fail while the
/// others are executed. In a cluster each node gets its part. Commands of one slot run in their order; if a
/// node refuses one temporarily, or is lost, it is retried after the others.
/// [`Pipeline::atomic`] executes all or none.
///
/// ```no_run
/// # async fn example(client: rufous_client::Client) -> rufous_client::Result<()> {
/// use rufous_client::{Pipeline, cmd};
/// let replies = Pipeline::new()
///     .push(cmd("INCR").arg("hits"))
///     .push(cmd("EXPIRE").arg("hits").arg(60))
///     .run(&client)
///     .await;
/// for reply in replies {
///     let number: i64 = reply?.to()?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    commands: Vec<Cmd>,
}

impl Pipeline {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(mut self, command: Cmd) -> Self {
        self.commands.push(command);
        self
    }

    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Sends all; as many results as commands, in their order.
    pub async fn run(self, client: &Client) -> Vec<Result<Value>> {
        let deadline = Instant::now() + client.inner.config.timeout;
        let mut results: Vec<Option<Result<Value>>> = vec![None; self.commands.len()];
        let mut parts: HashMap<String, (Arc<Node>, Vec<usize>)> = HashMap::new();
        for (at, command) in self.commands.iter().enumerate() {
            let shape = command.shape();
            if shape.kind != ConnectionKind::Shared || command.args_len() == 0 {
                let text = "a pipeline takes no command that waits or binds a connection";
                results[at] = Some(Err(Error::Refused(text.into())));
                continue;
            }
            let node = client.inner.topology.choose(&shape, &[]);
            let part = parts.entry(node.addr().to_string());
            part.or_insert_with(|| (node, Vec::new())).1.push(at);
        }
        let soon = deadline.min(Instant::now() + client.inner.config.attempt_timeout);
        let mut tasks = JoinSet::new();
        for (node, part) in parts.into_values() {
            let mut bytes = Vec::new();
            part.iter()
                .for_each(|&at| self.commands[at].encode(&mut bytes));
            tasks.spawn(async move {
                let batch = match node.shared().await {
                    Ok(connection) => connection.send(bytes, part.len(), soon).await,
                    Err(error) => Batch {
                        values: Vec::new(),
                        failure: Some(error),
                    },
                };
                (node, part, batch)
            });
        }
        let mut again = Vec::new();
        while let Some(Ok((node, part, batch))) = tasks.join_next().await {
            let failure = batch.failure;
            let mut values = batch.values.into_iter();
            for at in part {
                let result = match (values.next(), &failure) {
                    (Some(value), _) => value.check(),
                    (None, Some(error)) => Err(error.clone()),
                    (None, None) => Ok(Value::Nil),
                };
                if let Err(error) = &result {
                    let repeatable = self.commands[at].shape().repeatable;
                    if retry::decide(error, node.addr(), repeatable) != Next::Return {
                        again.push(at);
                    }
                }
                results[at] = Some(result);
            }
        }
        again.sort_unstable();
        for at in again {
            let command = &self.commands[at];
            let job = Job::One(command);
            results[at] = Some(client.attempts(job, command.shape(), deadline).await);
        }
        let filled = results.into_iter();
        filled
            .map(|result| result.unwrap_or(Ok(Value::Nil)))
            .collect()
    }

    /// As [`Pipeline::run`], for replies of one type; the first error is the result.
    pub async fn query<T: FromValue>(self, client: &Client) -> Result<Vec<T>> {
        let results = self.run(client).await.into_iter();
        results.map(|result| result?.to()).collect()
    }

    /// Sends all commands in `MULTI` and `EXEC` on a held connection: other clients see all of them or
    /// none. In a cluster all keys must be in the first one's slot. A command that fails while the others
    /// are executed is a [`Value::Error`] among the replies.
    pub async fn atomic(self, client: &Client) -> Result<Vec<Value>> {
        let mut shapes = self.commands.iter().map(Cmd::shape);
        if shapes.any(|shape| matches!(shape.kind, ConnectionKind::Held | ConnectionKind::Never)) {
            let text = "a transaction takes no command that changes the connection";
            return Err(Error::Refused(text.into()));
        }
        let keyed = self
            .commands
            .iter()
            .find(|command| command.shape().key.is_some());
        let Some(first) = keyed.or(self.commands.first()) else {
            return Ok(Vec::new());
        };
        let mut shape = first.shape();
        let slots = self
            .commands
            .iter()
            .filter_map(|command| command.shape().key);
        let slot = shape.key.map(slot_of);
        if client.is_cluster() && slots.map(slot_of).any(|other| Some(other) != slot) {
            let text = "the keys of a transaction in a cluster must be of one slot";
            return Err(Error::Refused(text.into()));
        }
        // Commands that wait do not wait within a transaction.
        shape.kind = ConnectionKind::Held;
        shape.reads = false;
        shape.repeatable = self
            .commands
            .iter()
            .all(|command| command.shape().repeatable);
        let deadline = Instant::now() + client.inner.config.timeout;
        client
            .attempts(Job::Atomic(&self.commands), shape, deadline)
            .await?
            .to()
    }
}
