//! Replicated values that show nothing: deleted, expired, or without members. What other replicas still send about
//! such a key has to be merged with its known state, or the key would be restored.
//!
//! A key either is a record or has a grave, never both. A grave is removed when all replicas have received everything
//! in it: when the horizon, a time before which no update is in transit anywhere, has passed its newest stamp
//! [Anna §VII-A].

use super::record::PARITY;
use super::types::Key;
use rufous_datatype::object::{Object, Tag};
use rufous_lattice::Stamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Some keys of a walk over graves, and the next position.
pub type GraveKeys = (Vec<Arc<[u8]>>, Option<Box<[u8]>>);

/// A time, and a key with its hash.
type Due = (u64, u32, Arc<[u8]>);

/// Memory per grave in the map and the queue, with an estimate of the fill of their nodes.
const OVERHEAD: usize =
    (size_of::<Arc<[u8]>>() + size_of::<Grave>()) * 3 / 2 + size_of::<Due>() * 3 / 2 + 16;

/// Memory per key that is only in the queue.
const FADING: usize = size_of::<Arc<[u8]>>() * 3 / 2 + size_of::<Due>() * 3 / 2 + 16;

/// The state in a grave, as small as possible.
#[derive(Debug)]
enum Body {
    Packed(Tag, Box<[u8]>),
    Object(Box<Object>),
}

impl Body {
    fn new(object: Object) -> Self {
        match object.packed() {
            Some(bytes) => Body::Packed(object.tag(), bytes.into()),
            None => Body::Object(Box::new(object)),
        }
    }

    fn into_object(self) -> Object {
        match self {
            Body::Packed(tag, bytes) => tag.unpack(bytes.into()),
            Body::Object(object) => *object,
        }
    }

