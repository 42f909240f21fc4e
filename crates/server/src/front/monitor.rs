//! Clients that watch every command (`MONITOR`).

use super::connections::Connections;
use super::outbox::Outbox;
use super::secret;
use rufous_base::{Args, ConnId, Now};
use rufous_command::{Flags, Spec};

/// Arguments longer than this are cut in the stream.
const SHOWN_BYTES: usize = 64 * 1024;

/// Administrative commands are not shown, since they may carry secrets.
pub(super) fn shows(spec: &Spec) -> bool {
    !spec.flags.has(Flags::SKIP_MONITOR) && !spec.flags.has(Flags::ADMIN)
}

/// Sends a line about a request that is about to run to every monitor of the node.
#[cold]
pub(super) fn feed(
    now: Now,
    conn: ConnId,
    (spec, args): (&Spec, &Args<'_>),
    connections: &mut Connections,
    out: &mut Outbox,
) {
    let Some(connection) = connections.get(conn) else {
        return;
    };
    let line = line(now, connection.db, &connection.info.peer, spec, args);
    send(&line, connections, out);
    out.tell_others(move |front, _| send(&line, &front.connections, &mut front.out));
}

fn send(line: &[u8], connections: &Connections, out: &mut Outbox) {
    for connection in connections.iter().filter(|c| c.monitor) {
        out.push(connection.id, line.to_vec());
    }
}

/// `+<seconds>.<micros> [<db> <peer>] "arg" …`, quoted so that it is one line.
fn line(now: Now, db: u8, peer: &str, spec: &Spec, args: &Args<'_>) -> Vec<u8> {
    let mut line = format!(
        "+{}.{:06} [{db} {peer}]",
        now.unix_s(),
        now.unix_us % 1_000_000
    )
    .into_bytes();
    for (index, arg) in args.iter_from(0).enumerate() {
        let arg = if secret::is_secret(spec.flags, args, index) {
            secret::REDACTED
        } else {
            arg
        };
        line.extend_from_slice(b" \"");
        for &byte in &arg[..arg.len().min(SHOWN_BYTES)] {
            match byte {
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                b'\t' => line.extend_from_slice(b"\\t"),
                0x07 => line.extend_from_slice(b"\\a"),
                0x08 => line.extend_from_slice(b"\\b"),
                0x20..=0x7E => line.push(byte),
                _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}
