//! Sets: members without order, each once.
//!
//! Which operations are independent is [Claret, Table 2], applied to replies
//! too: an add whose reply says whether the member was new depends on other adds
//! of it, and no longer does once the member is present.

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Merge, Rule, Tuning, When};
use crate::declared::{in_table, operations, rules};
use crate::integer::is_canonical_integer;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use crate::pack::{self, Pack};
use crate::replicated::{Replicate, shared_set};
use crate::table::{self, Put, Shape, Table};
use rufous_base::rng::Rng;
use std::collections::BTreeSet;

/// See the module's description.
#[derive(Debug)]
pub struct Set;

pub type State = Table<1>;
pub type View<'a> = table::View<'a, 1>;

operations! {
    #[derive(Clone, Copy, Debug)]
    pub enum Op<'a> {
        /// Answers whether the member is new.
        Add { member: &'a [u8] } = Add "add(x): bool",
        /// Answers whether the member was there. What takes out any member
        /// chooses one first.
        Remove { member: &'a [u8] } = Remove "remove(x): bool",
        Contains { member: &'a [u8] } = Read "contains(x): bool",
        Size = Read "size(): int",
        Members = Read "members(): set",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Bool(bool),
    Count(usize),
    Members(BTreeSet<Vec<u8>>),
}

impl Reply {
    /// Whether it says yes.
    #[inline]
    pub fn is_true(&self) -> bool {
        *self == Reply::Bool(true)
    }

    /// The reply to a read that one of all members answers as well.
    fn answer(&self, op: &Op<'_>) -> Reply {
        match (self, op) {
            (Reply::Members(all), Op::Contains { member }) => Reply::Bool(all.contains(*member)),
            (Reply::Members(all), Op::Size) => Reply::Count(all.len()),
            _ => self.clone(),
        }
    }
}

/// Larger sets are not looked through for anything but integers.
const MOST_INTEGERS: usize = 1 << 14;

#[inline]
fn shape(tuning: &Tuning) -> Shape {
    Shape {
        packing: tuning.set,
        seed: tuning.seed,
    }
}

/// The member that an operation is about.
fn member<'a>(op: &Op<'a>) -> Option<&'a [u8]> {
    match *op {
        Op::Add { member } | Op::Remove { member } | Op::Contains { member } => Some(member),
        Op::Size | Op::Members => None,
    }
}

fn present(held: &Held<Op<'_>>, view: View<'_>) -> bool {
    member(&held.op).is_some_and(|member| view.contains(member))
}

fn apart(a: &Held<Op<'_>>, b: &Held<Op<'_>>) -> bool {
    member(&a.op) != member(&b.op)
}

fn quiet(a: &Held<Op<'_>>, b: &Held<Op<'_>>) -> bool {
    !a.wanted && !b.wanted
}

rules! {
    static RULES of Set:
        Add, Add: "x ≠ y, or x ∈ S, or neither reply is wanted", |a, b, view| apart(a, b) || present(a, view) || quiet(a, b);
        Remove, Remove: "x ≠ y, or x ∉ S, or neither reply is wanted", |a, b, view| apart(a, b) || !present(a, view) || quiet(a, b);
        Remove, Add: "x ≠ y", |a, b, _| apart(a, b);
        Contains, Add: "x ≠ y, or y ∈ S, or contains(x) is not wanted", |a, b, view| apart(a, b) || present(b, view) || !a.wanted;
        Contains, Remove: "x ≠ y, or y ∉ S, or contains(x) is not wanted", |a, b, view| apart(a, b) || !present(b, view) || !a.wanted;
        Size, Add: ADDS_NOTHING;
        Size, Remove: REMOVES_NOTHING;
        Members, Add: ADDS_NOTHING;
        Members, Remove: REMOVES_NOTHING;
}

const ADDS_NOTHING: When<Set> = When::If {
    text: "y ∈ S, or the read is not wanted",
    holds: |read, add, view| present(add, view) || !read.wanted,
};

const REMOVES_NOTHING: When<Set> = When::If {
    text: "y ∉ S, or the read is not wanted",
    holds: |read, remove, view| !present(remove, view) || !read.wanted,
};

impl Algebra for Set {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "sets";
    const ABOUT: &'static str = "Members without order, each once. Adds of different members \
        never meet, and neither do adds of the same member whose replies nobody needs, or once it \
        is there. States merge to their union; a removal is none of that lattice.";
    const MERGE: Option<Merge<Self>> = Some(merge);

    fn empty() -> State {
        Table::default()
    }

    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        match *op {
            Op::Add { member } => Reply::Bool(!view.contains(member)),
            Op::Remove { member } | Op::Contains { member } => Reply::Bool(view.contains(member)),
            Op::Size => Reply::Count(view.len()),
            Op::Members => Reply::Members(view.iter().map(|(m, _)| m.to_vec()).collect()),
        }
    }

    fn commit(state: &mut State, op: &Op<'_>, tuning: &Tuning) {
        match *op {
            Op::Add { member } => {
                state.put(member, b"", &shape(tuning));
            }
            Op::Remove { member } => {
                state.remove(member);
            }
            Op::Contains { .. } | Op::Size | Op::Members => {}
        }
    }

    #[inline]
    fn apply(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        let changed = match *op {
            Op::Add { member } => state.put(member, b"", &shape(tuning)) == Put::New,
            Op::Remove { member } => state.remove(member),
            _ => {
                let reply = Self::execute(state.view(), op);
                return Applied {
                    reply,
                    changed: false,
                };
            }
        };
        Applied {
            reply: Reply::Bool(changed),
            changed,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        match *op {
            Op::Add { member } => {
                let mode = touch.update_or(Mode::Insert);
                touch.makes().element(member, mode).size(Mode::Shift);
            }
            Op::Remove { member } => {
                let mode = touch.update_or(Mode::Discard);
                touch.ends(1).element(member, mode).size(Mode::Shift);
            }
            Op::Contains { member } => {
                touch.sees().element(member, Mode::Read);
            }
            Op::Size => {
                touch.sees().size(Mode::Read);
            }
            Op::Members => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        match (pending, new) {
            (Op::Size, Op::Size) => Some(Op::Size),
            (Op::Members, Op::Contains { .. } | Op::Size | Op::Members)
            | (Op::Contains { .. } | Op::Size, Op::Members) => Some(Op::Members),
            _ if member(pending).is_none() || member(pending) != member(new) => None,
            // Of two updates of one member the later one decides, and replies
            // with the state before both.
            (_, Op::Add { .. } | Op::Remove { .. }) => Some(*new),
            _ => Some(*pending),
        }
    }

    fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
        let Reply::Bool(combined_says) = *combined else {
            return (combined.answer(pending), combined.answer(new));
        };
        let ran = match new {
            Op::Add { .. } | Op::Remove { .. } => new,
            _ => pending,
        };
        let before = match ran {
            Op::Add { .. } => !combined_says,
            _ => combined_says,
        };
        // Each op's reply, and whether the member is there after it.
        let step = |op: &Op<'_>, there: bool| match op {
            Op::Add { .. } => (Reply::Bool(!there), true),
            Op::Remove { .. } => (Reply::Bool(there), false),
            _ => (Reply::Bool(there), there),
        };
        let (first, between) = step(pending, before);
        (first, step(new, between).0)
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = State::default();
        for name in NAMES {
            if rng.below(2) == 0 {
                state.put(name, b"", &shape(&Tuning::default()));
            }
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let member = NAMES[rng.below(NAMES.len() as u64) as usize];
        match rng.below(8) {
            0..=2 => Op::Add { member },
            3 | 4 => Op::Remove { member },
            5 => Op::Contains { member },
            6 => Op::Size,
            _ => Op::Members,
        }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        view.canonical()
    }
}

/// What samples are made of.
const NAMES: [&[u8]; 5] = [b"a", b"b", b"", b"17", b"a longer member"];

fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
    let mut changed = false;
    for (member, _) in from.iter() {
        changed |= into.put(member, b"", &shape(tuning)) == Put::New;
    }
    changed
}

