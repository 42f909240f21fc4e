//! How sorted sets and their operations are stored.

use super::order::{Cut, Zone};
use super::score::{is_item, is_rank, item_rank, member_of, rank_of, score_of};
use super::state::State;
use super::step::Step;
use super::view::View;
use super::{Only, Op, SortedSet};
use crate::algebra::{Corrupt, DataType, MAX_PACKED, Tuning};
use crate::distinct::Distinct;
use crate::pack::{self, Pack};
use crate::replicated::{Replicate, shared_sorted_set};

const ADD: u8 = 1;
const INCREMENT: u8 = 2;
const REMOVE: u8 = 3;
const REMOVE_RANGE: u8 = 4;

impl DataType for SortedSet {
    const REDIS_NAME: &'static str = "zset";
    const REPLICATE: Option<Replicate<Self>> = Some(shared_sorted_set::REPLICATE);

    #[inline]
    fn packed_view(bytes: &[u8]) -> View<'_> {
        View::Packed(bytes)
    }

    #[inline]
    fn from_packed(bytes: Vec<u8>) -> State {
        State::Packed(bytes)
    }

    #[inline]
    fn packed(state: &State) -> Option<&[u8]> {
        match state {
            State::Packed(items) => Some(items),
            State::Large(_) | State::Emptied(_) => None,
        }
    }

    #[inline]
    fn into_buffer(state: State) -> Option<Vec<u8>> {
        match state {
            State::Packed(items) => Some(items),
            State::Large(_) | State::Emptied(_) => None,
        }
    }

    #[inline]
    fn is_empty(view: View<'_>) -> bool {
        view.is_empty()
    }

    fn len(view: View<'_>) -> usize {
        view.len()
    }

    fn heap_bytes(state: &State) -> usize {
        state.heap_bytes()
    }

    fn own_bytes(state: &State) -> usize {
        state.own_bytes()
    }

    fn sweep(state: &mut State, budget: &mut usize) -> bool {
        state.sweep(budget)
    }

    fn encoding(view: View<'_>, _: &Tuning) -> &'static str {
        match view {
            View::Packed(_) => "listpack",
            View::Large(_) => "skiplist",
        }
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        let scored = |out: &mut Vec<u8>, kind, only: Only, score, member| {
            out.extend_from_slice(&[kind, only.bits()]);
            out.extend_from_slice(&rank_of(score).to_be_bytes());
            pack::push(out, member);
        };
        match *op {
            Op::Add {
                member,
                score,
                only,
            } => scored(out, ADD, only, score, member),
            Op::Increment { member, by, only } => scored(out, INCREMENT, only, by, member),
            Op::Remove { member } => {
                out.push(REMOVE);
                pack::push(out, member);
            }
            Op::RemoveRange { zone } => {
                out.push(REMOVE_RANGE);
                encode_cut(&zone.low, out);
                encode_cut(&zone.high, out);
            }
            _ => {}
        }
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        match take(from)? {
            kind @ (ADD | INCREMENT) => {
                let only = Only::from_bits(take(from)?).ok_or(Corrupt)?;
                let rank = take_rank(from)?;
                if !is_rank(rank) {
                    return Err(Corrupt);
                }
                let score = score_of(rank);
                let member = take_entry(from)?;
                Ok(match kind {
                    ADD => Op::Add {
                        member,
                        score,
                        only,
                    },
                    _ => Op::Increment {
                        member,
                        by: score,
                        only,
                    },
                })
            }
            REMOVE => Ok(Op::Remove {
                member: take_entry(from)?,
            }),
            REMOVE_RANGE => {
                let low = decode_cut(from)?;
                let high = decode_cut(from)?;
                let zone = Zone { low, high };
                Ok(Op::RemoveRange { zone })
            }
            _ => Err(Corrupt),
        }
    }

    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        view.chunk(at, budget, out)
    }

    /// Fastest for what chunks have: items in order, and behind all that is
    /// there.
    fn extend(state: &mut State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        if let State::Packed(items) = state
            && items.is_empty()
            && is_packed(chunk, tuning)
        {
            items.extend_from_slice(chunk);
            return Ok(());
        }
        let chunk = Pack::checked(chunk).ok_or(Corrupt)?;
        let mut last = state.view().last().map(<[u8]>::to_vec);
        for item in chunk {
            if !is_item(item) {
                return Err(Corrupt);
            }
            let behind = last.as_deref().is_none_or(|last| last < item);
            if let State::Large(large) = state
                && behind
            {
                if !large.push(item) {
                    return Err(Corrupt);
                }
            } else {
                let step = Step::Add {
                    score: score_of(item_rank(item)),
                    only: Only::default(),
                };
                state.step(member_of(item), step, tuning);
            }
            if behind {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(item);
            }
        }
        Ok(())
    }
}

