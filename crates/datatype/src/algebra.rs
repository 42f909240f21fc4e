//! What a data type declares: its operations, split as in
//! [Claret §3], and which of them are independent.
//!
//! The store needs nothing else: locks, chains, phasers, combiners, logs and
//! replicas work for every type alike. Declarations are not trusted: [`check`]
//! tries random groups of operations in every order, for every type that is
//! registered in [`crate::object`] (its tests do, and `cargo xtask algebra`).
//!
//! An operation concerns one element; a command on several is a list of
//! operations on one key. Operations are deterministic and contain everything
//! chosen at random or by the clock, so that a committed operation is also
//! what logs and replicas receive.

pub mod check;
pub mod pages;

use crate::key::footprint::Touch;
use crate::replicated::{Replicas, Replicate};
use rufous_base::rng::Rng;
use std::fmt::Debug;

/// Sizes at which collections change their shape, and the seed of their
/// hashes. What operations mean does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Clients must not be able to guess it.
    pub seed: u64,
    pub hash: Packing,
    pub list: Packing,
    pub set: Packing,
    pub sorted_set: Packing,
    /// A set of up to this many integers is called an `intset`.
    pub intset_entries: usize,
    /// Bytes that a sparse HyperLogLog may have.
    pub hll_sparse_max_bytes: usize,
}

/// Up to where a collection is kept packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Fields, members or elements.
    pub entries: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// The largest packed collection in bytes: with its key and head it fits a record.
pub const MAX_PACKED: usize = 3500;

impl Default for Tuning {
    fn default() -> Self {
        let packing = Packing {
            entries: 128,
            bytes: 64,
        };
        Self {
            seed: 0,
            hash: packing,
            list: Packing {
                entries: 128,
                bytes: MAX_PACKED,
            },
            set: packing,
            sorted_set: packing,
            intset_entries: 512,
            hll_sparse_max_bytes: crate::hll::DEFAULT_SPARSE_MAX_BYTES,
        }
    }
}

/// An operation that holds a lock, or requests one.
#[derive(Clone, Copy, Debug)]
pub struct Held<O> {
    pub op: O,
    /// Whether the client reads the reply: if not, the operation is independent
    /// of more.
    pub wanted: bool,
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied<R> {
    pub reply: R,
    /// Whether the state is another now.
    pub changed: bool,
}

/// When two operations are independent: in either order they leave the same
/// state and give the same replies, as far as those are wanted.
pub struct Rule<T: Algebra + ?Sized> {
    /// Kinds of the two, in any order.
    pub pair: (T::Kind, T::Kind),
    pub when: When<T>,
}

/// The condition of a [`Rule`].
pub enum When<T: Algebra + ?Sized> {
    Always,
    Never,
    If {
        /// As documentation shows it: `x` is the element of the first
        /// operation, `y` that of the second, `S` the state.
        text: &'static str,
        /// Given the operations in the order of the rule's pair.
        holds: Condition<T>,
    },
}

pub type Condition<T> = for<'a, 's> fn(
    &Held<<T as Algebra>::Op<'a>>,
    &Held<<T as Algebra>::Op<'a>>,
    <T as Algebra>::View<'s>,
) -> bool;

/// An operation; `operations!` declares those of a type.
pub trait Operation: Copy + Debug {
    type Kind: Kind;
    fn kind(&self) -> Self::Kind;
    /// See [`Kind::is_read`].
    fn is_read(&self) -> bool {
        self.kind().is_read()
    }
}

/// The operations of a type, without their arguments.
pub trait Kind: Copy + Eq + Debug + 'static {
    /// Every kind, with the operation as documentation writes it.
    const ALL: &'static [(Self, &'static str)];
    fn phase(self) -> Phase;
    /// Whether the operation never changes anything.
    fn is_read(self) -> bool {
        self.phase() == Phase::Read
    }
}