impl DataType for Set {
    const REDIS_NAME: &'static str = "set";
    const REPLICATE: Option<Replicate<Self>> = Some(shared_set::REPLICATE);

    in_table!(shape);

    fn encoding(view: View<'_>, tuning: &Tuning) -> &'static str {
        let len = view.len();
        let mut members = view.iter().map(|(member, _)| member);
        match view {
            _ if len <= MOST_INTEGERS && members.all(is_canonical_integer) => {
                match len <= tuning.intset_entries {
                    true => "intset",
                    false => "hashtable",
                }
            }
            View::Large(_) => "hashtable",
            View::Packed(_) => "listpack",
        }
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        let (code, member) = match op {
            Op::Add { member } => (ADD, member),
            Op::Remove { member } => (REMOVE, member),
            Op::Contains { .. } | Op::Size | Op::Members => return,
        };
        out.push(code);
        pack::push(out, member);
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        let (&code, mut rest) = from.split_first().ok_or(Corrupt)?;
        let member = table::take(&mut rest)?;
        *from = rest;
        match code {
            ADD => Ok(Op::Add { member }),
            REMOVE => Ok(Op::Remove { member }),
            _ => Err(Corrupt),
        }
    }
}

/// Operations as logs have them: a code and the member.
const ADD: u8 = 0;
const REMOVE: u8 = 1;
