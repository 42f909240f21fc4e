//! Sending the replies of a turn: of each connection all at once, in one call
//! to the kernel where it takes them.

use super::pending::SLICES;
use super::pieces::{NONE, Piece, Turn};
use super::{Conn, Sockets};
use rufous_base::{Output, Write};
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// Memory that sending uses again each turn.
#[derive(Default)]
pub(super) struct Scratch {
    /// The next write of the same connection.
    next: Vec<u32>,
    /// Slots with writes, in the order of their first.
    slots: Vec<u32>,
}

impl Sockets {
    /// Sends all replies of a turn. Those to a connection that is gone or
    /// about to be closed are dropped.
    pub(crate) fn send(&mut self, output: &Output, writes: &[Write]) {
        let mut scratch = std::mem::take(&mut self.scratch);
        for (n, write) in writes.iter().enumerate() {
            let n = n as u32;
            scratch.next.push(NONE);
            let Some(conn) = self.get(write.conn).filter(|conn| !conn.closing) else {
                continue;
            };
            if conn.chain.0 == NONE {
                conn.chain = (n, n);
                scratch.slots.push(write.conn.slot);
            } else {
                scratch.next[conn.chain.1 as usize] = n;
                conn.chain.1 = n;
            }
        }
        let turn = Turn {
            output,
            writes,
            next: &scratch.next,
        };
        for &slot in &scratch.slots {
            self.send_chain(slot, turn);
        }
        scratch.next.clear();
        scratch.slots.clear();
        self.scratch = scratch;
    }

    fn send_chain(&mut self, slot: u32, turn: Turn<'_>) {
        let place = &mut self.slots[slot as usize];
        let Some(conn) = place.conn.as_mut() else {
            return;
        };
        let first = std::mem::replace(&mut conn.chain, (NONE, NONE)).0;
        if !conn.pending.is_empty() {
            // Its waker is registered, or it is queued: in order, then.
            turn.pieces(first).for_each(|p| conn.pending.keep(p, 0));
            self.bound(slot);
            return;
        }
        let cx = &mut Context::from_waker(&place.waker);
        match send_now(conn, cx, turn, first) {
            Err(_) => return self.drop_now(slot),
            Ok(0) => {}
            Ok(sent) => {
                self.stats.sends.add(1);
                self.stats.bytes_out.add(sent as u64);
            }
        }
        if !conn.is_sent() {
            // Registers the waker, and takes what one send had no slices for.
            self.flush(slot);
            self.bound(slot);
        }
    }

    /// Stops reading from, or drops, a connection that too many replies wait for.
    pub(super) fn bound(&mut self, slot: u32) {
        let Some(conn) = self.slots[slot as usize].conn.as_mut() else {
            return;
        };
        if conn.pending.has_sources() {
            conn.pending.look();
            self.with_sources.insert(slot);
        }
        let (waiting, copied) = (conn.pending.len(), conn.pending.copied());
        self.copied += copied;
        self.copied -= std::mem::replace(&mut conn.counted, copied);
        let is_over = waiting > self.bounds.high_water(conn.backlog);
        let crowded = is_over && self.copied > self.bounds.output_total_limit;
        if crowded || copied > self.bounds.hard_limit(conn.backlog) {
            tracing::warn!(
                waiting,
                copied,
                copied_for_all = self.copied,
                kind = ?conn.backlog,
                "dropped a connection that does not read its replies"
            );
            self.stats.dropped_for_output.add(1);
            self.drop_now(slot);
        } else if is_over {
            conn.over = true;
        }
    }
}

/// One send; what it did not take is kept. Returns the bytes sent.
fn send_now(
    conn: &mut Conn,
    cx: &mut Context<'_>,
    turn: Turn<'_>,
    first: u32,
) -> io::Result<usize> {
    if let Some(bytes) = turn.contiguous(first) {
        if bytes.is_empty() {
            return Ok(0);
        }
        let sent = taken(conn.stream.poll_write(cx, bytes))?;
        conn.pending.keep(Piece::Bytes(bytes), sent);
        return Ok(sent);
    }
    let mut slices = [IoSlice::new(&[]); SLICES];
    let mut used = 0;
    let existing = turn.pieces(first).map_while(Piece::bytes);
    for (slice, bytes) in slices.iter_mut().zip(existing) {
        *slice = IoSlice::new(bytes);
        used += 1;
    }
    let sent = match used {
        0 => 0,
        _ => taken(conn.stream.poll_write_vectored(cx, &slices[..used]))?,
    };
    let mut skip = sent;
    for piece in turn.pieces(first) {
        conn.pending.keep(piece, skip);
        skip = skip.saturating_sub(piece.bytes().map_or(0, <[u8]>::len));
    }
    Ok(sent)
}

fn taken(written: Poll<io::Result<usize>>) -> io::Result<usize> {
    match written {
        Poll::Pending => Ok(0),
        Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
        Poll::Ready(written) => written,
    }
}
