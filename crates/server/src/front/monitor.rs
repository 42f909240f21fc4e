//! Clients that watch every command (`MONITOR`).

use super::connection::Connection;
use super::connections::Connections;
use super::outbox::Outbox;
use super::secret;
use rufous_base::{Args, Now};
use rufous_command::{Flags, Spec};

/// Arguments longer than this are cut in the stream.
const SHOWN_BYTES: usize = 64 * 1024;

/// Administrative commands are not shown, since they may carry secrets.
pub(super) fn shows(spec: &Spec) -> bool {
    !spec.flags.has(Flags::SKIP_MONITOR) && !spec.flags.has(Flags::ADMIN)
}

/// Sends a line about a request that is about to run to every monitor of the node.
#[cold]
pub(super) fn feed(line: Vec<u8>, connections: &Connections, out: &mut Outbox) {
    send(&line, connections, out);
    out.tell_others(move |front, _| send(&line, &front.connections, &mut front.out));
}

fn send(line: &[u8], connections: &Connections, out: &mut Outbox) {
    for connection in connections.iter().filter(|c| c.monitor) {
        out.push(connection.id, line.to_vec());
    }
}

/// The line about a request of a connection: `+<seconds>.<micros> [<db> <peer>] "arg" …`, quoted so that
/// it is one.
pub(super) fn line(now: Now, connection: &Connection, spec: &Spec, args: &Args<'_>) -> Vec<u8> {
    let (db, peer) = (connection.db, &connection.info.peer);
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

#[cfg(test)]
mod tests {
    use super::super::outbox::Place;
    use super::super::testing::{id, info, with_args};
    use super::*;
    use rufous_base::{Effects, WorkerId};

    #[test]
    fn monitors_of_all_workers_get_a_line_without_secrets() {
        let place = Place {
            own: WorkerId(0),
            workers: 2,
        };
        let (mut all, mut out) = (Connections::default(), Outbox::new(place));
        for slot in 0..2 {
            all.on_opened(Now::default(), id(slot, 1), info(), place);
        }
        all.get(id(1, 1)).expect("open").monitor = true;
        let table = crate::command::table();
        let spec = table.spec(table.find(b"auth").expect("a command"));
        let sender = all.get(id(0, 1)).expect("open");
        let line = with_args(&[b"AUTH", b"secret"], |args| {
            line(Now::default(), sender, spec, args)
        });
        feed(line, &all, &mut out);
        let mut fx = Effects::default();
        out.take(&mut fx);
        let expected = "+0.000000 [0 ] \"AUTH\" \"(redacted)\"\r\n";
        assert_eq!(String::from_utf8_lossy(&fx.output.bytes), expected);
        assert_eq!((fx.writes[0].conn, fx.messages.len()), (id(1, 1), 1));
    }
}
