//! The transactions of a worker's clients, as `TXN LIST` and `TXN INFO` show them.

use super::super::Front;
use super::super::connection::Connection;
use super::begun::Begun;
use rufous_base::Now;
use std::fmt::{Display, Write};

/// A transaction of a client.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) client: u64,
    /// Names and values.
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Listed {
    fn of(front: &Front, connection: &Connection) -> Self {
        let mut listed = Self {
            client: connection.client_id,
            fields: Vec::new(),
        };
        let name = String::from_utf8_lossy(&connection.name);
        listed.add("id", connection.client_id);
        listed.add("addr", &connection.info.peer);
        listed.add("name", name);
        listed.add("worker", front.id().0);
        listed
    }

    fn add(&mut self, name: &'static str, value: impl Display) {
        self.fields.push((name, value.to_string()));
    }

    /// A line of `TXN LIST`.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        for (name, value) in &self.fields {
            let space = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{space}{name}={value}");
        }
        line + "\n"
    }
}

/// Those that clients have begun and not ended, and those over slots that have no outcome yet.
pub(crate) fn list(front: &Front, now: Now) -> Vec<Listed> {
    let ms_since = |since_us: u64| now.mono_us.saturating_sub(since_us) / 1000;
    let mut all = Vec::new();
    for connection in front.connections() {
        let listed = |state: &str, since_us: u64| {
            let mut listed = Listed::of(front, connection);
            listed.add("state", state);
            listed.add("age-ms", ms_since(since_us));
            listed
        };
        if let Some(begun) = connection.transaction.begun.as_deref() {
            let mut listed = listed(state_of(begun), begun.since_us);
            listed.add("idle-ms", ms_since(connection.last_active_us));
            listed.add("level", level_of(begun));
            listed.add("commands", connection.transaction.len());
            listed.add("keys", begun.open.keys());
            listed.add("watched", connection.transaction.watched.len());
            listed.add("savepoints", begun.open.savepoints());
            listed.add("bytes", connection.transaction.bytes());
            all.push(listed);
        }
        for (header, since_us) in front.transactions.apart.of(connection.id) {
            let mut listed = listed("waiting", since_us);
            listed.add("command", front.table.spec(header.command).name);
            all.push(listed);
        }
    }
    all
}

fn level_of(begun: &Begun) -> String {
    let level = begun.open.level();
    // It is no level of a keyspace, which this would name.
    if begun.open.watches() {
        "serializable".into()
    } else {
        level.to_string()
    }
}

fn state_of(begun: &Begun) -> &'static str {
    if begun.given_up.is_some() {
        "aborted"
    } else {
        "open"
    }
}

/// Aborts the transaction that a client has begun. Returns whether it has one that can be aborted.
pub(crate) fn kill(front: &mut Front, now: Now, client: u64) -> bool {
    let mut connections = front.connections();
    let found = connections.find(|connection| connection.client_id == client);
    let open = found.filter(|connection| {
        let begun = connection.transaction.begun.as_deref();
        begun.is_some_and(|begun| begun.given_up.is_none())
    });
    let Some(conn) = open.map(|connection| connection.id) else {
        return false;
    };
    drop(connections);
    front.give_up(now, conn, "ERR ended by TXN KILL".into());
    true
}
