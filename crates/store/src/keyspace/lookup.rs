//! Finds the longest prefix of a key. Every command of a node with keyspaces does this lookup.
//!
//! Prefixes are sorted by their bytes. Every prefix of a key sorts at or before the key, and everything that sorts
//! between such a prefix and the key begins with that prefix as well. So the last prefix that does not sort after the
//! key either is a prefix of the key, or begins with all prefixes of the key: each entry knows the longest other
//! prefix that it begins with.

use std::sync::Arc;

use super::Keyspace;

/// Bytes that are compared in one step.
const HEAD: usize = 8;

/// A prefix; entries are sorted by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Its first bytes as a number that sorts like the bytes.
    head: u64,
    len: u16,
    /// The index of its keyspace.
    at: u16,
    /// The index of the longest other prefix that it begins with.
    shorter: Option<u16>,
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookup(Vec<Entry>);

/// The first bytes as a number that sorts like the bytes; missing ones are zero.
#[inline]
pub(crate) fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<HEAD>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD];
            head[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(head)
        }
    }
}

fn in_common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Lookup {
    /// Built from a table's keyspaces, whose prefixes all differ.
    pub(super) fn new(all: &[Arc<Keyspace>]) -> Self {
        let mut order: Vec<u16> = (0..all.len() as u16).collect();
        let prefix = |at: u16| &*all[usize::from(at)].prefix;
        order.sort_by_key(|&at| prefix(at));
        // Indices of prefixes, each of which is a prefix of the next one.
        let mut open = Vec::<u16>::new();
        let mut entries = Vec::with_capacity(order.len());
        for (entry, &at) in order.iter().enumerate() {
            let own = prefix(at);
            while let Some(&last) = open.last() {
                if own.starts_with(prefix(order[usize::from(last)])) {
                    break;
                }
                open.pop();
            }
            entries.push(Entry {
                head: head(own),
                len: own.len() as u16,
                at,
                shorter: open.last().copied(),
            });
            open.push(entry as u16);
        }
        Self(entries)
    }

    /// The index of the keyspace with the longest prefix of `key`.
    #[inline]
    pub(super) fn of(&self, key: &[u8], all: &[Arc<Keyspace>]) -> Option<usize> {
        let (number, prefix) = (head(key), |entry: &Entry| {
            &*all[usize::from(entry.at)].prefix
        });
        let is_before = |entry: &Entry| match entry.head == number {
            // Short prefixes need a comparison of all their bytes.
            true => prefix(entry) <= key,
            false => entry.head < number,
        };
        let mut entry = self.0[..self.0.partition_point(is_before)].last()?;
        let common = in_common(prefix(entry), key);
        while usize::from(entry.len) > common {
            entry = &self.0[usize::from(entry.shorter?)];
        }
        Some(usize::from(entry.at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keyspaces, MOST_KEYSPACES, Regime};
    use super::*;
    use proptest::prelude::*;

    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        // Few distinct bytes, so that many of the names are prefixes of others.
        let byte = prop::sample::select(&[0u8, 1, b'a', b'b', 0xFF][..]);
        prop::collection::vec(byte, 0..most)
    }

    fn linear<'a>(table: &'a Keyspaces, key: &[u8]) -> Option<&'a Keyspace> {
        let fitting = table.iter().filter(|k| key.starts_with(&k.prefix));
        fitting.max_by_key(|keyspace| keyspace.prefix.len())
    }

    fn table(prefixes: impl IntoIterator<Item = Vec<u8>>) -> Keyspaces {
        let mut table = Keyspaces::default();
        for (n, prefix) in prefixes.into_iter().enumerate() {
            let keyspace = Keyspace {
                regime: Regime::Lattice,
                ..Keyspace::new(&format!("k{n}"), &prefix)
            };
            // One of two equal prefixes is refused.
            table = table.with(keyspace).unwrap_or(table);
        }
        table
    }

    proptest! {
        #[test]
        fn finds_what_a_look_at_each_prefix_finds(
            prefixes in prop::collection::vec(bytes(14), 0..40),
            keys in prop::collection::vec(bytes(18), 1..60),
        ) {
            let mut table = table(prefixes.iter().cloned());
            for key in keys.iter().chain(&prefixes) {
                prop_assert_eq!(table.of(key), linear(&table, key));
            }
            // Also after some were removed.
            for name in ["k0", "k3", "k7"] {
                table = table.without(name).unwrap_or(table);
            }
            for key in keys.iter().chain(&prefixes) {
                prop_assert_eq!(table.of(key), linear(&table, key));
            }
        }
    }

    #[test]
    fn as_many_as_may_be_and_as_deep_as_they_may_nest() {
        let nested = (0..=256).map(|len| vec![b'a'; len]);
        let apart = (0..MOST_KEYSPACES - 257).map(|n| format!("k{n}:").into_bytes());
        let table = table(nested.chain(apart));
        assert_eq!(table.iter().count(), MOST_KEYSPACES);
        for len in 0..300 {
            for last in *b"\0abz" {
                let mut key = vec![b'a'; len];
                key.push(last);
                assert_eq!(table.of(&key), linear(&table, &key), "{len} {last}");
            }
        }
        for n in 0..2000 {
            let key = format!("k{n}:{n}").into_bytes();
            assert_eq!(table.of(&key), linear(&table, &key));
        }
    }
}
