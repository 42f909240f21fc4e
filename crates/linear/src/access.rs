//! Transactions whose slots only know which keys they read and which they may write: two that read a key do not depend
//! on one another, and all others wait for one another.
//!
//! That is what messages and books say of an operation. A slot that can read the commands knows more ([`Typed`]).

use crate::codec::Coded;
use crate::txn::{Holders, Operation, Part, Relation};
use crate::typed::Typed;
use rufous_datatype::key::{Condition, Footprint, Held, Key, Op, Put};
use std::sync::LazyLock;

/// What a transaction does to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    Read,
    Write,
}

impl Operation for Access {
    type Holders = Counts;

    fn relation(&self, other: &Self) -> Relation {
        match (self, other) {
            (Self::Read, Self::Read) => Relation::Independent,
            _ => Relation::Conflicting,
        }
    }

    fn writes(&self) -> bool {
        *self == Self::Write
    }
}

/// As an operation of which no more is known: nothing that it may have seen of the key may change.
impl From<Access> for Typed<Access> {
    fn from(access: Access) -> Self {
        static READ: LazyLock<Footprint> = LazyLock::new(|| whole(&[Op::Dump]));
        static WRITE: LazyLock<Footprint> = LazyLock::new(|| {
            let key = &Key::default();
            let only_new = true;
            whole(&[Op::Take, Op::Put(Put { key, only_new })])
        });
        let footprint = match access {
            Access::Read => &READ,
            Access::Write => &WRITE,
        };
        Self::with(access, Footprint::clone(footprint))
    }
}

fn whole(ops: &[Op<'_>]) -> Footprint {
    let mut all = Footprint::default();
    for op in ops {
        let held = Held {
            op: *op,
            wanted: true,
            shown: true,
            condition: Condition::Version,
        };
        all.join(held.footprint());
    }
    all
}

/// How many that hold a key only read it, and how many may write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    readers: u32,
    writers: u32,
}

impl Counts {
    fn of(&mut self, part: &Part<Access>) -> &mut u32 {
        if part.writes() {
            &mut self.writers
        } else {
            &mut self.readers
        }
    }
}

impl Holders<Access> for Counts {
    type Standing = ();

    fn hold(&mut self, part: &Part<Access>) {
        *self.of(part) += 1;
    }

    fn release(&mut self, part: &Part<Access>) {
        let count = self.of(part);
        *count = count.saturating_sub(1);
    }

    fn relation(&self, part: &Part<Access>, _: Option<&()>) -> Relation {
        if self.writers > 0 || (part.writes() && self.readers > 0) {
            Relation::Conflicting
        } else {
            Relation::Independent
        }
    }

    fn pair(&self, [a, b]: [&Part<Access>; 2], _: Option<&()>) -> Relation {
        a.relation(b)
    }
}

impl Coded for Access {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Read => 0,
            Self::Write => 1,
        });
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let (kind, rest) = from.split_first()?;
        *from = rest;
        match kind {
            0 => Some(Self::Read),
            1 => Some(Self::Write),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::Pairs;

    /// Every part with at most two accesses, with and without an expected version.
    fn parts() -> Vec<Part<Access>> {
        let lists: [&[Access]; 4] = [
            &[Access::Read],
            &[Access::Write],
            &[Access::Read, Access::Write],
            &[Access::Read, Access::Read],
        ];
        let each = lists.into_iter().flat_map(|ops| {
            [None, Some(None)].map(|expects| Part {
                slot: 1,
                key: b"k".as_slice().into(),
                ops: ops.to_vec(),
                expects,
            })
        });
        each.collect()
    }

    #[test]
    fn without_more_knowledge_operations_are_related_as_their_accesses_are() {
        for a in [Access::Read, Access::Write] {
            for b in [Access::Read, Access::Write] {
                let (typed_a, typed_b) = (Typed::from(a), Typed::from(b));
                assert_eq!(typed_a.relation(&typed_b), a.relation(&b), "{a:?} {b:?}");
            }
            assert_eq!(Typed::from(a).writes(), a.writes());
        }
    }

    #[test]
    fn counts_say_what_a_comparison_with_each_holder_says() {
        let all = parts();
        // Of the parts, every set holds the key.
        for set in 0..1u32 << all.len() {
            let (mut counts, mut pairs) = (Counts::default(), Pairs::default());
            let held = all.iter().enumerate();
            for (_, part) in held.filter(|(at, _)| set & (1 << at) != 0) {
                counts.hold(part);
                pairs.hold(part);
            }
            for part in &all {
                // A part conflicts with another where both are of one key and either of them writes.
                let known: Relation = Holders::<Access>::relation(&pairs, part, None);
                assert_eq!(counts.relation(part, None), known, "{set:b} {part:?}");
            }
            let held = all.iter().enumerate();
            for (_, part) in held.filter(|(at, _)| set & (1 << at) != 0) {
                counts.release(part);
            }
            assert_eq!(counts, Counts::default());
        }
    }
}
