//! The replies of one connection that are not written yet, in the order of its requests.
//!
//! A connection's requests to other workers have a limit. It does not know how many bytes already wait
//! to be sent, so it requests only what is likely to fit: few replies that may be long, until it has
//! measured their length.

use super::connection::Suspended;
use rufous_base::limits::{MAX_PIPELINE_IN_FLIGHT, OUTPUT_HIGH_WATER};
use rufous_base::{Output, Until};
use rufous_kernel::Submitted;
use std::collections::VecDeque;

/// A position in an output.
pub(super) type Mark = (usize, usize);

/// A reply in an output.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) out: &'a Output,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

impl<'a> Written<'a> {
    /// All of an output.
    pub(super) fn all(out: &'a Output) -> Self {
        Self {
            out,
            start: (0, 0),
            end: out.mark(),
        }
    }
}

/// Which replies the client wants (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    #[default]
    On,
    Off,
    /// Leave out the reply to the next request.
    SkipNext,
    /// Leave out the reply to this request, then answer again.
    Skipping,
}

/// A reply in the order of requests, while an earlier one is pending.
#[derive(Debug)]
enum Slot {
    /// Pending.
    Waiting {
        discard: bool,
        /// The reply may be long.
        long: bool,
    },
    /// Ready: a part of [`Replies::late`].
    Late { start: Mark, end: Mark },
    /// Ready out of order, from another worker.
    Early(Box<Output>),
}

/// See the module's description.
#[derive(Debug)]
pub struct Replies {
    pub mode: ReplyMode,
    /// Empty if all are written.
    slots: VecDeque<Slot>,
    /// The number of the first slot's request.
    first_seq: u32,
    /// Replies that wait for earlier ones.
    late: Output,
    /// What the replies not yet written have to wait for after they are written.
    until: Until,
    /// Bytes written, or received from other workers, since the driver last sent any.
    unsent: usize,
    /// Of replies from other workers that may be long: about the longest of the last few.
    long_reply: usize,
}

impl Default for Replies {
    fn default() -> Self {
        Self {
            mode: ReplyMode::On,
            slots: VecDeque::new(),
            first_seq: 0,
            late: Output::default(),
            until: Until::Logged,
            unsent: 0,
            long_reply: OUTPUT_HIGH_WATER / 2,
        }
    }
}

/// Inputs.
impl Replies {
    /// A request is about to run. A second call for it does nothing.
    pub(super) fn on_request(&mut self) {
        if self.mode == ReplyMode::SkipNext {
            self.mode = ReplyMode::Skipping;
        }
    }

    /// A request has run, with a reply written since `mark` or still pending, which may be long.
    /// Returns why the connection has to wait then, if it has to.
    pub(super) fn on_submitted(
        &mut self,
        submitted: Submitted,
        is_long: impl FnOnce() -> bool,
        mark: Mark,
        out: &mut Output,
    ) -> Option<Suspended> {
        let discard = match self.mode {
            ReplyMode::On | ReplyMode::SkipNext => false,
            ReplyMode::Off => true,
            ReplyMode::Skipping => {
                self.mode = ReplyMode::On;
                true
            }
        };
        match submitted {
            Submitted::Done | Submitted::NotHere if discard => {
                out.truncate(mark);
                None
            }
            Submitted::Done | Submitted::NotHere => {
                let written = written_between(out, mark, out.mark());
                if !self.slots.is_empty() && written > 0 {
                    self.put_late(mark, out);
                }
                self.bound(written)
            }
            Submitted::Pending | Submitted::Barrier => {
                let long = is_long();
                self.slots.push_back(Slot::Waiting { discard, long });
                if submitted == Submitted::Barrier {
                    Some(Suspended::Barrier)
                } else {
                    let is_full = self.slots.len() >= self.window(long);
                    is_full.then_some(Suspended::TooManyInFlight)
                }
            }
        }
    }

    /// Takes the reply to request `seq` from another worker, and writes all replies that are now in
    /// order to `out`.
    pub(super) fn on_reply(&mut self, seq: u32, reply: Written<'_>, out: &mut Output) {
        let Written {
            out: from,
            start,
            end,
        } = reply;
        let place = seq.wrapping_sub(self.first_seq) as usize;
        let Some(slot) = self.slots.get_mut(place) else {
            debug_assert!(false, "a reply to a request that is not under way");
            return;
        };
        let Slot::Waiting { discard, long } = *slot else {
            debug_assert!(false, "a second reply to one request");
            return;
        };
        let length = written_between(from, start, end);
        if long {
            self.long_reply = length.max(self.long_reply / 4 * 3);
        }
        let end = if discard { start } else { end };
        if !discard {
            self.unsent = self.unsent.saturating_add(length);
        }
        if place > 0 {
            let mut early = Box::<Output>::default();
            early.append_range(from, start, end);
            *slot = Slot::Early(early);
            return;
        }
        out.append_range(from, start, end);
        self.pop_slot();
        self.flush_ready(out);
    }

