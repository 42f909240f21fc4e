//! Both shapes of a replicated sketch, and merging into them.

use crate::algebra::{Corrupt, MAX_PACKED, Tuning};
use crate::hll::{self, Editor, Observation, REGISTERS};
use rufous_lattice::Stamp;
use std::sync::{Arc, LazyLock};

/// See the description of [`super`].
#[derive(Clone, Debug)]
pub enum State {
    Packed(Vec<u8>),
    Large(Box<Large>),
}

/// A sketch that fits no record. Copies share its string.
#[derive(Clone, Debug)]
pub struct Large {
    stamp: Stamp,
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

/// A part of a sketch that was looked at.
pub(super) struct Delta<'a> {
    pub(super) stamp: Stamp,
    pub(super) is_there: bool,
    registers: &'a [[u8; 3]],
}

/// The highest rank that an observation has.
const MAX_RANK: u8 = 51;

impl<'a> Delta<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let (&stamp, rest) = bytes.split_first_chunk().ok_or(Corrupt)?;
        let (&is_there, rest) = rest.split_first().ok_or(Corrupt)?;
        let (registers, rest) = rest.as_chunks();
        let delta = Delta {
            stamp: Stamp::from_bytes(stamp),
            is_there: is_there == 1,
            registers,
        };
        let sound =
            |seen: Observation| seen.index < REGISTERS && (1..=MAX_RANK).contains(&seen.rank);
        let is_sound = is_there <= 1
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

    pub(super) fn put_head(out: &mut Vec<u8>, stamp: Stamp, is_there: bool) {
        out.extend_from_slice(&stamp.to_bytes());
        out.push(is_there.into());
    }

    pub(super) fn put(out: &mut Vec<u8>, seen: Observation) {
        out.extend_from_slice(&(seen.index as u16).to_be_bytes());
        out.push(seen.rank);
    }
}

impl<'a> View<'a> {
    /// What is read, if there is anything.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            View::Packed(bytes) => bytes.get(Stamp::SIZE..).filter(|text| !text.is_empty()),
            View::Large(large) => Some(&large.text),
        }
    }

    /// The text, where it is kept by reference.
    pub fn shared_text(self) -> Option<&'a Arc<Vec<u8>>> {
        match self {
            View::Packed(_) => None,
            View::Large(large) => Some(&large.text),
        }
    }

    /// Of the last deletion.
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
        Delta::put_head(out, self.stamp(), self.text().is_some());
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
        let stamp = self.view().stamp();
        if delta.stamp < stamp {
            return false;
        }
        let mut changed = delta.stamp > stamp;
        if changed {
            *self = State::Packed(delta.stamp.to_bytes().to_vec());
        }
        if !delta.is_there {
            return changed;
        }
        let text = self.take_text();
        changed |= text.is_none();
        let text = text.unwrap_or_else(hll::empty);
        // What is kept was written here.
        let Ok(mut editor) = Editor::new(text, tuning.hll_sparse_max_bytes) else {
            return changed;
        };
        let mut raised = false;
        for seen in delta.seen() {
            raised |= editor.raise(seen);
        }
        if raised {
            editor.mark_stale();
        }
        *self = State::of(delta.stamp, editor.into_value());
        changed || raised
    }

    /// The string, without a copy where nobody else has it.
    fn take_text(&mut self) -> Option<Vec<u8>> {
        match std::mem::take(self) {
            State::Packed(mut bytes) => {
                let text = bytes.drain(..Stamp::SIZE.min(bytes.len()));
                drop(text);
                (!bytes.is_empty()).then_some(bytes)
            }
            State::Large(large) => Some(Arc::unwrap_or_clone(large.text)),
        }
    }

    fn of(stamp: Stamp, text: Vec<u8>) -> State {
        if Stamp::SIZE + text.len() <= MAX_PACKED {
            return State::Packed([&stamp.to_bytes(), &text[..]].concat());
        }
        let text = Arc::new(text);
        State::Large(Box::new(Large { stamp, text }))
    }
}

/// Deltas of few stamps and registers; one makes a sketch dense.
pub(super) fn samples() -> &'static [Vec<u8>] {
    static ALL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let mut all = Vec::new();
        for time in [0, 0, 1, 1, 2] {
            let stamp = Stamp {
                time,
                replica: 1,
                step: 0,
            };
            let mut head = Vec::new();
            Delta::put_head(&mut head, stamp, true);
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
                Delta::put_head(&mut gone, stamp, false);
                all.push(gone);
            }
        }
        all
    });
    &ALL
}
