//! The two shapes of a replicated sketch, and merging into them.

use crate::algebra::{Corrupt, MAX_PACKED, Tuning};
use crate::hll::{self, Editor, Observation, REGISTERS};
use rufous_lattice::{Coded, Deadline, Lattice, Stamp};
use std::sync::{Arc, LazyLock};

/// See the description of [`super`].
#[derive(Clone, Debug)]
pub enum State {
    Packed(Vec<u8>),
    Large(Box<Large>),
}

/// A sketch that does not fit a record. Copies share its string.
#[derive(Clone, Debug)]
pub struct Large {
    stamp: Stamp,
    deadline: Deadline,
    text: Arc<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    Packed(&'a [u8]),
    Large(&'a Large),
}

impl Default for State {
    fn default() -> Self {
        State::Packed(Vec::new())
    }
}

impl Large {
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Vec<u8>>() + self.text.len()
    }
}

/// A checked part of a sketch.
pub(super) struct Delta<'a> {
    pub(super) stamp: Stamp,
    pub(super) is_there: bool,
    pub(super) deadline: Deadline,
    registers: &'a [[u8; 3]],
}

/// Bits of a delta.
const THERE: u8 = 1;
const TIMED: u8 = 2;

/// The position of the string in a packed sketch.
const HEAD: usize = Stamp::SIZE + 1;

/// The highest rank that an observation has.
const MAX_RANK: u8 = 51;

impl<'a> Delta<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let (&stamp, rest) = bytes.split_first_chunk().ok_or(Corrupt)?;
        let (&bits, mut rest) = rest.split_first().ok_or(Corrupt)?;
        let mut deadline = Deadline::default();
        if bits & TIMED > 0 {
            let (bytes, after) = rest.split_at_checked(Deadline::SIZE).ok_or(Corrupt)?;
            deadline = Deadline::decode(bytes).map_err(|_| Corrupt)?;
            rest = after;
        }
        let (registers, rest) = rest.as_chunks();
        let delta = Delta {
            stamp: Stamp::from_bytes(stamp),
            is_there: bits & THERE > 0,
            deadline,
            registers,
        };
        let sound =
            |seen: Observation| seen.index < REGISTERS && (1..=MAX_RANK).contains(&seen.rank);
        let is_sound = bits <= THERE | TIMED
            && rest.is_empty()
            && (delta.is_there || registers.is_empty())
            && delta.seen().all(sound)
            && delta.seen().is_sorted_by(|a, b| a.index < b.index);
        is_sound.then_some(delta).ok_or(Corrupt)
    }

    fn seen(&self) -> impl Iterator<Item = Observation> {
        self.registers.iter().map(|&[high, low, rank]| Observation {
            index: usize::from(u16::from_be_bytes([high, low])),
            rank,
        })
    }

    pub(super) fn put_head(out: &mut Vec<u8>, stamp: Stamp, is_there: bool, deadline: Deadline) {
        let is_timed = deadline != Deadline::default();
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        out.extend_from_slice(&stamp.to_bytes());
        out.push(bit(is_there, THERE) | bit(is_timed, TIMED));
        if is_timed {
            deadline.encode(out);
        }
    }

    /// What is left without everything that was added below the stamp, or removed with it, if anything is.
    pub(super) fn since(&self, cut: Stamp) -> Option<Vec<u8>> {
        let is_kept = self.stamp > cut || self.stamp == cut && self.is_there;
        let stamp = if is_kept { self.stamp } else { Stamp::ZERO };
        let is_there = is_kept && self.is_there;
        let deadline = self.deadline.since(cut).unwrap_or_default();
        if !is_there && stamp == Stamp::ZERO && deadline == Deadline::default() {
            return None;
        }
        let mut out = Vec::new();
        Self::put_head(&mut out, stamp, is_there, deadline);
        if is_there {
            self.seen().for_each(|seen| Self::put(&mut out, seen));
        }
        Some(out)
    }

    pub(super) fn put(out: &mut Vec<u8>, seen: Observation) {
        out.extend_from_slice(&(seen.index as u16).to_be_bytes());
        out.push(seen.rank);
    }
}

