//! The first requests of a connection: RESP3 if the server has it, authentication, the database.

use crate::command::{Cmd, cmd};
use crate::config::{Addr, Config, ReadFrom};
use crate::connection::Connection;
use crate::error::{Error, Result, ServerError};
use crate::value::Value;
use tokio::time::Instant;

/// Greets; returns whether the node is one of a cluster.
pub(crate) async fn greet(
    connection: &Connection,
    addr: &Addr,
    config: &Config,
    deadline: Instant,
) -> Result<bool> {
    let link = Link {
        connection,
        addr,
        deadline,
    };
    let cluster = match hello(&link, config).await? {
        Some(cluster) => cluster,
        None => resp2(&link, config).await?,
    };
    if cluster && config.db != 0 {
        let text = "a cluster has database 0 alone";
        return Err(Error::Config(text.into()));
    }
    if config.db != 0 {
        link.ask(&cmd("SELECT").arg(config.db)).await?.check()?;
    }
    if cluster && config.read_from == ReadFrom::AnyReplica {
        link.ask(&cmd("READONLY")).await?.check()?;
    }
    // Servers before 7.2 do not know it, and need not.
    let library = cmd("CLIENT SETINFO LIB-NAME").arg("rufous-client");
    link.ask(&library).await?;
    Ok(cluster)
}

struct Link<'a> {
    connection: &'a Connection,
    addr: &'a Addr,
    deadline: Instant,
}

impl Link<'_> {
    async fn ask(&self, command: &Cmd) -> Result<Value> {
        let batch = self
            .connection
            .send(command.encoded(), 1, self.deadline)
            .await;
        match (batch.failure, batch.values.into_iter().next()) {
            (None, Some(value)) => Ok(value),
            (Some(error @ Error::Protocol { .. }), _) => Err(error),
            // Only a greeting can have been lost: no command of the application was sent.
            (failure, _) => Err(self.unreachable(failure.map_or_else(
                || "no reply to the greeting".into(),
                |error| format!("while greeting: {error}"),
            ))),
        }
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::Connect {
            node: self.addr.to_string(),
            reason,
        }
    }

    /// An error of a greeting: a full server is as good as none, the rest is for the application.
    fn refused(&self, error: ServerError) -> Error {
        if error.text().contains("max number of clients") {
            return self.unreachable(error.text().into());
        }
        error.into()
    }
}

/// `None` where the server has no RESP3, or the client does not want it.
async fn hello(link: &Link<'_>, config: &Config) -> Result<Option<bool>> {
    if config.resp2 {
        return Ok(None);
    }
    let mut hello = cmd("HELLO").arg(3);
    if let Some(password) = &config.password {
        let user = config.user.as_deref().unwrap_or("default");
        hello = hello.arg("AUTH").arg(user).arg(password);
    }
    if let Some(name) = &config.name {
        hello = hello.arg("SETNAME").arg(name);
    }
    match link.ask(&hello).await? {
        Value::Error(error) => {
            let unknown = error.text().starts_with("ERR unknown command");
            if unknown || matches!(error.code(), "NOPROTO" | "NOPERM") {
                Ok(None)
            } else {
                Err(link.refused(error))
            }
        }
        reply => Ok(Some(is_cluster(&reply))),
    }
}

/// `mode` of a reply of HELLO.
fn is_cluster(reply: &Value) -> bool {
    let Value::Map(pairs) = reply else {
        return false;
    };
    let mode = pairs
        .iter()
        .find(|(key, _)| key.as_bytes() == Some(b"mode"));
    mode.is_some_and(|(_, mode)| mode.as_bytes() == Some(b"cluster"))
}

async fn resp2(link: &Link<'_>, config: &Config) -> Result<bool> {
    if let Some(password) = &config.password {
        let auth = match &config.user {
            Some(user) => cmd("AUTH").arg(user).arg(password),
            None => cmd("AUTH").arg(password),
        };
        if let Value::Error(error) = link.ask(&auth).await? {
            return Err(link.refused(error));
        }
    }
    if let Some(name) = &config.name {
        link.ask(&cmd("CLIENT SETNAME").arg(name)).await?.check()?;
    }
    match link.ask(&cmd("INFO").arg("cluster")).await? {
        Value::Error(error) if matches!(error.code(), "NOAUTH" | "WRONGPASS") => {
            Err(link.refused(error))
        }
        // A server without information on clusters is in none.
        reply => Ok(reply.as_bytes().is_some_and(|text| {
            text.split(|&byte| byte == b'\n')
                .any(|line| line.trim_ascii() == b"cluster_enabled:1")
        })),
    }
}
