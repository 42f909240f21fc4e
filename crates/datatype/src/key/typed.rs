//! Operations of all types that strict keys may have, and their values.

use super::footprint::Touch;
use super::{Key, Op};
use crate::algebra::{self, Algebra, Operation, Tuning};
use crate::object::{Object, Registered};
use crate::text::Text;
use crate::{bag, bounded, hash, integer, list, set, sorted_set, top_k, uid};

/// A type whose values a key may have.
trait Stored: Algebra {
    fn of(value: &Value) -> Option<&Self::State>;
    fn take(value: Value) -> Option<Self::State>;
    fn wrap(state: Self::State) -> Value;
    fn is_none(state: &Self::State) -> bool;
    fn count(state: &Self::State) -> u64;
}

impl Stored for Text {
    fn of(value: &Value) -> Option<&Option<Vec<u8>>> {
        match value {
            Value::Text(text) => Some(text),
            Value::Object(_) => None,
        }
    }

    fn take(value: Value) -> Option<Option<Vec<u8>>> {
        match value {
            Value::Text(text) => Some(text),
            Value::Object(_) => None,
        }
    }

    fn wrap(state: Option<Vec<u8>>) -> Value {
        Value::Text(state)
    }

    fn is_none(state: &Option<Vec<u8>>) -> bool {
        state.is_none()
    }

    fn count(state: &Option<Vec<u8>>) -> u64 {
        u64::from(state.is_some())
    }
}

impl<T: Registered> Stored for T {
    fn of(value: &Value) -> Option<&T::State> {
        match value {
            Value::Object(object) => <T as Registered>::of(object),
            Value::Text(_) => None,
        }
    }

    fn take(value: Value) -> Option<T::State> {
        match value {
            Value::Object(mut object) => {
                let state = <T as Registered>::of_mut(&mut object)?;
                Some(std::mem::replace(state, T::empty()))
            }
            Value::Text(_) => None,
        }
    }

    fn wrap(state: T::State) -> Value {
        Value::Object(<T as Registered>::wrap(state))
    }

    fn is_none(state: &T::State) -> bool {
        T::is_empty(T::view(state))
    }

    fn count(state: &T::State) -> u64 {
        T::len(T::view(state)) as u64
    }
}

/// The value of a key.
#[derive(Clone, Debug)]
pub enum Value {
    Text(Option<Vec<u8>>),
    Object(Object),
}

impl Value {
    /// A string.
    pub fn text(bytes: &[u8]) -> Self {
        Value::Text(Some(bytes.to_vec()))
    }
}

