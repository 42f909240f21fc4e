//! Keys: a value of any type, its deadline, and whether there is a key at all, with the operations that concern these.
//!
//! The algebra of a type speaks of its value alone. A key adds what no type knows: the first element creates it, the last
//! removal deletes it with its deadline, and `DEL`, `EXPIRE` or `RENAME` concern it whatever its type. [`Keys`] is the
//! algebra of all that: its operations are those of each type ([`Typed`]) and those of keys.
//!
//! Two operations on a key are, by [`Relation`],
//!
//! - *independent*, if every order gives the same replies, as far as these are wanted, and leaves the same key;
//! - *orderable*, if they depend on one another, and nothing about them was observed or promised: either order is right;
//! - *conflicting*, if a reply that was shown or a condition that was checked may change by the other.
//!
//! | module | what it has |
//! |---|---|
//! | [`access`] | what of a key is read and written, and what commutes |
//! | [`footprint`] | the accesses of an operation, with what was observed of it or promised |
//! | [`holders`] | all that hold a key, as counts |
//! | [`typed`] | operations of all types |
//! | [`act`] | what operations on keys do |
//! | [`sample`] | keys and operations to try the algebra with |

pub mod access;
mod act;
pub mod footprint;
pub mod holders;
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod typed;

use crate::algebra::{self, Algebra, Applied, Phase, Rule, Tuning, When};
use crate::expire::ExpireCondition;
pub use act::{holds, run};
pub use footprint::{Condition, Footprint, Held};
pub use holders::{Holders, Standing};
use rufous_base::rng::Rng;
use std::sync::OnceLock;
pub use typed::{Type, Typed, TypedReply, Value};

/// How two operations on a key, or two transactions at a slot, may run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// They need no order.
    Independent,
    /// Either order is right, if all slots take the same one.
    Orderable,
    /// One has observed what the other may change.
    Conflicting,
}

/// A key: nothing, or a value with its deadline in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Key(Option<(Value, Option<i64>)>);

impl Key {
    pub fn new(value: Value, deadline: Option<i64>) -> Self {
        Self((!value.is_empty()).then_some((value, deadline)))
    }

    pub fn value(&self) -> Option<&Value> {
        self.0.as_ref().map(|(value, _)| value)
    }

    pub fn deadline(&self) -> Option<i64> {
        self.0.as_ref().and_then(|(_, deadline)| *deadline)
    }

    /// Elements; none where there is no key.
    pub fn len(&self) -> u64 {
        self.value().map_or(0, Value::len)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Value and bounds of a number.
    fn room(&self) -> Option<(i64, i64, i64)> {
        match self.value() {
            Some(value) => value.room(),
            None => Some((0, i64::MIN, i64::MAX)),
        }
    }

    /// Bytes that differ if and only if two keys differ.
    pub fn canonical(&self) -> Vec<u8> {
        let Some((value, deadline)) = &self.0 else {
            return Vec::new();
        };
        let mut bytes = vec![value.of() as u8];
        bytes.extend(deadline.map_or([0; 8], i64::to_le_bytes));
        bytes.push(u8::from(deadline.is_some()));
        bytes.extend(value.canonical());
        bytes
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.canonical() == other.canonical()
    }
}

/// An operation on a key. Deadlines in the past are deletions: it is their caller's to know.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    Typed(Typed<'a>),
    Exists,
    Type,
    Ttl,
    /// All of it, as `DUMP`, and the source of `COPY`.
    Dump,
    /// `DEL` and `UNLINK`.
    Delete,
    /// Takes the key away with all that it was: the source of `RENAME`.
    Take,
    /// Deletes a key whose deadline is not later.
    Expired {
        now: i64,
    },
    Expire {
        at: i64,
        only: ExpireCondition,
    },
    Persist,
    Set(Set<'a>),
    Put(Put<'a>),
}

/// Puts a string in place of whatever is there.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    pub value: &'a [u8],
    pub deadline: Deadline,
    pub only: Option<Only>,
    /// Replies with the string that was there, and does nothing if it was none.
    pub get: bool,
}

impl Set<'_> {
    fn keeps_deadline(&self) -> bool {
        self.deadline == Deadline::Keep
    }
}

