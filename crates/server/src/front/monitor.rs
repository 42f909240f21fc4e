//! Clients that watch every command (`MONITOR`).

use super::{Front, secret};
use rufous_base::{Args, ConnId, Now};
use rufous_command::{Flags, Spec};

/// Arguments longer than this are cut in the stream.
const SHOWN_BYTES: usize = 64 * 1024;

/// Administrative commands are not shown, since they may carry secrets.
pub(super) fn shows(spec: &Spec) -> bool {
    !spec.flags.has(Flags::SKIP_MONITOR) && !spec.flags.has(Flags::ADMIN)
}

impl Front {
    /// Sends a line about a request that is about to run to every monitor of the node.
    #[cold]
    pub(super) fn feed_monitors(&mut self, now: Now, conn: ConnId, spec: &Spec, args: &Args<'_>) {
        let Some(connection) = self.connection(conn) else {
            return;
        };
        let line = line(now, connection.db, &connection.info.peer, spec, args);
        self.send_to_monitors(&line);
        self.out
            .tell_others(move |front, _| front.send_to_monitors(&line));
    }

    fn send_to_monitors(&mut self, line: &[u8]) {
        for connection in self.connections.iter().filter(|c| c.monitor) {
            self.out.push(connection.id, line.to_vec());
        }
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