macro_rules! types {
    ($($name:ident => $ty:ty;)+) => {
        /// The types of strict keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Type {
            $($name,)+
        }

        impl Type {
            pub const ALL: &'static [Type] = &[$(Type::$name,)+];

            /// As documentation calls it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Type::$name => <$ty as Algebra>::NAME,)+
                }
            }
        }

        /// An operation of a type.
        #[derive(Clone, Copy, Debug)]
        pub enum Typed<'a> {
            $($name(<$ty as Algebra>::Op<'a>),)+
        }

        #[derive(Clone, Debug, PartialEq)]
        pub enum TypedReply {
            $($name(<$ty as Algebra>::Reply),)+
        }

        impl Typed<'_> {
            pub fn of(&self) -> Type {
                match self {
                    $(Typed::$name(_) => Type::$name,)+
                }
            }

            pub(super) fn is_read(&self) -> bool {
                match self {
                    $(Typed::$name(op) => op.is_read(),)+
                }
            }

            pub(super) fn touch(&self, touch: &mut Touch) {
                touch.of_type(self.of());
                match self {
                    $(Typed::$name(op) => <$ty as Algebra>::touch(op, touch),)+
                }
            }

            /// The reply, unless the value has another type.
            pub(super) fn execute(&self, value: Option<&Value>) -> Option<TypedReply> {
                match self {
                    $(Typed::$name(op) => execute::<$ty>(value, op).map(TypedReply::$name),)+
                }
            }

            /// The reply and the value afterwards, unless it has another type.
            pub(super) fn apply(&self, value: Option<Value>, tuning: &Tuning) -> (Option<Value>, Option<TypedReply>) {
                match self {
                    $(Typed::$name(op) => {
                        let (value, reply) = apply::<$ty>(value, op, tuning);
                        (value, reply.map(TypedReply::$name))
                    })+
                }
            }
        }

        impl Value {
            pub fn of(&self) -> Type {
                $(if <$ty as Stored>::of(self).is_some() {
                    return Type::$name;
                })+
                Type::Text
            }

            pub fn is_empty(&self) -> bool {
                $(if let Some(state) = <$ty as Stored>::of(self) {
                    return <$ty as Stored>::is_none(state);
                })+
                true
            }

            /// Elements.
            pub fn len(&self) -> u64 {
                $(if let Some(state) = <$ty as Stored>::of(self) {
                    return <$ty as Stored>::count(state);
                })+
                0
            }

            pub(super) fn canonical(&self) -> Vec<u8> {
                $(if let Some(state) = <$ty as Stored>::of(self) {
                    return <$ty as Algebra>::canonical(<$ty as Algebra>::view(state));
                })+
                Vec::new()
            }
        }

        /// What the types say, where all operations are of one type and the key is of it or missing; `None` where they are not,
        /// or where the key may lose its deadline.
        pub(super) fn admits<'a>(
            held: &[algebra::Held<Op<'a>>],
            new: &algebra::Held<Op<'a>>,
            key: &Key,
        ) -> Option<bool> {
            let Op::Typed(typed) = new.op else {
                return None;
            };
            match typed {
                $(Typed::$name(op) => {
                    let of = |held: &algebra::Held<Op<'a>>| match held.op {
                        Op::Typed(Typed::$name(op)) => Some(algebra::Held { op, wanted: held.wanted }),
                        _ => None,
                    };
                    let same: Vec<_> = held.iter().map(of).collect::<Option<_>>()?;
                    let empty = <$ty as Algebra>::empty();
                    let state = match key.value() {
                        Some(value) => <$ty as Stored>::of(value)?,
                        None => &empty,
                    };
                    if key.deadline().is_some() && may_end(held, new, key) {
                        return None;
                    }
                    let new = algebra::Held { op, wanted: new.wanted };
                    Some(<$ty as Algebra>::admits(&same, &new, <$ty as Algebra>::view(state)))
                })+
            }
        }

        pub(super) fn sample_value(of: Type, rng: &mut rufous_base::rng::Rng) -> Value {
            match of {
                $(Type::$name => <$ty as Stored>::wrap(<$ty as Algebra>::sample_state(rng)),)+
            }
        }

        pub(super) fn sample_op(of: Type, rng: &mut rufous_base::rng::Rng) -> Typed<'static> {
            match of {
                $(Type::$name => Typed::$name(<$ty as Algebra>::sample_op(rng)),)+
            }
        }
    };
}

types! {
    Text => Text;
    Hash => hash::Hash;
    List => list::List;
    Set => set::Set;
    SortedSet => sorted_set::SortedSet;
    TopK => top_k::TopK;
    Bag => bag::Bag;
    Bounded => bounded::Bounded;
    Uid => uid::Uid;
}

/// Whether operations may remove the key.
fn may_end<'a>(held: &[algebra::Held<Op<'a>>], new: &algebra::Held<Op<'a>>, key: &Key) -> bool {
    let all = held.iter().chain([new]);
    let removed = all.map(|held| u128::from(super::Held::new(held.op).footprint().removed));
    removed.sum::<u128>() >= u128::from(key.len())
}

fn execute<T: Stored>(value: Option<&Value>, op: &T::Op<'_>) -> Option<T::Reply> {
    match value {
        Some(value) => T::of(value).map(|state| T::execute(T::view(state), op)),
        None => Some(T::execute(T::view(&T::empty()), op)),
    }
}

fn apply<T: Stored>(
    value: Option<Value>,
    op: &T::Op<'_>,
    tuning: &Tuning,
) -> (Option<Value>, Option<T::Reply>) {
    let mut state = match value {
        Some(value) if T::of(&value).is_none() => return (Some(value), None),
        Some(value) => T::take(value).unwrap_or_else(T::empty),
        None => T::empty(),
    };
    let reply = T::apply(&mut state, op, tuning).reply;
    let value = (!T::is_none(&state)).then(|| T::wrap(state));
    (value, Some(reply))
}

impl Value {
    /// Value and bounds of a number.
    pub(super) fn room(&self) -> Option<(i64, i64, i64)> {
        if let Some(text) = <Text as Stored>::of(self) {
            let number = text.as_deref().and_then(integer::parse_i64);
            return number.map(|number| (number, i64::MIN, i64::MAX));
        }
        let state = <bounded::Bounded as Stored>::of(self)?;
        bounded::room(state)
    }
}