/// A data type's operations and their algebra.
pub trait Algebra: 'static {
    /// Owned.
    type State: Clone + Debug + Send + Sync;
    /// To be read.
    type View<'a>: Copy;
    type Op<'a>: Operation<Kind = Self::Kind>;
    type Kind: Kind;
    /// Everything that a client may learn from an operation, errors included.
    /// Equal replies say the same: where order promises nothing, as among the
    /// members of a set, equality must not see it.
    type Reply: Clone + PartialEq + Debug;

    /// As it is known in documentation.
    const NAME: &'static str;
    /// What the type is for, and what about its algebra is worth knowing: the
    /// beginning of its page.
    const ABOUT: &'static str;

    /// The state of a key that is not there.
    fn empty() -> Self::State;
    fn view(state: &Self::State) -> Self::View<'_>;

    /// What the operation answers; changes nothing.
    fn execute(view: Self::View<'_>, op: &Self::Op<'_>) -> Self::Reply;

    /// Does what the operation does, whatever it answers.
    fn commit(state: &mut Self::State, op: &Self::Op<'_>, tuning: &Tuning);

    /// Both in one pass.
    fn apply(state: &mut Self::State, op: &Self::Op<'_>, tuning: &Tuning) -> Applied<Self::Reply>;

    /// Pairs of kinds that are not listed are independent if both are reads,
    /// and never otherwise.
    fn rules() -> &'static [Rule<Self>];

    /// Whether `new` is independent of all held operations: in every order of
    /// them all, the state and the wanted replies are the same. `view` is the
    /// state before any of them. The same must hold for each subset of them,
    /// because a held operation may be given up. A single operation is always
    /// admitted.
    ///
    /// Checking pairs suffices for types whose rules stay true whatever
    /// admitted operations do; other types check the whole group, and refuse
    /// more than the rules, never less.
    fn admits<'a>(
        held: &[Held<Self::Op<'a>>],
        new: &Held<Self::Op<'a>>,
        view: Self::View<'_>,
    ) -> bool {
        held.iter().all(|held| independent::<Self>(held, new, view))
    }

    /// What of a key the operation reads and writes, in whatever state: see
    /// [`crate::key`]. What is given here suffices for any operation; types
    /// that say less let more be compared without a look into the state.
    fn touch(op: &Self::Op<'_>, touch: &mut Touch) {
        if op.is_read() {
            touch.reads_all();
        } else {
            touch.changes_all();
        }
    }

    /// What `admits` looks at beyond pairs, for documentation.
    const BEYOND_PAIRS: Option<&'static str> = None;

    /// Operations of one phase are let in together [Claret §4.2].
    fn phase(op: &Self::Op<'_>) -> Phase {
        op.kind().phase()
    }

    /// One operation that stands for both, where there is one [Claret §4.3];
    /// [`Algebra::share`] makes both replies of its reply.
    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>>;

    /// The replies of `pending` and `new`, made of the reply of what
    /// [`Algebra::combine`] made of them.
    fn share(
        pending: &Self::Op<'_>,
        new: &Self::Op<'_>,
        combined: &Self::Reply,
    ) -> (Self::Reply, Self::Reply) {
        let _ = (pending, new);
        (combined.clone(), combined.clone())
    }

    /// Whether the combined operation, answering this, did what both would
    /// have done. If not, it must have changed nothing, and both are run by
    /// themselves: a sum may not fit where its first part does.
    fn stands_for_both(_combined: &Self::Reply) -> bool {
        true
    }

    /// The least state above both, where states form a join-semilattice with
    /// the missing key at its bottom.
    const MERGE: Option<Merge<Self>> = None;

    /// A state of few elements, so that operations meet.
    fn sample_state(rng: &mut Rng) -> Self::State;
    /// An operation on such elements: every kind, with every option.
    fn sample_op(rng: &mut Rng) -> Self::Op<'static>;
    /// Bytes that differ if and only if two states differ, whatever their shape.
    fn canonical(view: Self::View<'_>) -> Vec<u8>;
}

/// Which operations are let in together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Read,
    /// Updates that are mostly independent of each other: adds.
    Add,
    /// Updates that take away.
    Remove,
    /// Anything else: one at a time.
    Alone,
}

/// Makes the first state the least one above both; returns whether it changed.
pub type Merge<T> =
    for<'s> fn(&mut <T as Algebra>::State, <T as Algebra>::View<'s>, &Tuning) -> bool;