/// The deadline of what is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Keep,
    Clear,
    At(i64),
}

/// A condition of what is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// `NX`.
    New,
    /// `XX`.
    Known,
}

/// Puts a key in place of whatever is there: the destination of `RENAME`, `COPY` or `…STORE`, and `RESTORE`.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    pub key: &'a Key,
    pub only_new: bool,
}

/// An operation, without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Typed(Type),
    Exists,
    Type,
    Ttl,
    Dump,
    Delete,
    Take,
    Expired,
    Expire,
    Persist,
    Set,
    Put,
}

impl algebra::Kind for Kind {
    const ALL: &'static [(Self, &'static str)] = &[
        (Kind::Typed(Type::Text), "string(x)"),
        (Kind::Typed(Type::Hash), "hash(x)"),
        (Kind::Typed(Type::List), "list(x)"),
        (Kind::Typed(Type::Set), "set(x)"),
        (Kind::Typed(Type::SortedSet), "sortedSet(x)"),
        (Kind::Typed(Type::TopK), "ranking(x)"),
        (Kind::Typed(Type::Bag), "bag(x)"),
        (Kind::Typed(Type::Bounded), "bounded(x)"),
        (Kind::Typed(Type::Uid), "uid(x)"),
        (Kind::Exists, "EXISTS"),
        (Kind::Type, "TYPE"),
        (Kind::Ttl, "TTL"),
        (Kind::Dump, "DUMP"),
        (Kind::Delete, "DEL"),
        (Kind::Take, "RENAME, source"),
        (Kind::Expired, "expiry"),
        (Kind::Expire, "EXPIRE"),
        (Kind::Persist, "PERSIST"),
        (Kind::Set, "SET"),
        (Kind::Put, "RENAME, target"),
    ];

    fn phase(self) -> Phase {
        match self {
            Kind::Exists | Kind::Type | Kind::Ttl | Kind::Dump => Phase::Read,
            Kind::Delete | Kind::Take | Kind::Expired => Phase::Remove,
            Kind::Typed(_) | Kind::Expire | Kind::Persist | Kind::Set | Kind::Put => Phase::Alone,
        }
    }
}

impl algebra::Operation for Op<'_> {
    type Kind = Kind;

    fn kind(&self) -> Kind {
        match self {
            Op::Typed(typed) => Kind::Typed(typed.of()),
            Op::Exists => Kind::Exists,
            Op::Type => Kind::Type,
            Op::Ttl => Kind::Ttl,
            Op::Dump => Kind::Dump,
            Op::Delete => Kind::Delete,
            Op::Take => Kind::Take,
            Op::Expired { .. } => Kind::Expired,
            Op::Expire { .. } => Kind::Expire,
            Op::Persist => Kind::Persist,
            Op::Set(_) => Kind::Set,
            Op::Put(_) => Kind::Put,
        }
    }

    fn is_read(&self) -> bool {
        match self {
            Op::Typed(typed) => typed.is_read(),
            op => algebra::Kind::is_read(op.kind()),
        }
    }
}

/// What an operation on a key replies.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Typed(TypedReply),
    /// The key has another type than the operation is for.
    WrongType,
    Done,
    Flag(bool),
    Type(Option<Type>),
    /// `None`: there is no key.
    Ttl(Option<Option<i64>>),
    Dump(Vec<u8>),
    Text(Option<Vec<u8>>),
}

/// The algebra of keys.
#[derive(Debug)]
pub struct Keys;

impl Algebra for Keys {
    type State = Key;
    type View<'a> = &'a Key;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "keys";
    const ABOUT: &'static str = "A value of any type with its deadline, or nothing. The first \
        element creates a key, and the last removal deletes it with its deadline: so an add and a \
        removal are independent only where the key has no deadline or keeps some element.";

