//! Books belong to slots as keys do, and clients see nothing of them.

use super::journal::{next_effect, replay};
use super::replicas::All;
use crate::books::{BookId, name_of_entry};
use crate::effect::Effect;
use crate::shard::lattice::Keying;
use crate::shard::{ExpirySetting, NewValue, Shard, WatchId, slot_of_effect};
use proptest::prelude::*;
use rufous_base::Now;
use rufous_base::limits::{ALL_DATABASES, BOOKS, DATABASES};
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use rufous_datatype::replicated::Writer;
use rufous_lattice::Stamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NOW: Now = Now {
    mono_us: 1_000_000,
    unix_us: 1_700_000_000_000_000,
};

/// All entries by slot and identity.
type Books = BTreeMap<(u16, BookId), Vec<u8>>;

fn id(n: u8) -> BookId {
    let mut id = [0; 18];
    id[17] = n;
    id
}

fn books(shard: &Shard) -> Books {
    let mut all = Books::new();
    for (slot, id, entry) in shard.books() {
        assert_eq!(shard.book(slot, &id).as_deref(), Some(entry));
        assert!(all.insert((slot, id), entry.to_vec()).is_none());
    }
    for slot in SLOTS {
        let of_slot = all.keys().filter(|name| name.0 == slot);
        assert_eq!(shard.books_in(slot), of_slot.count());
    }
    let slots: BTreeSet<u16> = all.keys().map(|name| name.0).collect();
    assert_eq!(shard.slots_with_books(), slots);
    shard.check();
    all
}

/// Two neighbours, and the slot of `{a}`.
const SLOTS: [u16; 3] = [0, 1, 15_495];

fn journaling(seed: u64) -> Shard {
    let mut shard = Shard::new(seed);
    shard.observers_mut().set_journaling(true);
    shard
}

/// A shard with a few keys of clients and entries, and these entries.
fn filled() -> (Shard, Books) {
    let (mut shard, mut all) = (journaling(1), Books::new());
    for n in 0..9 {
        for slot in SLOTS {
            shard.set_book(slot, &id(n), (&[n; 30], b""), NOW);
            all.insert((slot, id(n)), vec![n; 30]);
        }
        let name = [b"{a}", &[n][..]].concat();
        let key = shard.key(&name);
        shard.set(0, key, NewValue::Copy(b"v"), ExpirySetting::Clear, NOW);
    }
    assert_eq!(books(&shard), all);
    (shard, all)
}

#[derive(Clone, Debug)]
enum Op {
    /// Slot, transaction, bytes.
    Set(usize, u8, usize),
    Remove(usize, u8),
    /// The same, with a byte behind it that tells them apart, in all slots.
    SetAll(u8, usize),
    Append(usize, u8, usize),
    /// A key of a client in the slot of `{a}`.
    Key(u8),
    /// A step of what is under way, with this budget.
    Step(usize),
}

fn operations() -> impl Strategy<Value = Op> {
    let len = || prop_oneof![9 => 0usize..300, 1 => 60_000usize..200_000];
    prop_oneof![
        8 => (0usize..3, 0u8..20, len()).prop_map(|(s, n, len)| Op::Set(s, n, len)),
        4 => (0usize..3, 0u8..20).prop_map(|(s, n)| Op::Remove(s, n)),
        4 => (0u8..20, len()).prop_map(|(n, len)| Op::SetAll(n, len)),
        4 => (0usize..3, 0u8..20, len()).prop_map(|(s, n, len)| Op::Append(s, n, len)),
        2 => (0u8..9).prop_map(Op::Key),
        3 => (0usize..400).prop_map(Op::Step),
    ]
}

