//! The books of transactions: entries that belong to a slot as its keys do, in a database that no client can select.
//!
//! Entries are strings that are written as those of clients are: the journal, a snapshot under way and copies of
//! slots have them, and they count as memory and as changes since the last save. They never expire, are never
//! evicted, flushed or swapped, are strict whatever the keyspaces are, and count neither as keys nor as accesses.

use super::databases::Databases;
use super::db::Db;
use super::types::{Any, Key, Value};
use crate::books::{BookId, entry_of_name};
use rufous_base::limits::BOOKS;
use std::collections::BTreeSet;

fn bytes_of(any: Any<'_>) -> &[u8] {
    any.string().map_or(&[], Value::bytes)
}

/// All books here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Books<'a>(&'a Db);

impl<'a> Books<'a> {
    pub(super) fn new(data: &'a Databases) -> Self {
        Self(&data.dbs[BOOKS])
    }

    /// The entry with this name, which has this key.
    pub(super) fn get(self, key: Key<'_>) -> Option<&'a [u8]> {
        let found = self.0.records.find(key)?;
        Some(bytes_of(self.0.records.value(found.handle)))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (u16, BookId, &'a [u8])> {
        let records = &self.0.records;
        records.handles().filter_map(|handle| {
            let item = records.item(handle);
            let (slot, id) = entry_of_name(item.key)?;
            Some((slot, id, bytes_of(item.value)))
        })
    }

    /// Slots with entries.
    pub(super) fn slots(self) -> BTreeSet<u16> {
        match self.0.census.slots() {
            Some(slots) => slots.with_strict().collect(),
            None => self.iter().map(|(slot, ..)| slot).collect(),
        }
    }

    /// Number of entries of a slot.
    pub(super) fn len_in(self, slot: u16) -> usize {
        if self.0.len() == 0 {
            return 0;
        }
        let counted = self.0.census.slots();
        let counted = counted.map(|slots| slots.strict_in(slot));
        counted.unwrap_or_else(|| self.iter().filter(|entry| entry.0 == slot).count())
    }
}