    /// The driver has sent what was written.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        self.unsent = 0;
    }

    /// A request is about to run whose reply waits for other nodes' copies as well as for the log.
    pub(super) fn wait_for_copies(&mut self) {
        self.until = Until::Passed;
    }

    /// What the replies just written wait for. `splits`: some replies wait for the log alone.
    #[inline]
    pub(super) fn take_until(&mut self, splits: bool) -> Until {
        if !splits {
            return Until::Passed;
        }
        let until = self.until;
        if self.slots.is_empty() {
            self.until = Until::Logged;
        }
        until
    }
}

/// Outputs.
impl Replies {
    /// The number that the next request gets.
    pub fn next_seq(&self) -> u32 {
        self.first_seq.wrapping_add(self.slots.len() as u32)
    }

    /// Replies that are pending, or wait for pending ones.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of replies that wait for earlier ones.
    pub(super) fn late_bytes(&self) -> usize {
        self.late.bytes.len()
    }

    /// Memory for these.
    pub(crate) fn capacity(&self) -> usize {
        self.late.bytes.capacity()
    }

    /// Whether some wait for the log, or for copies as well, and are not lost with a pending one.
    pub(super) fn has_late(&self, until: Until) -> bool {
        let waits = until == Until::Logged || self.until == Until::Passed;
        waits && self.slots.iter().any(|s| matches!(s, Slot::Late { .. }))
    }

    /// Whether all that was written is sent.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent == 0
    }

    /// Whether so few are pending that a connection that had too many may go on.
    pub(super) fn has_room(&self) -> bool {
        let waits_long = |slot: &Slot| matches!(slot, Slot::Waiting { long: true, .. });
        let last = self.slots.back().is_some_and(waits_long);
        self.slots.len() < self.window(last).div_ceil(2)
    }

    /// Why the connection has to wait, if too many bytes wait to be sent: for pending replies that
    /// precede them, or until all bytes are sent.
    #[inline]
    pub(super) fn excess(&self) -> Option<Suspended> {
        if self.unsent <= OUTPUT_HIGH_WATER {
            return None;
        }
        Some(if self.slots.is_empty() {
            Suspended::Unsent
        } else {
            Suspended::Barrier
        })
    }

    /// Counts the bytes of a reply. A turn's replies are all sent at its end: without a bound, one
    /// pipeline of reads of large values would have them all in memory at once.
    #[inline]
    fn bound(&mut self, written: usize) -> Option<Suspended> {
        self.unsent = self.unsent.saturating_add(written);
        let is_full = self.slots.len() >= MAX_PIPELINE_IN_FLIGHT;
        let excess = self.excess();
        excess.or(is_full.then_some(Suspended::TooManyInFlight))
    }

    /// How many requests may be in flight, including the last one, whose reply may be long or not.
    fn window(&self, long: bool) -> usize {
        if long {
            (OUTPUT_HIGH_WATER / self.long_reply.max(1)).clamp(1, MAX_PIPELINE_IN_FLIGHT)
        } else {
            MAX_PIPELINE_IN_FLIGHT
        }
    }

    /// Moves the reply written since `mark` behind the pending ones.
    fn put_late(&mut self, mark: Mark, out: &mut Output) {
        let start = self.late.mark();
        self.late.append_range(out, mark, out.mark());
        out.truncate(mark);
        let end = self.late.mark();
        self.slots.push_back(Slot::Late { start, end });
    }

    fn flush_ready(&mut self, out: &mut Output) {
        loop {
            match self.slots.front() {
                Some(Slot::Late { start, end }) => out.append_range(&self.late, *start, *end),
                Some(Slot::Early(early)) => out.append_range(early, (0, 0), early.mark()),
                Some(Slot::Waiting { .. }) | None => break,
            }
            self.pop_slot();
        }
        if self.slots.is_empty() {
            self.late.clear();
            self.late.bytes.shrink_to(64 * 1024);
        }
    }

    fn pop_slot(&mut self) {
        self.slots.pop_front();
        self.first_seq = self.first_seq.wrapping_add(1);
    }
}

