//! The books of transactions: entries that belong to a slot as its keys do, in a database that no client can select.
//!
//! Entries are strings that are written as those of clients are: the journal, a snapshot under way and copies of
//! slots have them, and they count as memory and as changes since the last save. They never expire, are never
//! evicted, flushed or swapped, are strict whatever the keyspaces are, and count neither as keys nor as accesses.

use super::Shard;
use super::types::{Any, ExpirySetting, NewValue, Value};
use crate::books::{BookId, entry_of_name, name_of_entry};
use crate::effect::Effect;
use rufous_base::Now;
use rufous_base::limits::BOOKS;

fn bytes_of(any: Any<'_>) -> &[u8] {
    any.string().map_or(&[], Value::bytes)
}

impl Shard {
    /// Sets the entry of a transaction in the book of a slot, to what many slots have of it and what is this slot's.
    pub fn set_book(&mut self, slot: u16, id: &BookId, (common, own): (&[u8], &[u8]), now: Now) {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            if self.env.snapshot.is_running() {
                self.dbs[BOOKS].prepare(key, now, &mut self.env);
            }
            let journal = &mut self.env.observers.journal;
            journal.write_entry(&name, common);
            if !own.is_empty() {
                journal.write(&Effect::Append {
                    db: BOOKS as u8,
                    key: &name,
                    tail: own,
                });
            }
            self.env.observers.touch(key, BOOKS as u8);
        }
        let (value, setting) = ([common, own].concat(), ExpirySetting::Clear);
        self.dbs[BOOKS].set(key, NewValue::Own(value), setting, now, &mut self.env);
    }

    /// Adds to an entry.
    pub fn append_book(&mut self, slot: u16, id: &BookId, tail: &[u8], now: Now) {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.env.counters.changes += 1;
        if self.env.observers.any() {
            self.dbs[BOOKS].prepare(key, now, &mut self.env);
            let effect = Effect::Append {
                db: BOOKS as u8,
                key: &name,
                tail,
            };
            self.env.observers.tell(key, BOOKS as u8, &effect);
        }
        self.dbs[BOOKS].append(key, tail, now, &mut self.env);
    }

    /// Removes an entry; returns whether there was one.
    pub fn remove_book(&mut self, slot: u16, id: &BookId, now: Now) -> bool {
        let name = name_of_entry(slot, id);
        let key = self.key(&name);
        self.at(BOOKS, key, now).remove()
    }

    /// The entry of a transaction in the book of a slot.
    pub fn book(&self, slot: u16, id: &BookId) -> Option<Vec<u8>> {
        let (db, name) = (&self.dbs[BOOKS], name_of_entry(slot, id));
        let found = db.records.find(self.key(&name))?;
        Some(bytes_of(db.records.value(found.handle)).to_vec())
    }

    /// All entries here, also those of slots that another node answers for, in no particular order. They must not
    /// change meanwhile.
    pub fn books(&self) -> impl Iterator<Item = (u16, BookId, &[u8])> {
        let db = &self.dbs[BOOKS];
        db.records.handles().filter_map(|handle| {
            let item = db.records.item(handle);
            let (slot, id) = entry_of_name(item.key)?;
            Some((slot, id, bytes_of(item.value)))
        })
    }

    /// Number of entries of a slot, whichever node answers for it. It is kept on a node of a cluster; elsewhere it is
    /// counted by a walk over all entries.
    pub fn books_in(&self, slot: u16) -> usize {
        let db = &self.dbs[BOOKS];
        if db.len() == 0 {
            return 0;
        }
        let counted = db.census.slots().map(|slots| slots.strict_in(slot));
        counted.unwrap_or_else(|| self.books().filter(|entry| entry.0 == slot).count())
    }

    /// Whether there is any entry.
    pub fn has_books(&self) -> bool {
        self.dbs[BOOKS].len() > 0
    }
}
