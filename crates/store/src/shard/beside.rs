//! Keys and values too large for a record: three slabs, the account of the memory that their items own, and the
//! objects whose operations have deferred work.
//!
//! Invariants:
//! 1. `owned` is the sum of the sizes of all items.
//! 2. An object with deferred work is in `unswept`.

use super::placed::{New, Placed, fits};
use super::record::{BIG, OBJECT};
use super::slab::Slab;
use super::types::fits_packed;
use rufous_datatype::object::Object;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The value of a removed record, if it lay outside of the record.
#[derive(Debug)]
pub(super) enum Outside {
    Big(Arc<Vec<u8>>),
    Object(Object),
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Beside {
    bigs: Slab<Arc<Vec<u8>>>,
    objects: Slab<Object>,
    long_keys: Slab<Box<[u8]>>,
    /// Numbers of the objects with deferred work.
    unswept: BTreeSet<u32>,
    /// Bytes owned by the items of the slabs.
    owned: usize,
}

/// Memory of a big value: its buffer, and the reference count before it.
fn big_bytes(value: &Arc<Vec<u8>>) -> usize {
    value.capacity() + size_of::<Vec<u8>>() + 16
}

impl Beside {
    pub(super) fn add_key(&mut self, key: &[u8]) -> u32 {
        self.owned += key.len();
        self.long_keys.insert(key.into())
    }

    pub(super) fn key(&self, number: u32) -> &[u8] {
        self.long_keys.get(number)
    }

    pub(super) fn remove_key(&mut self, number: u32) {
        self.owned -= self.long_keys.remove(number).len();
    }

    pub(super) fn add_big(&mut self, value: Arc<Vec<u8>>) -> u32 {
        self.owned += big_bytes(&value);
        self.bigs.insert(value)
    }

    #[inline]
    pub(super) fn big(&self, number: u32) -> &Arc<Vec<u8>> {
        self.bigs.get(number)
    }

    /// Changes a big value and updates its accounted size. The value is copied first if another reader still holds
    /// it.
    pub(super) fn change_big(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> &mut [u8] {
        let value = self.bigs.get_mut(number);
        self.owned -= big_bytes(value);
        change(Arc::make_mut(value));
        self.owned += big_bytes(value);
        Arc::make_mut(value).as_mut_slice()
    }

    fn add_object(&mut self, object: Object) -> u32 {
        self.owned += object.heap_bytes();
        let number = self.objects.insert(object);
        self.note_unswept(number);
        number
    }

    #[inline]
    pub(super) fn object(&self, number: u32) -> &Object {
        self.objects.get(number)
    }

    /// Changes an object and updates its accounted size. A change that may defer work is followed by
    /// [`Beside::note_unswept`].
    #[inline]
    pub(super) fn change_object<R>(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut Object) -> R,
    ) -> R {
        let object = self.objects.get_mut(number);
        let before = object.heap_bytes();
        let result = change(object);
        self.owned = self.owned + object.heap_bytes() - before;
        result
    }

