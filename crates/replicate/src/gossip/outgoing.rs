//! The sending end of a stream: what is kept until it is acknowledged, and the repair of a node that has missed
//! something.

use super::sums::{Differ, Name, Walk};
use super::{Figures, Limits, Peer};
use crate::batch::Item;
use crate::replicas::Replicas;
use rufous_base::Now;
use rufous_base::slot::slot_of;
use rufous_store::placement::Placement;
use rufous_store::planted::{self, Planted};
use rufous_store::shard::Shard;
use std::collections::VecDeque;
use std::sync::Arc;

/// A stream that is not answered is announced again after this time.
const NAMED_US: u64 = 500_000;

/// Bytes of a piece; it fits into a message between nodes.
const PIECE: usize = 256 << 10;

#[derive(Debug)]
struct Kept {
    bytes: Arc<[u8]>,
    more: bool,
    is_report: bool,
}

/// The state of a repair of the other node.
#[derive(Debug)]
enum Repair {
    /// Checksums have to be computed.
    Asks,
    /// Checksums were sent.
    Compares,
    /// These slots are being sent again.
    Tells(Box<Telling>),
}

#[derive(Debug)]
struct Telling {
    slots: Differ,
    walk: Walk,
    /// Keys that the walk has reached.
    names: Vec<Name>,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Outgoing {
    is_up: bool,
    /// 0: the stream is to begin.
    stream: u64,
    /// The number of the first kept piece.
    first: u64,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// In this session: when the stream was announced; whether the other node has answered; the number up to which
    /// pieces were sent, and their bytes that are still kept.
    named_us: Option<u64>,
    is_met: bool,
    sent: u64,
    flying: usize,
    repair: Option<Repair>,
    /// Whether reports are held back, since the other node lacks state.
    is_late: bool,
    /// The time up to which anything had been forgotten, as it was sent.
    forgotten: u64,
    compared_us: u64,
}

impl Outgoing {
    pub(super) fn new(is_up: bool) -> Self {
        Self {
            is_up,
            stream: 0,
            first: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            named_us: None,
            is_met: false,
            sent: 0,
            flying: 0,
            repair: None,
            is_late: true,
            forgotten: 0,
            compared_us: 0,
        }
    }

    /// Drops the kept pieces: a new stream will begin with a comparison.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::new(self.is_up);
    }

    pub(super) fn set_up(&mut self, is_up: bool) {
        (self.is_up, self.named_us, self.is_met) = (is_up, None, false);
        if self.repair.is_some() {
            self.repair = Some(Repair::Asks);
        }
    }

