//! How rankings and their operations are stored. A ranking is an object of its
//! own, however small; chunks begin with `k`, then have items as those of
//! sorted sets.

use super::{Add, MAX_K, Op, State, TopK, View};
use crate::algebra::{Corrupt, DataType, Tuning};
use crate::pack::{self, Pack};
use crate::sorted_set::{self, SortedSet};

/// Bytes of `k`; items have more.
const K: usize = 4;

fn k_of(bytes: &[u8; K]) -> Option<u32> {
    let k = u32::from_le_bytes(*bytes);
    (1..=MAX_K).contains(&k).then_some(k)
}

impl DataType for TopK {
    const REDIS_NAME: &'static str = "ranking";

    fn packed_view(bytes: &[u8]) -> View<'_> {
        let (k, items) = bytes.split_first_chunk().unwrap_or((&[0; K], &[]));
        View {
            k: u32::from_le_bytes(*k),
            members: SortedSet::packed_view(items),
        }
    }

    fn from_packed(mut bytes: Vec<u8>) -> State {
        let k = TopK::packed_view(&bytes).k;
        bytes.drain(..K.min(bytes.len()));
        State {
            k,
            members: SortedSet::from_packed(bytes),
        }
    }

    fn packed(_: &State) -> Option<&[u8]> {
        None
    }

    fn into_buffer(_: State) -> Option<Vec<u8>> {
        None
    }

    fn is_empty(view: View<'_>) -> bool {
        view.is_empty()
    }

    fn len(view: View<'_>) -> usize {
        view.len()
    }

    fn heap_bytes(state: &State) -> usize {
        match &state.members {
            sorted_set::State::Packed(items) => items.capacity(),
            large => SortedSet::heap_bytes(large),
        }
    }

    fn encoding(view: View<'_>, tuning: &Tuning) -> &'static str {
        SortedSet::encoding(view.members, tuning)
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        if let Op::Add(add) = op {
            out.extend_from_slice(&add.k.to_le_bytes());
            out.extend_from_slice(&add.score.to_le_bytes());
            pack::push(out, add.member);
        }
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        let (k, rest) = from.split_first_chunk().ok_or(Corrupt)?;
        let (score, rest) = rest.split_first_chunk().ok_or(Corrupt)?;
        let k = k_of(k).ok_or(Corrupt)?;
        let score = f64::from_le_bytes(*score) + 0.0;
        let member = Pack(rest).entry_at(0).ok_or(Corrupt)?;
        let end = Pack(rest).next_offset(0).ok_or(Corrupt)?;
        if score.is_nan() {
            return Err(Corrupt);
        }
        *from = rest.get(end..).unwrap_or_default();
        Ok(Op::Add(Add { k, score, member }))
    }

    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        pack::push(out, &view.k.to_le_bytes());
        SortedSet::chunk(view.members, at, budget, out)
    }

    fn extend(state: &mut State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        let pack = Pack::checked(chunk).ok_or(Corrupt)?;
        let k = pack.entry_at(0).and_then(|k| k_of(k.try_into().ok()?));
        let k = k.ok_or(Corrupt)?;
        let items = &chunk[pack.next_offset(0).ok_or(Corrupt)?..];
        if items.is_empty() {
            return Err(Corrupt);
        }
        state.limit(k);
        SortedSet::extend(&mut state.members, items, tuning)?;
        state.trim(tuning);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Algebra;

    #[test]
    fn the_highest_stay_in_any_order() {
        let tuning = Tuning::default();
        let names: Vec<String> = (0..1000).map(|n| format!("{:04}", n * 7 % 1000)).collect();
        let ranked = |names: &mut dyn Iterator<Item = &String>| {
            let mut state = TopK::empty();
            for name in names {
                let add = Add {
                    k: 300,
                    score: name.parse().unwrap(),
                    member: name.as_bytes(),
                };
                TopK::commit(&mut state, &Op::Add(add), &tuning);
            }
            state
        };
        let (one, other) = (ranked(&mut names.iter()), ranked(&mut names.iter().rev()));
        let view = TopK::view(&one);
        assert_eq!(TopK::canonical(view), TopK::canonical(TopK::view(&other)));
        assert_eq!((view.len(), view.at(0)), (300, Some((&b"0999"[..], 999.0))));
        assert_eq!(view.at(299), Some((&b"0700"[..], 700.0)));
        assert_eq!(TopK::encoding(view, &tuning), "skiplist");
    }
}
