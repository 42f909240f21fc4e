//! The types that keys may have besides strings: the one place where a type
//! is registered.

use crate::algebra::{Algebra, Corrupt, DataType, Tuning};
use crate::replicated::{Forgotten, Known, Refused, Writer};
use rufous_lattice::Stamp;

/// Takes encoded operations one by one. The first argument is the element to which the
/// operation only adds, if it does.
type OperationVisitor<'a> = &'a mut dyn FnMut(Option<&[u8]>, &[u8]);

/// A [`DataType`] that is registered here.
pub trait Registered: DataType {
    const TAG: Tag;
    fn of(object: &Object) -> Option<&Self::State>;
    fn of_mut(object: &mut Object) -> Option<&mut Self::State>;
    fn wrap(state: Self::State) -> Object;
}

macro_rules! register {
    (($d:tt) $($(#[$doc:meta])* $name:ident = $tag:literal => $ty:ty;)+) => {
        /// A type, by the byte that stands for it in records, logs and
        /// snapshots. Such bytes never change their meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Tag {
            $($(#[$doc])* $name = $tag,)+
        }

        /// The value of a key that is no string, of any type.
        #[derive(Clone, Debug)]
        pub enum Object {
            $($name(<$ty as Algebra>::State),)+
        }

        $(impl Registered for $ty {
            const TAG: Tag = Tag::$name;
            #[inline]
            #[allow(irrefutable_let_patterns)]
            fn of(object: &Object) -> Option<&Self::State> {
                let Object::$name(state) = object else { return None };
                Some(state)
            }
            #[inline]
            #[allow(irrefutable_let_patterns)]
            fn of_mut(object: &mut Object) -> Option<&mut Self::State> {
                let Object::$name(state) = object else { return None };
                Some(state)
            }
            #[inline]
            fn wrap(state: Self::State) -> Object {
                Object::$name(state)
            }
        })+

        /// An expression in which `T` is the type of a tag.
        macro_rules! of_tag {
            ($d tag:expr, $d t:ident => $d body:expr) => {
                match $d tag {
                    $(Tag::$name => {
                        type $d t = $ty;
                        $d body
                    })+
                }
            };
        }

        /// An expression in which `T` is the type of an object, and `state` its state.
        macro_rules! of_object {
            ($d object:expr, $d t:ident, $d state:ident => $d body:expr) => {
                match $d object {
                    $(Object::$name($d state) => {
                        type $d t = $ty;
                        $d body
                    })+
                }
            };
        }

        impl Tag {
            pub const ALL: &'static [Tag] = &[$(Tag::$name),+];

            #[inline]
            pub fn from_byte(byte: u8) -> Option<Tag> {
                match byte {
                    $($tag => Some(Tag::$name),)+
                    _ => None,
                }
            }
        }

        /// Something to be done with every registered type: tests and
        /// documentation use it, so that none escapes them.
        pub trait Visitor {
            fn visit<T: Registered>(&mut self);
        }

        /// Shows every registered type to the visitor.
        pub fn visit_types(visitor: &mut impl Visitor) {
            $(visitor.visit::<$ty>();)+
        }
    };
}

register! { ($)
    /// Fields with values.
    Hash = 1 => crate::hash::Hash;
    /// Lists.
    List = 2 => crate::list::List;
    /// Members without order.
    Set = 3 => crate::set::Set;
    /// Members in the order of their scores.
    SortedSet = 4 => crate::sorted_set::SortedSet;
    /// The highest-ranked members.
    TopK = 5 => crate::top_k::TopK;
    /// Summary bags.
    Bag = 6 => crate::bag::Bag;
    /// Bounded counters.
    Bounded = 7 => crate::bounded::Bounded;
    /// Unique identifiers.
    Uid = 8 => crate::uid::Uid;
    /// Replicated strings.
    Register = 9 => crate::replicated::register::Register;
    /// Replicated strings with causal order.
    Siblings = 10 => crate::replicated::siblings::Siblings;
    /// Replicated sets.
    SharedSet = 11 => crate::replicated::shared_set::SharedSet;
    /// Replicated hashes.
    SharedHash = 12 => crate::replicated::shared_hash::SharedHash;
    /// Replicated sorted sets.
    SharedSortedSet = 13 => crate::replicated::shared_sorted_set::SharedSortedSet;
    /// Replicated HyperLogLogs.
    Sketch = 14 => crate::replicated::sketch::Sketch;
}

impl Tag {
    /// What `TYPE` answers.
    pub fn redis_name(self) -> &'static str {
        of_tag!(self, T => T::REDIS_NAME)
    }

    /// A value without elements.
    pub fn empty(self) -> Object {
        of_tag!(self, T => T::wrap(T::empty()))
    }

    /// A value of packed bytes.
    pub fn unpack(self, bytes: Vec<u8>) -> Object {
        of_tag!(self, T => T::wrap(T::from_packed(bytes)))
    }

    /// Whether replicas of its values all take writes.
    pub fn is_replicated(self) -> bool {
        of_tag!(self, T => T::REPLICAS.is_some())
    }

    /// See [`DataType::KEEPS_ROOM`].
    #[inline]
    pub fn keeps_room(self) -> bool {
        of_tag!(self, T => T::KEEPS_ROOM)
    }

    /// Elements of a packed value.
    pub fn packed_len(self, bytes: &[u8]) -> usize {
        of_tag!(self, T => T::len(T::packed_view(bytes)))
    }

    /// What `OBJECT ENCODING` answers of a packed value.
    pub fn packed_encoding(self, bytes: &[u8], tuning: &Tuning) -> &'static str {
        of_tag!(self, T => T::encoding(T::packed_view(bytes), tuning))
    }

    /// Whether these are encoded operations.
    pub fn are_operations(self, mut ops: &[u8]) -> bool {
        of_tag!(self, T => while !ops.is_empty() {
            if T::decode(&mut ops).is_err() {
                return false;
            }
        });
        true
    }

    /// Passes encoded operations to `f` one by one.
    pub fn each_operation(self, mut ops: &[u8], f: OperationVisitor<'_>) -> Result<(), Corrupt> {
        of_tag!(self, T => while !ops.is_empty() {
            let all = ops;
            let op = T::decode(&mut ops)?;
            let element = T::REPLICAS
                .and_then(|replicas| (replicas.adds_to_nothing)(&op));
            f(element, &all[..all.len() - ops.len()]);
        });
        Ok(())
    }

    /// Encoded operations without what they have written below the
    /// stamp, and has gone for good: see [`Object::gone`].
    pub fn since(self, mut ops: &[u8], cut: Stamp) -> Result<Vec<u8>, Corrupt> {
        let mut left = Vec::new();
        of_tag!(self, T => while !ops.is_empty() {
            let op = T::decode(&mut ops)?;
            match T::REPLICAS.and_then(|replicas| replicas.past) {
                Some(past) => (past.since)(&op, cut, &mut left),
                None => T::encode(&op, &mut left),
            }
        });
        Ok(left)
    }

    /// Likewise without removals up to the stamp, which counts have met.
    pub fn ended(self, mut ops: &[u8], end: Stamp) -> Result<Vec<u8>, Corrupt> {
        let mut left = Vec::new();
        of_tag!(self, T => while !ops.is_empty() {
            let op = T::decode(&mut ops)?;
            match T::REPLICAS.and_then(|replicas| replicas.past) {
                Some(past) => (past.ended)(&op, end, &mut left),
                None => T::encode(&op, &mut left),
            }
        });
        Ok(left)
    }

    /// See [`Object::gone`], of a packed value.
    pub fn packed_gone(self, bytes: &[u8], horizon: u64) -> Stamp {
        of_tag!(self, T => T::REPLICAS
        .and_then(|replicas| replicas.past)
        .map_or(Stamp::ZERO, |past| {
            (past.gone)(T::packed_view(bytes), horizon)
        }))
    }

    /// See [`DataType::chunk`].
    pub fn packed_chunk(
        self,
        bytes: &[u8],
        at: u64,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        of_tag!(self, T => T::chunk(T::packed_view(bytes), at, budget, out))
    }
}

impl Object {
    pub fn tag(&self) -> Tag {
        of_object!(self, T, _state => T::TAG)
    }

    pub fn len(&self) -> usize {
        of_object!(self, T, state => T::len(T::view(state)))
    }

    pub fn is_empty(&self) -> bool {
        of_object!(self, T, state => T::is_empty(T::view(state)))
    }

    /// What it has on the heap if it is not packed.
    pub fn heap_bytes(&self) -> usize {
        of_object!(self, T, state => T::heap_bytes(state))
    }

    /// See [`DataType::own_bytes`].
    pub fn own_bytes(&self) -> usize {
        of_object!(self, T, state => T::own_bytes(state))
    }

    /// See [`DataType::sweep`].
    pub fn sweep(&mut self, budget: &mut usize) -> bool {
        of_object!(self, T, state => T::sweep(state, budget))
    }

    /// Its bytes, if it is packed.
    pub fn packed(&self) -> Option<&[u8]> {
        of_object!(self, T, state => T::packed(state))
    }

    /// Its buffer, if it is packed.
    pub fn into_buffer(self) -> Option<Vec<u8>> {
        of_object!(self, T, state => T::into_buffer(state))
    }

    pub fn encoding(&self, tuning: &Tuning) -> &'static str {
        of_object!(self, T, state => T::encoding(T::view(state), tuning))
    }

    /// See [`DataType::chunk`].
    pub fn chunk(&self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        of_object!(self, T, state => T::chunk(T::view(state), at, budget, out))
    }

    /// See [`DataType::extend`].
    pub fn extend(&mut self, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        of_object!(self, T, state => T::extend(state, chunk, tuning))
    }

    /// Commits encoded operations, which may come from a file.
    pub fn commit_encoded(&mut self, mut ops: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        of_object!(self, T, state => while !ops.is_empty() {
            let op = T::decode(&mut ops)?;
            T::commit(state, &op, tuning);
        });
        Ok(())
    }

    /// Whether its replicas all take writes; see [`crate::replicated`].
    pub fn is_replicated(&self) -> bool {
        self.tag().is_replicated()
    }

    /// Whether there is nothing to read; of types that are not
    /// replicated, whether it is empty.
    pub fn is_hidden(&self) -> bool {
        of_object!(self, T, state => T::REPLICAS.map_or(self.is_empty(), |replicas| (replicas.is_hidden)(T::view(state))))
    }

    /// No stamp in it is newer than this one; zero for types that are
    /// not replicated.
    pub fn newest(&self) -> Stamp {
        of_object!(self, T, state => T::REPLICAS.map_or(Stamp::ZERO, |replicas| (replicas.newest)(state)))
    }

    /// Drops about `budget` tombstones whose times are not after the
    /// horizon, inclusive.
    pub fn forget(&mut self, horizon: u64, budget: usize) -> Forgotten {
        of_object!(self, T, state => T::REPLICAS.map_or(Forgotten::Kept, |replicas| (replicas.forget)(state, horizon, budget)))
    }

    /// Appends encoded operations that delete what is shown, if it is
    /// replicated.
    pub fn encode_delete(&self, writer: &Writer, ops: &mut Vec<u8>) {
        of_object!(self, T, state => if let Some(replicas) = T::REPLICAS {
            (replicas.delete)(state, writer, ops);
        })
    }

    /// When its time comes, in Unix milliseconds, if it is replicated
    /// and has a deadline; otherwise 0.
    pub fn deadline(&self) -> u64 {
        of_object!(self, T, state => T::REPLICAS.map_or(0, |replicas| (replicas.expiry.deadline)(state)))
    }

    /// Of a hidden value: the time of a stamp; once the horizon of all
    /// replicas has reached it, no replica needs the value any more.
    pub fn until(&self) -> u64 {
        of_object!(self, T, state => T::REPLICAS.map_or(0, |replicas| (replicas.expiry.until)(state)))
    }

    /// What is written to it needs a stamp above this one.
    pub fn floor(&self) -> Stamp {
        of_object!(self, T, state => T::REPLICAS.map_or(Stamp::ZERO, |replicas| (replicas.expiry.floor)(state)))
    }

    /// Appends encoded operations that give what is shown a deadline in
    /// Unix milliseconds, 0 for none.
    pub fn encode_deadline(
        &self,
        at: u64,
        writer: &Writer,
        ops: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        of_object!(self, T, state => T::REPLICAS.map_or(Err(Refused::NO_MERGE), |replicas| (replicas.expiry.set)(state, at, writer, ops)))
    }

    /// Appends encoded operations which every replica does when the
    /// deadline has come.
    pub fn encode_expiry(&self, ops: &mut Vec<u8>) {
        of_object!(self, T, state => if let Some(replicas) = T::REPLICAS {
            (replicas.expiry.pass)(state, ops);
        })
    }

    /// Writes below this stamp have ended with a deadline, for ever, once
    /// every replica has received all changes up to the horizon.
    pub fn gone(&self, horizon: u64) -> Stamp {
        of_object!(self, T, state => T::REPLICAS
            .and_then(|replicas| replicas.past)
            .map_or(Stamp::ZERO, |past| (past.gone)(T::view(state), horizon)))
    }

    /// Whether [`Object::make_way`] has to be called with this horizon.
    pub fn may_make_way(&self, horizon: u64) -> bool {
        of_object!(self, T, state => T::REPLICAS
            .and_then(|replicas| replicas.make_way)
            .is_some_and(|way| (way.is_due)(state, horizon)))
    }

    /// Whether [`Object::make_way`] has to be called with any horizon: if
    /// there are counters, which may have started from a removal here and from
    /// nothing on other replicas.
    pub fn may_be_counted(&self) -> bool {
        of_object!(self, T, state => T::REPLICAS
            .and_then(|replicas| replicas.make_way)
            .is_some_and(|way| (way.is_counted)(state)))
    }

    /// Before another replica's state is merged: drops removals that the sender
    /// had seen and of which its state shows less, because it has forgotten them.
    /// Returns the time of the last of them, or 0. Counts that started from such
    /// a removal are then added to counts that started from nothing.
    pub fn make_way(&mut self, sent: &Object, known: Known, tuning: &Tuning) -> u64 {
        of_object!(self, T, state => {
            let way = T::REPLICAS.and_then(|replicas| replicas.make_way);
            match (way, T::of(sent)) {
                (Some(way), Some(sent)) => (way.run)(state, T::view(sent), known, tuning),
                _ => 0,
            }
        })
    }

    /// What tells values of one type apart, whatever their shape.
    pub fn canonical(&self) -> Vec<u8> {
        of_object!(self, T, state => T::canonical(T::view(state)))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.tag() == other.tag() && self.canonical() == other.canonical()
    }
}

impl Eq for Object {}
