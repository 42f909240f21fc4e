//! What clients have seen of keys with causal order: their *contexts*. A client's plain write replaces what its
//! context covers and becomes a sibling of the rest [Anna §VI-C].
//!
//! A connection always uses the same replica of a key, so its contexts are kept at the worker that has this replica,
//! which lends them to the shard on which it runs a command. They are bounded: the least recently used context is
//! dropped. A write without its context becomes a sibling of the values that it would have replaced, so no write is
//! lost.

use super::types::Key;
use rufous_base::limits::CONTEXT_BYTES;
use rufous_lattice::{Seen, Stamp};
use std::collections::BTreeMap;

/// Client, database, and the hash of a key.
type Name = (u64, u8, u32);

#[derive(Debug)]
struct Context {
    /// Of two keys with equal hashes, only the most recently used one is kept.
    key: Box<[u8]>,
    seen: Seen,
    used: u64,
}

impl Context {
    /// Memory of the entry and its nodes, by an estimate of their fill.
    fn bytes(&self) -> usize {
        let nodes = (size_of::<Self>() + 2 * size_of::<Name>() + 8) * 3 / 2;
        nodes + self.key.len() + self.seen.all.stamps().count() * size_of::<Stamp>()
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Contexts {
    all: BTreeMap<Name, Context>,
    /// By the order of their last use.
    order: BTreeMap<u64, Name>,
    uses: u64,
    bytes: usize,
}

impl Contexts {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a client has seen of a key.
    pub fn get(&mut self, client: u64, db: u8, key: Key<'_>) -> Option<&Seen> {
        let name = (client, db, key.hash);
        let context = self.all.get_mut(&name)?;
        if *context.key != *key.bytes {
            return None;
        }
        if context.used != self.uses {
            self.uses += 1;
            self.order.remove(&context.used);
            context.used = self.uses;
            self.order.insert(self.uses, name);
        }
        Some(&context.seen)
    }

    /// Adds to what a client has seen.
    pub fn note(&mut self, client: u64, db: u8, key: Key<'_>, seen: &Seen) {
        if seen.is_empty() {
            return;
        }
        let mut all = seen.clone();
        if let Some(before) = self.get(client, db, key) {
            all.merge(before);
            if all == *before {
                return;
            }
        }
        let name = (client, db, key.hash);
        self.remove(name);
        self.uses += 1;
        let context = Context {
            key: key.bytes.into(),
            seen: all,
            used: self.uses,
        };
        self.bytes += context.bytes();
        self.order.insert(self.uses, name);
        self.all.insert(name, context);
        while self.bytes > CONTEXT_BYTES
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, name: Name) {
        if let Some(context) = self.all.remove(&name) {
            self.bytes -= context.bytes();
            self.order.remove(&context.used);
        }
    }
}

/// The client of the running command.
#[derive(Debug)]
pub(super) struct Session {
    client: u64,
    contexts: Contexts,
    /// Number of concurrent values, if the command asked for one and the keyspace picks none.
    concurrent: Option<usize>,
}

impl Session {
    pub(super) fn new(client: u64, contexts: Contexts) -> Self {
        Self {
            client,
            contexts,
            concurrent: None,
        }
    }

    /// Also returns the number of values of a key that the command tried to read as one, if the keyspace picks none.
    pub(super) fn end(self) -> (Contexts, Option<usize>) {
        (self.contexts, self.concurrent)
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.concurrent.is_some()
    }

    pub(super) fn set_undecided(&mut self, values: usize) {
        self.concurrent = Some(values);
    }

    /// What the client has seen of a key.
    pub(super) fn context_of(&mut self, db: u8, key: Key<'_>) -> Seen {
        let seen = self.contexts.get(self.client, db, key);
        seen.cloned().unwrap_or_default()
    }

    pub(super) fn note(&mut self, db: u8, key: Key<'_>, seen: &Seen) {
        self.contexts.note(self.client, db, key, seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8], hash: u32) -> Key<'_> {
        Key { bytes, hash }
    }

    fn seen(time: u64) -> Seen {
        let mut seen = Seen::default();
        seen.all.raise(Stamp {
            time,
            replica: 1,
            step: 0,
        });
        seen
    }

    #[test]
    fn each_client_has_seen_what_it_has_seen() {
        let mut all = Contexts::default();
        all.note(1, 0, key(b"a", 7), &seen(5));
        all.note(1, 0, key(b"a", 7), &seen(3));
        assert_eq!(all.get(1, 0, key(b"a", 7)), Some(&seen(5)));
        assert_eq!(all.get(2, 0, key(b"a", 7)), None);
        assert_eq!(all.get(1, 1, key(b"a", 7)), None);
        // Another key with the same hash replaces the entry, without inheriting its context.
        assert_eq!(all.get(1, 0, key(b"b", 7)), None);
        all.note(1, 0, key(b"b", 7), &seen(1));
        assert_eq!(all.get(1, 0, key(b"b", 7)), Some(&seen(1)));
        assert_eq!(all.get(1, 0, key(b"a", 7)), None);
        assert_eq!((all.len(), all.order.len()), (1, 1));
    }

    #[test]
    fn the_least_recently_used_go_and_nothing_grows_beyond_the_bound() {
        let mut all = Contexts::default();
        let name = vec![b'k'; 64 << 10];
        let most = CONTEXT_BYTES / name.len();
        for client in 0..3 * most as u64 {
            all.note(client, 0, key(&name, 1), &seen(1));
            assert!(all.get(0, 0, key(&name, 1)).is_some(), "in use");
            assert!(all.bytes() <= CONTEXT_BYTES);
        }
        assert!(all.len() < most + 1 && all.len() > most / 2);
        assert!(all.get(1, 0, key(&name, 1)).is_none());
        assert_eq!(all.order.len(), all.len());
        let bytes: usize = all.all.values().map(Context::bytes).sum();
        assert_eq!(bytes, all.bytes());
        // A context beyond the bound by itself is not kept.
        let huge = vec![0; CONTEXT_BYTES + 1];
        all.note(9, 0, key(&huge, 2), &seen(1));
        assert!(all.is_empty() && all.bytes() == 0);
    }
}