/// Bytes written to `out` between two marks, large values included.
#[inline]
fn written_between(out: &Output, start: Mark, end: Mark) -> usize {
    let shared = out.shared.get(start.1..end.1).unwrap_or_default();
    let lengths = shared.iter().map(|(_, apart)| apart.len());
    lengths.fold(end.0 - start.0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mark = (0, 0);

    fn bytes(len: usize) -> Output {
        let mut out = Output::default();
        out.bytes.resize(len, b'x');
        out
    }

    fn text(text: &str) -> Output {
        let mut out = Output::default();
        out.bytes.extend_from_slice(text.as_bytes());
        out
    }

    /// A request whose reply is written at once.
    fn done(replies: &mut Replies, reply: &str, out: &mut Output) -> Option<Suspended> {
        let mark = out.mark();
        replies.on_request();
        out.bytes.extend_from_slice(reply.as_bytes());
        replies.on_submitted(Submitted::Done, || false, mark, out)
    }

    fn pending(replies: &mut Replies, is_long: bool) -> (u32, Option<Suspended>) {
        let seq = replies.next_seq();
        replies.on_request();
        let out = &mut Output::default();
        let why = replies.on_submitted(Submitted::Pending, || is_long, START, out);
        (seq, why)
    }

    fn reply(replies: &mut Replies, seq: u32, from: &Output, out: &mut Output) {
        replies.on_reply(seq, Written::all(from), out);
    }

    #[test]
    fn replies_leave_in_the_order_of_requests() {
        let (mut replies, mut out) = (Replies::default(), Output::default());
        done(&mut replies, "a", &mut out);
        let (b, _) = pending(&mut replies, false);
        let (c, _) = pending(&mut replies, false);
        done(&mut replies, "d", &mut out);
        assert_eq!((replies.len(), &*out.bytes), (3, &b"a"[..]));
        assert!(replies.has_late(Until::Logged) && !replies.has_late(Until::Passed));
        reply(&mut replies, c, &text("c"), &mut out);
        assert_eq!(out.bytes, b"a");
        reply(&mut replies, b, &text("b"), &mut out);
        assert_eq!((replies.is_empty(), &*out.bytes), (true, &b"abcd"[..]));
    }

    #[test]
    fn replies_that_are_not_wanted_are_left_out() {
        let (mut replies, mut out) = (Replies::default(), Output::default());
        replies.mode = ReplyMode::SkipNext;
        let (skipped, _) = pending(&mut replies, false);
        done(&mut replies, "b", &mut out);
        reply(&mut replies, skipped, &text("a"), &mut out);
        assert_eq!(out.bytes, b"b");
        replies.mode = ReplyMode::Off;
        done(&mut replies, "c", &mut out);
        assert_eq!(out.bytes, b"b");
    }

    #[test]
    fn a_connection_waits_until_much_is_sent() {
        let (mut replies, mut out) = (Replies::default(), Output::default());
        let (first, _) = pending(&mut replies, false);
        let large = "x".repeat(OUTPUT_HIGH_WATER + 1);
        let why = done(&mut replies, &large, &mut out);
        // These bytes are sent with the pending reply: then it waits for that.
        assert_eq!(why, Some(Suspended::Barrier));
        reply(&mut replies, first, &text("a"), &mut out);
        assert_eq!(replies.excess(), Some(Suspended::Unsent));
        replies.on_sent();
        assert!(replies.is_sent() && replies.excess().is_none());
    }

    #[test]
    fn few_replies_that_may_be_long_are_requested_until_their_length_is_known() {
        let (mut replies, mut out) = (Replies::default(), Output::default());
        let (first, why) = pending(&mut replies, true);
        assert_eq!(why, None);
        let (second, why) = pending(&mut replies, true);
        assert_eq!(why, Some(Suspended::TooManyInFlight));
        assert!(!replies.has_room());
        for seq in [first, second] {
            reply(&mut replies, seq, &bytes(1), &mut out);
        }
        // It lowers its guess step by step.
        for _ in 0..40 {
            let (seq, _) = pending(&mut replies, true);
            reply(&mut replies, seq, &bytes(1), &mut out);
        }
        let full =
            (0..MAX_PIPELINE_IN_FLIGHT).position(|_| pending(&mut replies, true).1.is_some());
        assert_eq!(full, Some(MAX_PIPELINE_IN_FLIGHT - 1));
    }

    #[test]
    fn what_replies_wait_for_holds_until_all_are_written() {
        let (mut replies, mut out) = (Replies::default(), Output::default());
        assert_eq!(replies.take_until(false), Until::Passed);
        assert_eq!(replies.take_until(true), Until::Logged);
        replies.wait_for_copies();
        let (seq, _) = pending(&mut replies, false);
        assert_eq!(replies.take_until(true), Until::Passed);
        reply(&mut replies, seq, &text("a"), &mut out);
        assert_eq!(replies.take_until(true), Until::Passed);
        assert_eq!(replies.take_until(true), Until::Logged);
    }
}
