//! A connection as a line of `CLIENT LIST`.

use crate::front::connection::{Connection, Suspended};
use rufous_base::{Now, WorkerId};
use rufous_command::Table;
use std::fmt::Write;

/// Fields in Redis's order. What has no counterpart here is what it would be
/// for a client that does not use it; descriptors are the driver's and not known.
/// Behind them is the worker that the connection is with as long as it lives.
pub(crate) fn describe(
    connection: &Connection,
    worker: WorkerId,
    table: &Table,
    now: Now,
) -> String {
    let seconds = |since: u64| now.mono_us.saturating_sub(since) / 1_000_000;
    let waiting = connection.held.unparsed();
    let input = connection.held.capacity();
    let output = connection.replies.capacity();
    let mut line = format!(
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={}",
        connection.client_id,
        connection.info.peer,
        connection.info.local,
        text(&connection.name),
        seconds(connection.created_us),
        seconds(connection.last_active_us),
        flags(connection),
        connection.db,
    );
    let _ = write!(
        line,
        " sub=0 psub=0 ssub=0 multi={} watch={} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 oll={} omem={} tot-mem={}",
        if connection.transaction.open || connection.transaction.is_begun() {
            connection.transaction.len() as i64
        } else {
            -1
        },
        connection.transaction.watched.len(),
        waiting,
        input.saturating_sub(waiting),
        connection.transaction.bytes(),
        connection.replies.len(),
        output,
        size_of::<Connection>() + input + connection.transaction.bytes() + output,
    );
    let _ = write!(
        line,
        " events=r cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={} worker={}",
        connection.last_command_name(table),
        if connection.authenticated {
            "default"
        } else {
            "(none)"
        },
        if connection.resp3 { 3 } else { 2 },
        text(&connection.lib_name),
        text(&connection.lib_version),
        worker.0,
    );
    line
}

fn text(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

fn flags(connection: &Connection) -> String {
    let all = [
        (connection.monitor, 'O'),
        (
            connection.transaction.open || connection.transaction.is_begun(),
            'x',
        ),
        (
            connection.is_blocked() || connection.suspended == Some(Suspended::Paused),
            'b',
        ),
        (connection.closing, 'c'),
        (!connection.info.peer.contains(':'), 'U'),
        (connection.no_evict, 'e'),
        (connection.no_touch, 'T'),
    ];
    let set: String = all
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, flag)| flag)
        .collect();
    if set.is_empty() { "N".into() } else { set }
}