impl<'a> View<'a> {
    /// The string that is read, if there is any.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            View::Packed(bytes) => {
                let head = if self.is_timed() { Deadline::SIZE } else { 0 };
                bytes.get(HEAD + head..).filter(|text| !text.is_empty())
            }
            View::Large(large) => Some(&large.text),
        }
    }

    fn is_timed(self) -> bool {
        match self {
            View::Packed(bytes) => bytes.get(Stamp::SIZE) == Some(&1),
            View::Large(large) => large.deadline != Deadline::default(),
        }
    }

    fn last_deadline(self) -> Deadline {
        match self {
            View::Packed(bytes) if self.is_timed() => {
                let bytes = bytes.get(HEAD..HEAD + Deadline::SIZE);
                // The kept bytes were encoded here.
                let deadline = bytes.and_then(|bytes| Deadline::decode(bytes).ok());
                deadline.unwrap_or_default()
            }
            View::Packed(_) => Deadline::default(),
            View::Large(large) => large.deadline,
        }
    }

    /// The deadline in effect; a deletion voids those that were set before it.
    #[inline]
    pub(super) fn deadline(self) -> Deadline {
        if !self.is_timed() {
            return Deadline::default();
        }
        let deadline = self.last_deadline();
        match self.stamp() > deadline.stamp() {
            true => Deadline::default(),
            false => deadline,
        }
    }

    pub(super) fn until(self) -> u64 {
        self.stamp().time.max(self.deadline().until())
    }

    /// See [`crate::object::Object::gone`].
    pub(super) fn gone(self, horizon: u64) -> Stamp {
        if !self.is_timed() {
            return Stamp::ZERO;
        }
        let stamp = Some(self.stamp()).filter(|stamp| stamp.time <= horizon);
        stamp.unwrap_or_default().max(self.deadline().gone(horizon))
    }

    pub(super) fn newest(self) -> Stamp {
        self.stamp().max(self.last_deadline().newest())
    }

    /// The text, if it is kept by reference.
    pub fn shared_text(self) -> Option<&'a Arc<Vec<u8>>> {
        match self {
            View::Packed(_) => None,
            View::Large(large) => Some(&large.text),
        }
    }

    /// The stamp of the last deletion, or the cut of a passed deadline.
    pub fn stamp(self) -> Stamp {
        match self {
            View::Packed(bytes) => bytes
                .first_chunk()
                .map_or(Stamp::ZERO, |&b| Stamp::from_bytes(b)),
            View::Large(large) => large.stamp,
        }
    }

    pub fn sketch(self) -> Option<hll::Sketch<'a>> {
        hll::Sketch::parse(self.text()?).ok()
    }

    pub(super) fn is_bottom(self) -> bool {
        matches!(self, View::Packed([]))
    }

    /// See [`crate::algebra::DataType::chunk`]. A position is a register.
    pub(super) fn chunk(self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let most = (budget / 3).max(1);
        let is_there = self.text().is_some();
        Delta::put_head(out, self.stamp(), is_there, self.last_deadline());
        let all = self.sketch()?.observations().ok()?;
        let mut rest = all.skip_while(|seen| (seen.index as u64) < at);
        rest.by_ref()
            .take(most)
            .for_each(|seen| Delta::put(out, seen));
        rest.next().map(|seen| seen.index as u64)
    }
}