    fn empty() -> Key {
        Key::default()
    }

    fn view(state: &Key) -> &Key {
        state
    }

    fn execute(view: &Key, op: &Op<'_>) -> Reply {
        act::execute(view, op)
    }

    fn commit(state: &mut Key, op: &Op<'_>, tuning: &Tuning) {
        run(state, op, tuning);
    }

    fn apply(state: &mut Key, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        act::apply(state, op, tuning)
    }

    fn rules() -> &'static [Rule<Self>] {
        static RULES: OnceLock<Vec<Rule<Keys>>> = OnceLock::new();
        RULES.get_or_init(rules)
    }

    fn admits<'a>(held: &[algebra::Held<Op<'a>>], new: &algebra::Held<Op<'a>>, view: &Key) -> bool {
        typed::admits(held, new, view).unwrap_or_else(|| by_footprints(held, new, view))
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        let same = algebra::Operation::kind(pending) == algebra::Operation::kind(new);
        (same && matches!(new, Op::Exists | Op::Type | Op::Ttl | Op::Dump)).then_some(*new)
    }

    fn sample_state(rng: &mut Rng) -> Key {
        sample::state(rng)
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        sample::op(rng)
    }

    fn canonical(view: &Key) -> Vec<u8> {
        view.canonical()
    }
}

fn by_footprints(held: &[algebra::Held<Op<'_>>], new: &algebra::Held<Op<'_>>, view: &Key) -> bool {
    let footprint = |of: &algebra::Held<Op<'_>>| {
        let wanted = of.wanted;
        Held {
            wanted,
            ..Held::new(of.op)
        }
        .footprint()
    };
    let mut holders = Holders::default();
    held.iter().for_each(|held| holders.hold(&footprint(held)));
    let standing = Standing::of(view);
    holders.relation(&footprint(new), Some(&standing)) == Relation::Independent
}

fn rules() -> Vec<Rule<Keys>> {
    let kinds = <Kind as algebra::Kind>::ALL;
    let pairs = kinds.iter().enumerate();
    let pairs = pairs.flat_map(|(at, (a, _))| kinds[..=at].iter().map(move |(b, _)| (*a, *b)));
    let rule = |pair| Rule::<Keys> {
        pair,
        when: When::If::<Keys> {
            text: text(pair),
            holds: |a, b, view| Keys::admits(&[*a], b, view),
        },
    };
    pairs.map(rule).collect()
}

/// What documentation says of a pair, the later kind first.
fn text((a, b): (Kind, Kind)) -> &'static str {
    let is_whole = |kind| matches!(kind, Kind::Set | Kind::Put | Kind::Take | Kind::Expired);
    match (a, b) {
        (Kind::Typed(a), Kind::Typed(b)) if a == b => {
            "as the type says, and S has no deadline or keeps an element"
        }
        (Kind::Typed(_), Kind::Typed(_)) => "S exists and keeps an element, or both are reads",
        (Kind::Delete, Kind::Delete) => "neither reply is wanted",
        (a, b) if is_whole(a) || is_whole(b) || a == Kind::Delete || b == Kind::Delete => {
            "one is a read that is not wanted"
        }
        (Kind::Expire | Kind::Persist, Kind::Exists | Kind::Type) => "always",
        (Kind::Expire | Kind::Persist, Kind::Ttl | Kind::Dump) => "the read is not wanted",
        (Kind::Persist, Kind::Persist) => "neither reply is wanted",
        (Kind::Expire | Kind::Persist, Kind::Expire | Kind::Persist) => "never",
        (Kind::Dump, Kind::Typed(_)) => "the second is a read, or the dump is not wanted",
        (_, Kind::Typed(_)) => {
            "S exists and keeps an element, or the second is a read, or the first is one that is not wanted"
        }
        _ => "always",
    }
}