    /// Whether reports to the other node are held back.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether a stream has begun whose receiver lacks state.
    pub(super) fn is_repairing(&self) -> bool {
        self.stream != 0 && self.is_late
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Whether a stream can begin. Without a session nothing is kept for one: all earlier changes are found by the
    /// comparison.
    pub(super) fn wants_stream(&self) -> bool {
        self.is_up && self.stream == 0
    }

    pub(super) fn begin(&mut self, stream: u64, (first, forgotten): (&Arc<[u8]>, u64), now: Now) {
        self.stream = stream;
        self.say_forgotten(first, forgotten);
        self.repair = Some(Repair::Asks);
        self.compared_us = now.mono_us;
    }

    /// Whether more was forgotten than the other node was told. Counts that depend on that follow it, and no report
    /// has said that this worker had received the removals.
    pub(super) fn has_to_say(&self, forgotten: u64) -> bool {
        self.stream != 0 && self.is_late && self.forgotten < forgotten
    }

    pub(super) fn say_forgotten(&mut self, message: &Arc<[u8]>, forgotten: u64) {
        self.forgotten = forgotten;
        self.push(message, false);
    }

    pub(super) fn tell(
        &mut self,
        bytes: &Arc<[u8]>,
        is_report: bool,
        limits: &Limits,
        figures: &mut Figures,
    ) {
        if self.stream == 0 || (is_report && self.is_late) {
            return;
        }
        if is_report && self.replace_report(bytes) {
            return;
        }
        // Reports are short, and few.
        let may_be_too_much = !is_report && !self.kept.is_empty();
        if may_be_too_much && self.kept_bytes + bytes.len() > limits.kept_bytes {
            figures.overflows += 1;
            return self.begin_anew();
        }
        self.push(bytes, is_report);
    }

    /// Tells what another node had sent here. It is bounded by itself, and the next stream would be told it again.
    pub(super) fn tell_on(&mut self, bytes: &Arc<[u8]>) {
        if self.stream != 0 {
            self.push(bytes, false);
        }
    }

    /// Replaces an unsent report by a later one, which contains all its information. Otherwise a node that is away
    /// would cause a kept report per epoch.
    fn replace_report(&mut self, bytes: &Arc<[u8]>) -> bool {
        let has_left = self.sent >= self.first + self.kept.len() as u64;
        match self.kept.back_mut().filter(|last| last.is_report) {
            Some(last) if !has_left && !last.more => {
                self.kept_bytes = self.kept_bytes - last.bytes.len() + bytes.len();
                last.bytes = Arc::clone(bytes);
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, bytes: &Arc<[u8]>, is_report: bool) {
        self.kept_bytes += bytes.len();
        if bytes.len() <= PIECE {
            let bytes = Arc::clone(bytes);
            return self.kept.push_back(Kept {
                bytes,
                more: false,
                is_report,
            });
        }
        let count = bytes.len().div_ceil(PIECE);
        for (at, piece) in bytes.chunks(PIECE).enumerate() {
            self.kept.push_back(Kept {
                bytes: piece.into(),
                more: at + 1 < count,
                is_report,
            });
        }
    }

    pub(super) fn on_taken(&mut self, stream: u64, next: u64, is_new: bool, figures: &mut Figures) {
        if stream != self.stream || stream == 0 {
            return;
        }
        let is_lost = is_new && (self.first > 0 || self.repair.is_none());
        if is_lost || next > self.sent {
            // The other node has started again and may have lost state; or it knows another stream with the same
            // number, from before this node's start.
            return self.begin_anew();
        }
        while self.first < next
            && let Some(kept) = self.kept.pop_front()
        {
            self.kept_bytes -= kept.bytes.len();
            if self.first < self.sent {
                self.flying = self.flying.saturating_sub(kept.bytes.len());
            }
            self.first += 1;
        }
        self.sent = self.sent.max(self.first);
        if !self.is_met {
            self.is_met = true;
            figures.resent_pieces += self.sent - self.first;
            if planted::is(Planted::NotSentAgain) && self.sent > self.first {
                self.kept.clear();
                self.kept_bytes = 0;
            }
            (self.sent, self.flying) = (self.first, 0);
        }
    }

    /// Sends what can be sent in this session.
    pub(super) fn send(
        &mut self,
        now: Now,
        (table, limits): (u64, &Limits),
        figures: &mut Figures,
        mut push: impl FnMut(Peer),
    ) {
        if !self.is_up || self.stream == 0 {
            return;
        }
        let (stream, next) = (self.stream, self.first);
        let is_due = |at: u64| now.mono_us >= at + NAMED_US;
        if !self.is_met && self.named_us.is_none_or(is_due) {
            self.named_us = Some(now.mono_us);
            push(Peer::Hello {
                stream,
                next,
                table,
            });
        }
        while self.is_met && self.flying < limits.flying_bytes {
            let Some(kept) = self.kept.get((self.sent - self.first) as usize) else {
                break;
            };
            self.flying += kept.bytes.len();
            figures.sent_pieces += 1;
            figures.sent_bytes += kept.bytes.len() as u64;
            push(Peer::Piece {
                stream,
                number: self.sent,
                more: kept.more,
                bytes: Arc::clone(&kept.bytes),
            });
            self.sent += 1;
        }
    }

    /// Whether checksums are needed now: for a stream with acknowledged pieces, or periodically without a reason.
    pub(super) fn asks_for_sums(&mut self, now: Now, limits: &Limits) -> bool {
        let is_due = self.wake_us(limits).is_some_and(|at| at <= now.mono_us);
        if is_due && self.is_met {
            self.compared_us = now.mono_us;
            self.repair = Some(Repair::Asks);
        }
        self.is_met && self.first > 0 && matches!(self.repair, Some(Repair::Asks))
    }

    pub(super) fn wake_us(&self, limits: &Limits) -> Option<u64> {
        if self.is_up && self.stream != 0 && !self.is_met {
            return self.named_us.map(|at| at + NAMED_US);
        }
        let rests = self.is_met && self.repair.is_none() && limits.compare_us > 0;
        rests.then_some(self.compared_us + limits.compare_us)
    }

    /// Checksums are ready; returns their stream, if they are still needed.
    pub(super) fn compare(&mut self) -> Option<u64> {
        if !self.is_met || !matches!(self.repair, Some(Repair::Asks)) {
            return None;
        }
        self.repair = Some(Repair::Compares);
        Some(self.stream)
    }

    pub(super) fn on_differ(&mut self, stream: u64, slots: Differ, figures: &mut Figures) {
        if stream != self.stream || !matches!(self.repair, Some(Repair::Compares)) {
            return;
        }
        figures.repaired_slots += slots.count();
        self.repair = Some(Repair::Tells(Box::new(Telling {
            slots,
            walk: Walk::default(),
            names: Vec::new(),
        })));
    }

    /// Sends slots again, as fast as the other node receives them. Returns true if there is more to do at once.
    pub(super) fn repair(
        &mut self,
        now: Now,
        (shard, placement): (&mut Shard, &Placement),
        replicas: &mut Replicas,
        limits: &Limits,
    ) -> bool {
        let Some(Repair::Tells(telling)) = &mut self.repair else {
            return false;
        };
        let is_full = self.kept_bytes >= limits.flying_bytes;
        if is_full || !self.is_met {
            return false;
        }
        let mut writer = replicas.again();
        let (mut more, mut bytes) = (true, self.kept_bytes);
        while let Some((db, name)) = telling.names.pop() {
            let key = shard.key(&name);
            let mut push = |tag, chunk: &[u8]| {
                bytes += chunk.len() + name.len();
                let key = &name;
                writer.push(Item {
                    db,
                    key,
                    tag,
                    chunk,
                });
            };
            shard.show_replica(usize::from(db), key, now, &mut push);
            if bytes >= limits.flying_bytes {
                break;
            }
        }
        if telling.names.is_empty() {
            more = telling.walk.step(shard, placement, &mut telling.names);
            let slots = &telling.slots;
            telling.names.retain(|(_, name)| slots.has(slot_of(name)));
        }
        let is_done = !more && telling.names.is_empty();
        for message in writer.take() {
            self.push(&message, false);
        }
        if is_done {
            self.is_repaired(replicas);
        }
        !is_done && self.kept_bytes < limits.flying_bytes
    }

    fn is_repaired(&mut self, replicas: &mut Replicas) {
        self.repair = None;
        if std::mem::take(&mut self.is_late) {
            // From here on reports are sent.
            replicas.start();
        }
    }
}