/// A shard with a model of its books.
struct Pair {
    shard: Shard,
    books: Books,
    rng: Rng,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self {
            shard: journaling(seed),
            books: Books::new(),
            rng: Rng::new(seed),
        }
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Set(slot, n, len) => {
                let entry = vec![self.rng.below(256) as u8; len];
                self.shard.set_book(SLOTS[slot], &id(n), (&entry, b""), NOW);
                self.books.insert((SLOTS[slot], id(n)), entry);
            }
            Op::Remove(slot, n) => {
                let was = self.books.remove(&(SLOTS[slot], id(n))).is_some();
                assert_eq!(self.shard.remove_book(SLOTS[slot], &id(n), NOW), was);
            }
            Op::SetAll(n, len) => {
                let entry = vec![self.rng.below(256) as u8; len];
                for slot in SLOTS {
                    let own = [slot as u8];
                    self.shard.set_book(slot, &id(n), (&entry, &own), NOW);
                    let whole = [&entry[..], &own].concat();
                    self.books.insert((slot, id(n)), whole);
                }
            }
            Op::Append(slot, n, len) => {
                let tail = vec![self.rng.below(256) as u8; len];
                self.shard.append_book(SLOTS[slot], &id(n), &tail, NOW);
                let entry = self.books.entry((SLOTS[slot], id(n))).or_default();
                entry.extend(tail);
            }
            Op::Key(n) => {
                let name = [b"{a}", &[n][..]].concat();
                let key = self.shard.key(&name);
                let value = NewValue::Copy(b"v");
                self.shard.set(3, key, value, ExpirySetting::Clear, NOW);
            }
            Op::Step(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_and_a_snapshot_have_the_books(
        seed in any::<u64>(),
        before in proptest::collection::vec(operations(), 0..60),
        during in proptest::collection::vec(operations(), 0..60),
    ) {
        let (mut pair, mut of_log) = (Pair::new(seed), Shard::new(!seed));
        before.iter().for_each(|op| pair.run(op));
        replay(&mut of_log, pair.shard.journal());
        prop_assert_eq!(books(&of_log), pair.books.clone());
        pair.shard.begin_snapshot();
        pair.shard.journal().clear();
        let (cut, mut out) = (pair.books.clone(), Vec::new());
        for op in &during {
            pair.run(op);
            if let Op::Step(budget) = op {
                pair.shard.snapshot_step(*budget, &mut out);
            }
        }
        while pair.shard.snapshot_step(1000, &mut out) {}
        let mut loaded = Shard::new(seed);
        replay(&mut loaded, &out);
        prop_assert_eq!(books(&loaded), cut);
        replay(&mut loaded, pair.shard.journal());
        replay(&mut of_log, pair.shard.journal());
        for shard in [&pair.shard, &loaded, &of_log] {
            prop_assert_eq!(books(shard), pair.books.clone());
        }
    }

    #[test]
    fn a_copy_of_a_slot_has_its_book_at_the_end(
        seed in any::<u64>(),
        before in proptest::collection::vec(operations(), 0..60),
        during in proptest::collection::vec(operations(), 0..60),
    ) {
        let (mut pair, mut other) = (Pair::new(seed), Shard::new(!seed));
        other.invite_all();
        before.iter().for_each(|op| pair.run(op));
        pair.shard.journal().clear();
        let (slot, mut is_done) = (SLOTS[2], false);
        pair.shard.begin_slot_copy(slot);
        for op in during.iter().chain(std::iter::repeat(&Op::Step(usize::MAX))) {
            pair.run(op);
            let journal = std::mem::take(pair.shard.journal());
            let mut rest = &journal[..];
            while !rest.is_empty() {
                let (effect, mut bytes) = (next_effect(&journal, &mut rest), Vec::new());
                effect.encode(&mut bytes);
                if slot_of_effect(&effect) == Some(slot) {
                    pair.shard.note_in_slot(slot, &bytes);
                }
            }
            if let Op::Step(mut looks) = *op {
                match pair.shard.copy_slot(slot, &mut looks) {
                    Some(part) => other.do_in_slot(slot, &part, NOW).expect("of the slot"),
                    None => is_done = true,
                }
            }
            if is_done {
                break;
            }
        }
        pair.books.retain(|(of, _), _| *of == slot);
        prop_assert_eq!(books(&other), pair.books);
    }
}

#[test]
fn a_slot_that_is_dropped_loses_its_book_and_no_other() {
    for counts in [false, true] {
        let (mut shard, mut all) = filled();
        if counts {
            shard.invite_all();
        }
        let mut of_log = Shard::new(2);
        replay(&mut of_log, shard.journal());
        shard.journal().clear();
        while !shard.clear_slot(SLOTS[1], &mut 5) {}
        all.retain(|(slot, _), _| *slot != SLOTS[1]);
        assert_eq!(books(&shard), all);
        replay(&mut of_log, shard.journal());
        assert_eq!(books(&of_log), all);
        assert_eq!(shard.len(0), 9);
    }
}

#[test]
fn clients_see_nothing_of_books() {
    let (mut shard, all) = filled();
    let name = name_of_entry(SLOTS[0], &id(1));
    shard.journal().clear();
    let hits = |shard: &Shard| (shard.counters().hits, shard.counters().misses);
    let before = hits(&shard);
    for db in 0..DATABASES {
        let key = shard.key(&name);
        shard.watch(db, key, WatchId(1), NOW);
        shard.observers_mut().await_key(db as u8, key);
        assert!(!shard.contains(db, key, NOW));
        assert_eq!(shard.len(db), if db == 0 { 9 } else { 0 });
        assert_eq!(shard.counted_len(db), shard.len(db));
    }
    shard.set_book(SLOTS[0], &id(1), (b"new", b""), NOW);
    assert!(shard.remove_book(SLOTS[0], &id(1), NOW));
    assert!(!shard.remove_book(SLOTS[0], &id(1), NOW));
    assert_eq!(shard.book(SLOTS[0], &id(1)), None);
    shard.set_book(SLOTS[0], &id(1), (&[1; 30], b""), NOW);
    assert_eq!(books(&shard), all);
    assert_eq!(hits(&shard), before);
    assert!(!shard.observers().watches().is_dirty(WatchId(1)));
    assert!(!shard.observers().has_touched());
}

#[test]
fn nothing_but_their_owner_removes_entries() {
    let (mut shard, all) = filled();
    let mut of_log = Shard::new(2);
    for db in 0..DATABASES {
        shard.flush_own(db, NOW);
        shard.flush(db);
        shard.swap(db, (db + 1) % DATABASES);
    }
    let later = Now {
        unix_us: u64::MAX / 2,
        ..NOW
    };
    assert!(!shard.expire_step(later, usize::MAX));
    while shard.maintain_step(100) {}
    replay(&mut of_log, shard.journal());
    assert_eq!((books(&shard), books(&of_log)), (all.clone(), all));
    assert_eq!((0..DATABASES).map(|db| shard.len(db)).sum::<usize>(), 0);
}

#[test]
fn entries_count_as_memory_and_are_not_drawn_for_eviction() {
    let mut shard = Shard::new(1);
    for n in 0..100 {
        shard.set_book(7, &id(n), (&[n; 1000], b""), NOW);
    }
    assert!(shard.charged() > 100_000 && shard.memory().total() > 100_000);
    assert_eq!(shard.memory().keys, 0);
    for volatile in [false, true] {
        assert!(!shard.draws().can_draw(volatile));
    }
    assert_eq!(shard.draws().soonest(), None);
    let key = shard.key(b"k");
    let setting = ExpirySetting::At(NOW.unix_ms() + 1000);
    shard.set(2, key, NewValue::Copy(b"v"), setting, NOW);
    for volatile in [false, true] {
        let mut drawn = Vec::new();
        shard.draws().draw(
            crate::shard::Sample {
                volatile,
                count: 50,
            },
            &mut Rng::new(1),
            &mut |_, _| true,
            &mut drawn,
        );
        assert!(shard.draws().can_draw(volatile) && !drawn.is_empty());
        assert!(drawn.iter().all(|drawn| drawn.db == 2));
    }
    (0..100).for_each(|n| assert!(shard.remove_book(7, &id(n), NOW)));
    assert!(shard.charged() < 10_000 && shard.books().next().is_none());
}

/// A keyspace with the empty prefix has all keys of clients.
#[test]
fn entries_are_strict_in_every_keyspace() {
    let (mut shard, all) = filled();
    shard.invite_all();
    let keying: Arc<dyn Keying> = Arc::new(All);
    shard.set_counted(Some(&keying));
    shard.lattice_mut().set_keying(Some(keying));
    shard.journal().clear();
    shard.begin_lattice(Writer {
        stamp: Stamp {
            time: NOW.unix_us,
            replica: 1,
            step: 0,
        },
    });
    shard.set_book(SLOTS[1], &id(1), (b"new", b""), NOW);
    assert!(shard.remove_book(SLOTS[1], &id(2), NOW));
    shard.end_lattice();
    let mut all = all;
    all.insert((SLOTS[1], id(1)), b"new".to_vec());
    all.remove(&(SLOTS[1], id(2)));
    assert_eq!(books(&shard), all);
    assert_eq!(shard.graves_len(), 0);
    let mut journal = &shard.journal()[..];
    let (db, names) = (BOOKS as u8, [1, 2].map(|n| name_of_entry(SLOTS[1], &id(n))));
    let set = Effect::Set {
        db,
        key: &names[0],
        value: b"new",
        expire_at: None,
    };
    let delete = Effect::Delete { db, key: &names[1] };
    assert_eq!(Effect::decode(&mut journal), Ok(set));
    assert_eq!(Effect::decode(&mut journal), Ok(delete));
    assert!(journal.is_empty());
}

/// What was moved to another number of workers: entries go as keys do, by the slot of the name.
#[test]
fn an_entry_is_moved_as_a_key() {
    let (mut shard, all) = filled();
    let mut other = Shard::new(2);
    let mut names = Vec::<Box<[u8]>>::new();
    let next = shard.scan(BOOKS, 0, 1000, NOW, &mut |item| names.push(item.key.into()));
    assert_eq!((next, names.len()), (None, all.len()));
    for name in names {
        assert!(SLOTS.contains(&slot_of(&name)));
        let key = shard.key(&name);
        let entry = shard.gather_entry(BOOKS, key, NOW).expect("it is there");
        other.insert_entry(BOOKS, other.key(&name), entry, NOW);
    }
    assert_eq!(books(&other), all);
    assert_eq!(BOOKS + 1, ALL_DATABASES);
}