impl State {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        match self {
            State::Packed(bytes) => View::Packed(bytes),
            State::Large(large) => View::Large(large),
        }
    }

    /// Merges a delta; returns whether that changed anything.
    pub(super) fn merge(&mut self, delta: &[u8], tuning: &Tuning) -> bool {
        let Ok(delta) = Delta::read(delta) else {
            return false;
        };
        let view = self.view();
        let (mut stamp, mut deadline) = (view.stamp(), view.last_deadline());
        let mut changed = deadline.merge(&delta.deadline);
        let mut text = self.take_text();
        // A passed deadline is a deletion, even if it was extended elsewhere.
        let last = delta.stamp.max(delta.deadline.cut());
        if last > stamp {
            (stamp, text, changed) = (last, None, true);
        }
        if delta.stamp == stamp && delta.is_there {
            changed |= text.is_none();
            let old = text.unwrap_or_else(hll::empty);
            // The kept bytes were written here.
            text = Editor::new(old, tuning.hll_sparse_max_bytes)
                .ok()
                .map(|mut editor| {
                    let mut raised = false;
                    for seen in delta.seen() {
                        raised |= editor.raise(seen);
                    }
                    if raised {
                        editor.mark_stale();
                    }
                    changed |= raised;
                    editor.into_value()
                });
        }
        *self = State::of(stamp, deadline, text);
        changed
    }

    /// See [`rufous_lattice::Register::meet`].
    pub(super) fn meet(&mut self, sent: View<'_>, horizon: u64, tuning: &Tuning) {
        let (mine, theirs) = (self.view().stamp(), sent.stamp());
        if !Stamp::are_of_one_life(mine, theirs, horizon) {
            return;
        }
        if mine < theirs {
            let deadline = self.view().last_deadline();
            *self = State::of(theirs, deadline, self.take_text());
        } else if let Some(added) = sent.sketch().and_then(|sketch| sketch.observations().ok()) {
            let mut delta = Vec::new();
            Delta::put_head(&mut delta, mine, true, Deadline::default());
            added.for_each(|seen| Delta::put(&mut delta, seen));
            self.merge(&delta, tuning);
        }
    }

    /// The string, without a copy if it is not shared.
    fn take_text(&mut self) -> Option<Vec<u8>> {
        let kept = self.view().text()?.len();
        match std::mem::take(self) {
            State::Packed(mut bytes) => {
                bytes.drain(..bytes.len() - kept);
                Some(bytes)
            }
            State::Large(large) => Some(Arc::unwrap_or_clone(large.text)),
        }
    }

    fn of(stamp: Stamp, deadline: Deadline, text: Option<Vec<u8>>) -> State {
        let is_timed = deadline != Deadline::default();
        if text.is_none() && !is_timed && stamp == Stamp::ZERO {
            return State::default();
        }
        let text = text.unwrap_or_default();
        if HEAD + Deadline::SIZE + text.len() > MAX_PACKED {
            let text = Arc::new(text);
            return State::Large(Box::new(Large {
                stamp,
                deadline,
                text,
            }));
        }
        let mut bytes = stamp.to_bytes().to_vec();
        bytes.push(is_timed.into());
        if is_timed {
            deadline.encode(&mut bytes);
        }
        bytes.extend_from_slice(&text);
        State::Packed(bytes)
    }
}

/// Deltas of few stamps and registers; one makes a sketch dense.
pub(super) fn samples() -> &'static [Vec<u8>] {
    static ALL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let mut all = Vec::new();
        for time in [0, 0, 1, 1, 2] {
            let stamp = Stamp::new(time, 1);
            let mut head = Vec::new();
            let none = Deadline::default();
            Delta::put_head(&mut head, stamp, true, none);
            all.push(head.clone());
            for registers in [&[(5, 3)][..], &[(5, 9), (77, 1)], &[(0, 2), (16383, 51)]] {
                let mut delta = head.clone();
                for &(index, rank) in registers {
                    Delta::put(&mut delta, Observation { index, rank });
                }
                all.push(delta);
            }
            if time > 0 {
                let mut gone = Vec::new();
                Delta::put_head(&mut gone, stamp, false, none);
                all.push(gone);
                for deadline in [none.set(stamp, 1), none.set(stamp, 1).passed()] {
                    let mut timed = Vec::new();
                    Delta::put_head(&mut timed, Stamp::ZERO, false, deadline);
                    all.push(timed);
                }
                let passed = none.set(stamp, 1).passed();
                let mut since = Vec::new();
                Delta::put_head(&mut since, passed.cut(), true, passed);
                Delta::put(&mut since, Observation { index: 5, rank: 4 });
                all.push(since);
            }
        }
        all
    });
    &ALL
}