    fn to_object(&self) -> Object {
        match self {
            Body::Packed(tag, bytes) => tag.unpack(bytes.to_vec()),
            Body::Object(object) => (**object).clone(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Body::Packed(_, bytes) => bytes.len(),
            Body::Object(object) => size_of::<Object>() + object.heap_bytes(),
        }
    }
}

#[derive(Debug)]
struct Grave {
    body: Body,
    /// The key's hash.
    hash: u32,
    /// The parity of the grave, like that of a record; see `snapshot.rs`.
    parity: u8,
}

/// The graves of a database.
#[derive(Debug, Default)]
pub(super) struct Graves {
    by_key: BTreeMap<Arc<[u8]>, Grave>,
    /// Every grave at least once, and every key in `fading`, each with a time up to which it certainly stays; roughly
    /// in the order of these times.
    queue: VecDeque<Due>,
    /// Keys in the queue that have no grave.
    fading: BTreeMap<Arc<[u8]>, u32>,
    bytes: usize,
    /// The parity of new graves.
    parity: u8,
    /// The key from which on graves may have the other parity.
    walk: Option<Box<[u8]>>,
}

impl Graves {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether nothing is left to be forgotten.
    pub(super) fn is_settled(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The state of a key that shows nothing.
    pub(super) fn get(&self, key: &[u8]) -> Option<Object> {
        Some(self.by_key.get(key)?.body.to_object())
    }

    pub(super) fn tag_of(&self, key: &[u8]) -> Option<Tag> {
        Some(match &self.by_key.get(key)?.body {
            Body::Packed(tag, _) => *tag,
            Body::Object(object) => object.tag(),
        })
    }

    /// Its type and its newest stamp.
    pub(super) fn known(&self, key: &[u8]) -> Option<(Tag, Stamp)> {
        Some(match &self.by_key.get(key)?.body {
            Body::Packed(tag, bytes) => (*tag, tag.unpack(bytes.to_vec()).newest()),
            Body::Object(object) => (object.tag(), object.newest()),
        })
    }

    /// Takes the key's object out, to be changed or to become a record again.
    pub(super) fn take(&mut self, key: &[u8]) -> Option<Object> {
        Some(self.take_with_parity(key)?.0)
    }

    /// The same with its parity, for [`Graves::put_until`].
    pub(super) fn take_with_parity(&mut self, key: &[u8]) -> Option<(Object, u8)> {
        let (key, grave) = self.by_key.remove_entry(key)?;
        self.bytes -= OVERHEAD + key.len() + grave.body.bytes();
        Some((grave.body.into_object(), grave.parity))
    }

    pub(super) fn put(&mut self, key: Key<'_>, object: Object) {
        let newest = object.newest().time;
        self.put_until(key, object, self.parity, newest);
    }

    /// Buries the object, to be examined when the horizon has passed this time.
    pub(super) fn put_until(&mut self, key: Key<'_>, object: Object, parity: u8, time: u64) {
        let (body, hash) = (Body::new(object), key.hash);
        drop(self.take(key.bytes));
        let key: Arc<[u8]> = key.bytes.into();
        self.bytes += OVERHEAD + key.len() + body.bytes();
        self.queue.push_back((time, hash, Arc::clone(&key)));
        self.by_key.insert(key, Grave { body, hash, parity });
        // A key that is deleted and created repeatedly leaves stale entries in the queue.
        if self.queue.len() > 64 + 2 * (self.by_key.len() + self.fading.len()) {
            self.rebuild_queue();
        }
    }

    fn rebuild_queue(&mut self) {
        let mut all: Vec<_> = self
            .by_key
            .iter()
            .map(|(key, grave)| {
                (
                    grave.body.to_object().newest().time,
                    grave.hash,
                    Arc::clone(key),
                )
            })
            .collect();
        // Keys in `fading` may be examined earlier than necessary.
        all.extend(
            self.fading
                .iter()
                .map(|(key, hash)| (0, *hash, Arc::clone(key))),
        );
        all.sort();
        self.queue = all.into();
    }

    /// Enqueues a key without a grave for when the horizon has passed this time: some of its state may be forgotten
    /// then.
    pub(super) fn enroll(&mut self, key: Key<'_>, time: u64) {
        if self.fading.contains_key(key.bytes) {
            return;
        }
        let (hash, key): (_, Arc<[u8]>) = (key.hash, key.bytes.into());
        self.bytes += FADING + key.len();
        self.fading.insert(Arc::clone(&key), hash);
        self.queue.push_back((time, hash, key));
    }

    /// Whether a key may have state that all replicas have received.
    pub(super) fn is_due(&self, horizon: u64) -> bool {
        self.queue
            .front()
            .is_some_and(|(time, ..)| *time <= horizon)
    }

    /// The next such key.
    pub(super) fn take_due(&mut self) -> Option<(u32, Arc<[u8]>)> {
        let (_, hash, key) = self.queue.pop_front()?;
        if self.fading.remove(&key).is_some() {
            self.bytes -= FADING + key.len();
        }
        Some((hash, key))
    }

    /// A few keys from `from` on, and the next position.
    pub(super) fn keys_from(&self, from: &[u8], count: usize) -> GraveKeys {
        let range = (Bound::Included(from), Bound::Unbounded);
        let mut range = self.by_key.range::<[u8], _>(range);
        let keys: Vec<_> = range
            .by_ref()
            .take(count)
            .map(|(key, _)| Arc::clone(key))
            .collect();
        let next = range.next().map(|(key, _)| Box::from(&**key));
        (keys, next)
    }

    /// The graves of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self {
            parity: self.parity,
            ..Self::default()
        }
    }

    /// From now on all present graves are to be visited by a walk.
    pub(super) fn begin_walk(&mut self) {
        self.parity ^= PARITY;
        self.walk = (self.len() > 0).then(Box::default);
    }

    /// The key at which the walk continues, until it is at the end.
    pub(super) fn walk(&self) -> Option<&[u8]> {
        self.walk.as_deref()
    }

    pub(super) fn set_walk(&mut self, next: Option<Box<[u8]>>) {
        self.walk = next;
    }

    /// Whether the key has a grave that the walk has yet to visit.
    pub(super) fn is_ahead(&self, key: &[u8]) -> bool {
        let grave = self.by_key.get(key);
        grave.is_some_and(|grave| grave.parity != self.parity)
    }

    /// The grave needs no visit of the walk any more.
    pub(super) fn set_visited(&mut self, key: &[u8]) {
        if let Some(grave) = self.by_key.get_mut(key) {
            grave.parity = self.parity;
        }
    }