fn encode_cut(cut: &Cut<'_>, out: &mut Vec<u8>) {
    let (kind, rank, member) = match *cut {
        Cut::Rank(rank) => (0, rank, None),
        Cut::Before(rank, member) => (1, rank, Some(member)),
        Cut::Behind(rank, member) => (2, rank, Some(member)),
    };
    out.push(kind);
    out.extend_from_slice(&rank.to_be_bytes());
    if let Some(member) = member {
        pack::push(out, member);
    }
}

fn decode_cut<'a>(from: &mut &'a [u8]) -> Result<Cut<'a>, Corrupt> {
    let kind = take(from)?;
    let rank = take_rank(from)?;
    match kind {
        0 => Ok(Cut::Rank(rank)),
        1 => Ok(Cut::Before(rank, take_entry(from)?)),
        2 => Ok(Cut::Behind(rank, take_entry(from)?)),
        _ => Err(Corrupt),
    }
}

fn take(from: &mut &[u8]) -> Result<u8, Corrupt> {
    let (&first, rest) = from.split_first().ok_or(Corrupt)?;
    *from = rest;
    Ok(first)
}

fn take_rank(from: &mut &[u8]) -> Result<u64, Corrupt> {
    let (rank, rest) = from.split_first_chunk().ok_or(Corrupt)?;
    *from = rest;
    Ok(u64::from_be_bytes(*rank))
}

fn take_entry<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], Corrupt> {
    let pack = Pack(from);
    let entry = pack.entry_at(0).ok_or(Corrupt)?;
    let end = pack.next_offset(0).ok_or(Corrupt)?;
    *from = from.get(end..).ok_or(Corrupt)?;
    Ok(entry)
}

/// Whether a chunk, which may come from a file, is as it stands a packed value
/// that is not empty: its items in order, none of them twice, nor a member.
fn is_packed(chunk: &[u8], tuning: &Tuning) -> bool {
    let packing = tuning.sorted_set;
    if chunk.is_empty() || chunk.len() > MAX_PACKED {
        return false;
    }
    let pack = Pack(chunk);
    let mut seen = Distinct::new(pack, member_of, packing.entries, tuning.seed);
    let (mut at, mut last) = (0, &[][..]);
    while at < chunk.len() {
        let Some((item, end)) = pack.checked_entry(at) else {
            return false;
        };
        if !is_item(item) || item <= last {
            return false;
        }
        let member = member_of(item);
        // More than there may be are not new.
        if member.len() > packing.bytes || !seen.is_new(at, member) {
            return false;
        }
        (at, last) = (end, item);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Algebra;
    use crate::sorted_set::order::Item;

    #[test]
    fn a_chunk_is_taken_as_it_stands_only_where_it_is_a_packed_value() {
        let tuning = Tuning::default();
        let packed = |items: &[(f64, &[u8])]| {
            let mut bytes = Vec::new();
            for (score, member) in items {
                pack::push(&mut bytes, &Item::new(rank_of(*score), member));
            }
            bytes
        };
        let is = |items: &[(f64, &[u8])]| is_packed(&packed(items), &tuning);
        let three = packed(&[(-1.0, b"c"), (2.5, b""), (2.5, b"a")]);
        assert!(is_packed(&three, &tuning));
        let mut state = SortedSet::empty();
        SortedSet::extend(&mut state, &three, &tuning).unwrap();
        assert_eq!(SortedSet::packed(&state), Some(&three[..]));
        // Out of order, an item twice, a member twice.
        assert!(!is(&[(2.0, b"a"), (1.0, b"b")]) && !is(&[(1.0, b"a"), (1.0, b"a")]));
        let twice = [(1.0, &b"a"[..]), (2.0, b"a")];
        assert!(!is(&twice));
        let mut state = SortedSet::empty();
        SortedSet::extend(&mut state, &packed(&twice), &tuning).unwrap();
        assert_eq!(SortedSet::len(SortedSet::view(&state)), 1);
        // Nothing, no whole item, no score, a member that is too long.
        assert!(!is(&[]) && !is_packed(&three[..three.len() - 1], &tuning));
        assert!(!is_packed(&[1, 0xff], &tuning));
        assert!(!is(&[(1.0, &[7; 65])]) && is(&[(1.0, &[7; 64])]));
        let names: Vec<[u8; 1]> = (0..129).map(|n| [n]).collect();
        let many: Vec<(f64, &[u8])> = names.iter().map(|name| (0.0, &name[..])).collect();
        assert!(is(&many[..128]) && !is(&many));
    }
}