/// Bytes that no operation or state is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a value of this type")
    }
}

impl std::error::Error for Corrupt {}

/// A type whose values the store keeps.
pub trait DataType: Algebra {
    /// What `TYPE` answers.
    const REDIS_NAME: &'static str;
    /// How the type is replicated, where all replicas take writes.
    const REPLICATE: Option<Replicate<Self>> = None;
    /// What the type has beyond others, if it is such a replicated one.
    const REPLICAS: Option<Replicas<Self>> = None;

    /// A view of packed bytes that [`DataType::packed`] gave.
    fn packed_view(bytes: &[u8]) -> Self::View<'_>;
    /// Takes over packed bytes.
    fn from_packed(bytes: Vec<u8>) -> Self::State;
    /// The bytes of a state that is packed.
    fn packed(state: &Self::State) -> Option<&[u8]>;
    /// The buffer of a state that is packed, to be used again.
    fn into_buffer(state: Self::State) -> Option<Vec<u8>>;

    /// Whether packed values of this type grow and shrink so often that room
    /// is left around them.
    const KEEPS_ROOM: bool = false;
    /// Commits an operation to packed bytes where they lie: the first `len` of
    /// `room`. Returns how many they are then, or does nothing: not every
    /// operation can be done so, nor with every room.
    #[inline]
    fn commit_packed(
        room: &mut [u8],
        len: usize,
        op: &Self::Op<'_>,
        tuning: &Tuning,
    ) -> Option<usize> {
        let _ = (room, len, op, tuning);
        None
    }

    fn is_empty(view: Self::View<'_>) -> bool;
    /// Elements.
    fn len(view: Self::View<'_>) -> usize;
    /// What a state that is not packed has on the heap, in constant time.
    fn heap_bytes(state: &Self::State) -> usize;
    /// Of that, about what no copy shares, in less time than dropping it.
    fn own_bytes(state: &Self::State) -> usize {
        Self::heap_bytes(state)
    }
    /// What operations have removed from a state as a whole and that takes
    /// time to drop, so that it can be dropped in the background. Until then
    /// it is no part of the state, nor of [`DataType::heap_bytes`].
    fn take_waste(state: &mut Self::State) -> Option<Self::State> {
        let _ = state;
        None
    }
    /// Continues the work that operations on a state that is not packed have
    /// deferred; it changes nothing that a view shows. It takes about a
    /// microsecond for each unit of the budget, which it reduces, and returns
    /// whether more is left.
    fn sweep(state: &mut Self::State, budget: &mut usize) -> bool {
        let _ = (state, budget);
        false
    }
    /// What `OBJECT ENCODING` answers: how Redis would keep it.
    fn encoding(view: Self::View<'_>, tuning: &Tuning) -> &'static str;

    /// Appends the committed operation's bytes.
    fn encode(op: &Self::Op<'_>, out: &mut Vec<u8>);
    /// Takes one operation off the front.
    fn decode<'a>(from: &mut &'a [u8]) -> Result<Self::Op<'a>, Corrupt>;

    /// Appends elements from position `at` on (0 is the first), about
    /// `budget` bytes of them and at least one; returns the position after
    /// them, `None` at the end. Positions hold while the state is the same.
    fn chunk(view: Self::View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64>;
    /// Adds the elements of a chunk, which may come from a file.
    fn extend(state: &mut Self::State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt>;
}

/// Whether two operations are independent, by the type's rules.
pub fn independent<'a, T: Algebra + ?Sized>(
    a: &Held<T::Op<'a>>,
    b: &Held<T::Op<'a>>,
    view: T::View<'_>,
) -> bool {
    let (kind_a, kind_b) = (a.op.kind(), b.op.kind());
    for rule in T::rules() {
        let (first, second) = if rule.pair == (kind_a, kind_b) {
            (a, b)
        } else if rule.pair == (kind_b, kind_a) {
            (b, a)
        } else {
            continue;
        };
        return match rule.when {
            When::Always => true,
            When::Never => false,
            When::If { holds, .. } => holds(first, second, view),
        };
    }
    kind_a.is_read() && kind_b.is_read()
}