    /// Asserts that the memory account and the parities are right.
    pub(super) fn check(&self) {
        let bytes = |(key, grave): (&Arc<[u8]>, &Grave)| OVERHEAD + key.len() + grave.body.bytes();
        let graves = self.by_key.iter().map(bytes).sum::<usize>();
        let fading = self
            .fading
            .keys()
            .map(|key| FADING + key.len())
            .sum::<usize>();
        assert_eq!(graves + fading, self.bytes);
        let queued: BTreeSet<_> = self.queue.iter().map(|(.., key)| key).collect();
        for (key, grave) in &self.by_key {
            assert!(grave.body.to_object().is_hidden(), "a grave shows nothing");
            assert!(queued.contains(key), "a grave that nobody would forget");
            assert!(self.walk.is_some() || grave.parity == self.parity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_datatype::algebra::Tuning;
    use rufous_datatype::replicated::{Writer, register};

    fn key(bytes: &[u8]) -> Key<'_> {
        Key { bytes, hash: 1 }
    }

    /// A string that was deleted at this time.
    fn deleted(time: u64) -> Object {
        let (mut object, mut ops) = (Tag::Register.empty(), Vec::new());
        let stamp = |time| Writer {
            stamp: Stamp {
                time,
                ..Stamp::ZERO
            },
        };
        register::set(&stamp(time - 1), b"value", 0, &mut ops);
        let done = object.commit_encoded(&ops, &Tuning::default());
        done.expect("operations of a register");
        ops.clear();
        object.encode_delete(&stamp(time), &mut ops);
        let done = object.commit_encoded(&ops, &Tuning::default());
        done.expect("operations of a register");
        object
    }

    #[test]
    fn graves_are_due_when_the_horizon_has_passed_them() {
        let mut graves = Graves::default();
        graves.put(key(b"a"), deleted(10));
        graves.put(key(b"b"), deleted(20));
        graves.enroll(key(b"c"), 30);
        graves.enroll(key(b"c"), 40);
        graves.check();
        assert!(!graves.is_due(9) && graves.is_due(10));
        assert_eq!(graves.take_due().map(|due| due.1), Some(b"a"[..].into()));
        assert!(graves.take(b"a").is_some() && !graves.is_due(19));
        assert_eq!(graves.take_due().map(|due| due.1), Some(b"b"[..].into()));
        // It may be put off, with whatever parity it had.
        let (object, parity) = graves.take_with_parity(b"b").expect("a grave");
        graves.put_until(key(b"b"), object, parity, 50);
        assert_eq!(graves.take_due().map(|due| due.1), Some(b"c"[..].into()));
        graves.check();
        assert!(!graves.is_due(49) && graves.is_due(50) && !graves.is_settled());
        graves.take_due();
        graves.take(b"b");
        assert!(graves.is_settled());
        assert_eq!((graves.len(), graves.bytes()), (0, 0));
    }

    #[test]
    fn a_walk_visits_the_graves_of_its_start() {
        let mut graves = Graves::default();
        for name in [b"a", b"b"] {
            graves.put(key(name), deleted(10));
        }
        assert!(graves.walk().is_none() && !graves.is_ahead(b"a"));
        graves.begin_walk();
        graves.put(key(b"c"), deleted(11));
        assert!(graves.is_ahead(b"a") && graves.is_ahead(b"b") && !graves.is_ahead(b"c"));
        let (keys, next) = graves.keys_from(graves.walk().expect("under way"), 1);
        assert_eq!((keys, next), (vec![b"a"[..].into()], Some(b"b"[..].into())));
        graves.set_visited(b"a");
        graves.set_visited(b"b");
        graves.set_walk(None);
        graves.check();
        let empty = graves.of_nothing();
        assert_eq!((empty.len(), empty.parity), (0, graves.parity));
    }

    #[test]
    fn stale_entries_of_the_queue_are_bounded() {
        let mut graves = Graves::default();
        for time in 1..1000 {
            graves.put(key(b"a"), deleted(time + 1));
            assert!(graves.queue.len() <= 66);
        }
        graves.check();
    }
}