    /// Puts a value that does not fit a record with a key part of `key` bytes into its slab.
    #[inline]
    pub(super) fn place<'a>(
        &mut self,
        key: usize,
        value: New<'a>,
        expiry: Option<u64>,
    ) -> Placed<'a> {
        match value {
            New::String(value) if fits(key, value.bytes().len(), expiry) => Placed::Inline(value),
            New::String(value) => {
                let number = self.add_big(value.into_shared());
                Placed::Outside(BIG, number.to_le_bytes())
            }
            New::Object(object) => {
                let tag = object.tag() as u8;
                if object.packed().is_some_and(fits_packed) {
                    return Placed::Packed(tag, object.into_buffer().unwrap_or_default());
                }
                Placed::Outside(OBJECT, self.add_object(object).to_le_bytes())
            }
        }
    }

    /// Takes a value out; `kind` is its record's.
    pub(super) fn remove(&mut self, kind: u8, number: u32) -> Outside {
        if kind == OBJECT {
            let object = self.objects.remove(number);
            self.unswept.remove(&number);
            self.owned -= object.heap_bytes();
            return Outside::Object(object);
        }
        let value = self.bigs.remove(number);
        self.owned -= big_bytes(&value);
        Outside::Big(value)
    }

    /// Notes an object with deferred work.
    pub(super) fn note_unswept(&mut self, number: u32) {
        if self.objects.get_mut(number).sweep(&mut 0) {
            self.unswept.insert(number);
        }
    }

    /// Performs deferred work of objects until the budget is used up. Returns whether there is more to do.
    pub(super) fn sweep(&mut self, budget: &mut usize) -> bool {
        while *budget > 0
            && let Some(&number) = self.unswept.first()
        {
            if self.change_object(number, |object| object.sweep(budget)) {
                return true;
            }
            self.unswept.remove(&number);
        }
        !self.unswept.is_empty()
    }

    /// Memory of all items and of the slabs.
    pub(super) fn bytes(&self) -> usize {
        self.owned + self.bigs.bytes() + self.long_keys.bytes() + self.objects.bytes()
    }

    /// Memory of a big value with its place in the slab.
    pub(super) fn bytes_of_big(value: &Arc<Vec<u8>>) -> usize {
        big_bytes(value) + size_of::<Option<Arc<Vec<u8>>>>()
    }

    /// Memory of an object with its place in the slab.
    pub(super) fn bytes_of_object(object: &Object) -> usize {
        object.heap_bytes() + size_of::<Option<Object>>()
    }

    /// Memory of a long key with its place in the slab.
    pub(super) fn bytes_of_key(key: &[u8]) -> usize {
        key.len() + size_of::<Option<Box<[u8]>>>()
    }

    /// Number of big values, long keys and objects.
    pub(super) fn counts(&self) -> [usize; 3] {
        [self.bigs.len(), self.long_keys.len(), self.objects.len()]
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        let values = self.bigs.iter().map(big_bytes);
        let keys = self.long_keys.iter().map(|key| key.len());
        let objects = self.objects.iter().map(Object::heap_bytes);
        assert_eq!(values.chain(keys).chain(objects).sum::<usize>(), self.owned);
        for (number, object) in self.objects.numbered() {
            let unswept = self.unswept.contains(&number);
            assert!(unswept || !object.clone().sweep(&mut 0), "forgotten work");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::NewValue;
    use super::*;
    use rufous_base::rng::Rng;
    use rufous_datatype::algebra::{DataType, Tuning};
    use rufous_datatype::object::Tag;
    use rufous_datatype::set::{Op, Set};

    fn add_members(object: &mut Object, members: std::ops::Range<u64>) {
        let mut ops = Vec::new();
        for member in members {
            let member = &[&[7; 90][..], &member.to_le_bytes()].concat();
            Set::encode(&Op::Add { member }, &mut ops);
        }
        let done = object.commit_encoded(&ops, &Tuning::default());
        done.expect("operations of a set");
    }

    fn set(members: u64) -> Object {
        let mut object = Tag::Set.empty();
        add_members(&mut object, 0..members);
        object
    }

    /// Kind and number of a value that has been placed in a slab.
    fn outside(placed: &Placed<'_>) -> Option<(u8, u32)> {
        match placed {
            Placed::Outside(kind, number) => Some((*kind, u32::from_le_bytes(*number))),
            _ => None,
        }
    }

    #[test]
    fn the_account_is_what_the_items_own() {
        let (mut beside, mut rng) = (Beside::default(), Rng::new(3));
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for round in 0..3000 {
            let n = rng.below(80);
            match rng.below(8) {
                0 => keys.push(beside.add_key(&vec![7; 600 + n as usize])),
                1 => {
                    let value = New::String(NewValue::Own(vec![1; 5000]));
                    values.extend(outside(&beside.place(8, value, None)));
                }
                2 => values.extend(outside(&beside.place(8, New::Object(set(n)), None))),
                3 if !keys.is_empty() => {
                    let at = rng.below(keys.len() as u64) as usize;
                    beside.remove_key(keys.swap_remove(at));
                }
                4 | 5 if !values.is_empty() => {
                    let at = rng.below(values.len() as u64) as usize;
                    let (kind, number) = values.swap_remove(at);
                    drop(beside.remove(kind, number));
                }
                _ => {
                    for &(kind, number) in values.iter().take(5) {
                        if kind == BIG {
                            beside.change_big(number, |bytes| bytes.resize(5000 + n as usize, 0));
                        } else {
                            beside.change_object(number, |set| add_members(set, n..n + 9));
                            beside.note_unswept(number);
                        }
                    }
                }
            }
            if round % 10 == 0 {
                beside.check();
            }
        }
        let [bigs, long_keys, objects] = beside.counts();
        assert_eq!((bigs + objects, long_keys), (values.len(), keys.len()));
        keys.into_iter()
            .for_each(|number| beside.remove_key(number));
        for (kind, number) in values {
            drop(beside.remove(kind, number));
        }
        assert_eq!(beside.bytes(), 0);
    }

    #[test]
    fn small_values_stay_in_their_record() {
        let mut beside = Beside::default();
        let small = New::String(NewValue::Copy(b"value"));
        assert!(matches!(beside.place(8, small, None), Placed::Inline(_)));
        let (mut object, mut ops) = (Tag::Set.empty(), Vec::new());
        Set::encode(&Op::Add { member: b"a" }, &mut ops);
        let done = object.commit_encoded(&ops, &Tuning::default());
        done.expect("operations of a set");
        let packed = beside.place(8, New::Object(object), None);
        assert!(matches!(packed, Placed::Packed(..)));
        assert_eq!((beside.counts(), beside.bytes()), ([0; 3], 0));
    }

    #[test]
    fn a_reader_keeps_the_big_value_that_it_has() {
        let mut beside = Beside::default();
        let value = Arc::new(vec![1; 5000]);
        let number = beside.add_big(Arc::clone(&value));
        beside.change_big(number, |bytes| bytes.push(2));
        assert_eq!((value.len(), beside.big(number).len()), (5000, 5001));
        beside.check();
    }
}
