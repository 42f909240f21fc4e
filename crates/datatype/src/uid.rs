//! Unique identifiers without order [Claret §5]: the usual purpose of a
//! counter, without the promise that makes counters slow. No identifier is
//! given out twice; no order among them is promised, and so all
//! operations that take one are independent.
//!
//! State: every number from this one on is free, little endian.

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Rule, Tuning, When};
use crate::declared::{operations, packed_alone, rules};
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use rufous_base::rng::Rng;

/// See the module's description.
#[derive(Debug)]
pub struct Uid;

operations! {
    #[derive(Clone, Copy, Debug)]
    pub enum Op {
        /// Takes an identifier. The executor chooses one that is neither
        /// taken nor held: [`free`] returns one.
        Next { id: u64 } = Add "next(): id",
        /// From where on none is taken.
        Peek = Read "peek(): int",
    }
}

/// An identifier that is neither taken nor held.
pub fn free(held: &[Held<Op>], next: u64) -> u64 {
    let taken = held.iter().filter_map(|held| match held.op {
        Op::Next { id } => id.checked_add(1),
        Op::Peek => None,
    });
    taken.fold(next, u64::max)
}

fn read(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&b| u64::from_le_bytes(b))
}

rules! {
    static RULES of Uid:
        Next, Next: When::Always;
        Next, Peek: "x < S, or peek() is not wanted", |next, peek, view| match next.op {
            Op::Next { id } => id < read(view) || !peek.wanted,
            Op::Peek => true,
        };
}

impl Algebra for Uid {
    type State = Vec<u8>;
    type View<'a> = &'a [u8];
    type Op<'a> = Op;
    type Kind = Kind;
    type Reply = u64;

    const NAME: &'static str = "unique identifiers";
    const ABOUT: &'static str = "Identifiers that are never given out twice and come in no \
        promised order. A counter would have to answer in sequence; here nobody waits for anybody.";

    fn empty() -> Vec<u8> {
        Vec::new()
    }

    fn view(state: &Vec<u8>) -> &[u8] {
        state
    }

    fn execute(view: &[u8], op: &Op) -> u64 {
        match *op {
            Op::Next { id } => id,
            Op::Peek => read(view),
        }
    }

    fn commit(state: &mut Vec<u8>, op: &Op, _: &Tuning) {
        if let Op::Next { id } = *op {
            let next = read(state).max(id.saturating_add(1));
            state.clear();
            state.extend_from_slice(&next.to_le_bytes());
        }
    }

    fn apply(state: &mut Vec<u8>, op: &Op, tuning: &Tuning) -> Applied<u64> {
        let before = read(state);
        let reply = Self::execute(state, op);
        Self::commit(state, op, tuning);
        Applied {
            reply,
            changed: read(state) != before,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn touch(op: &Op, touch: &mut Touch) {
        match *op {
            Op::Next { .. } => {
                touch.makes().whole(Mode::Shift);
            }
            Op::Peek => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        match (pending, new) {
            (Op::Peek, Op::Peek) => Some(Op::Peek),
            _ => None,
        }
    }

    fn sample_state(rng: &mut Rng) -> Vec<u8> {
        match rng.below(4) {
            0 => Vec::new(),
            n => (n * 2).to_le_bytes().to_vec(),
        }
    }

    fn sample_op(rng: &mut Rng) -> Op {
        match rng.below(3) {
            0 => Op::Peek,
            _ => Op::Next { id: rng.below(12) },
        }
    }

    fn canonical(view: &[u8]) -> Vec<u8> {
        read(view).to_le_bytes().to_vec()
    }
}

impl DataType for Uid {
    const REDIS_NAME: &'static str = "uid";

    packed_alone!();

    fn len(_: &[u8]) -> usize {
        1
    }

    fn encoding(_: &[u8], _: &Tuning) -> &'static str {
        "int"
    }

    fn encode(op: &Op, out: &mut Vec<u8>) {
        if let Op::Next { id } = op {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        let (id, rest) = from.split_first_chunk().ok_or(Corrupt)?;
        *from = rest;
        let id = u64::from_le_bytes(*id);
        Ok(Op::Next { id })
    }

    fn extend(state: &mut Vec<u8>, chunk: &[u8], _: &Tuning) -> Result<(), Corrupt> {
        // Nothing taken is a missing key.
        if chunk.len() != 8 || read(chunk) == 0 {
            return Err(Corrupt);
        }
        state.clear();
        state.extend_from_slice(chunk);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::independent;

    #[test]
    fn what_is_held_is_not_chosen_again() {
        let held = |id| Held {
            op: Op::Next { id },
            wanted: true,
        };
        assert_eq!(free(&[], 5), 5);
        let two = [held(5), held(7)];
        let id = free(&two, 5);
        assert_eq!(id, 8);
        let state = 5u64.to_le_bytes();
        assert!(Uid::admits(&two, &held(id), &state));
        assert!(independent::<Uid>(&two[0], &two[1], &state));
    }
}
