//! Watches that slots of any node have recorded for a connection.

use crate::cluster::links::Links;
use rufous_base::slot::slot_of;
use rufous_cluster::composing::Composer;
use rufous_command::DataCommands;
use rufous_kernel::Worker;
use rufous_kernel::body::{self, At, Deed};
use rufous_kernel::lock::KeyName;
use std::collections::BTreeMap;

/// In place of the epoch that a slot has told: it may have recorded the watch, which counts as lost.
pub(super) const NEVER: u64 = u64::MAX;

/// Watches that slots have recorded.
#[derive(Debug, Default)]
pub(in super::super) struct Far {
    /// The number of these watches at this node, which no others ever have: their end may arrive after later ones have
    /// begun. 0: there are none.
    pub(super) number: u64,
    /// Each with the epoch that its slot has told.
    pub(super) keys: BTreeMap<KeyName, u64>,
}

impl Far {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What the slot of a key has told; 0 if this node has recorded the watch.
    pub(super) fn since(&self, key: &KeyName) -> u64 {
        self.keys.get(key).copied().unwrap_or_default()
    }

    /// Adds a watch. One that was told before counts: it began earlier.
    pub(super) fn add(&mut self, key: KeyName, since: u64) {
        let known = self.keys.entry(key).or_insert(NEVER);
        if *known == NEVER {
            *known = since;
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Ends watches that slots have recorded. No client waits for that.
    pub(in super::super) fn end(self, links: Option<&Links>, kernel: &mut Worker<DataCommands>) {
        if self.keys.is_empty() {
            return;
        }
        let Some(mapping) = links.and_then(|links| links.routing().mapping) else {
            return;
        };
        // A worker ends all of them at once, whichever of its slots is told.
        let mut told = BTreeMap::new();
        for (db, key) in self.keys.keys() {
            let slot = slot_of(key);
            let head = mapping.chains.of(slot).head();
            let worker = |node| Some((node, mapping.members.get(&node)?.worker_of(slot)));
            if let Some(at) = head.and_then(worker) {
                told.entry(at).or_insert((*db, key));
            }
        }
        let watcher = self.number;
        let bodies = told.into_values().filter_map(|(db, key)| {
            let mut composer = Composer::new(false, false);
            composer.add_deed(in_db(db), Deed::Unwatch { watcher }, key);
            Some((composer.finish().ok()?.0, key))
        });
        let bodies: Vec<_> = bodies.collect();
        for (body, key) in bodies {
            let keys = [(&**key, false)];
            kernel.begin_transacting(None, keys, body);
        }
    }

    /// Slots have told of watches; of others it is not known whether they were recorded.
    pub(super) fn told(number: u64, keys: Vec<KeyName>, told: &[u8]) -> Self {
        let slots = body::told(told).unwrap_or_default().into_iter();
        let since_of = |reply: &[u8]| {
            let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
            std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        };
        let slots = slots.filter_map(|told| Some((told.slot, since_of(told.replies.first()?)?)));
        let since: BTreeMap<u16, u64> = slots.collect();
        let of = |key: &KeyName| since.get(&slot_of(&key.1)).copied().unwrap_or(NEVER);
        let keys = keys.into_iter();
        let keys = keys.map(|key| (key.clone(), of(&key))).collect();
        Self { number, keys }
    }
}

/// For a deed on a key of this database.
pub(super) fn in_db(db: u8) -> At {
    At {
        db,
        resp3: false,
        quiet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_watch_of_a_key_counts_unless_it_may_not_have_been_recorded() {
        let key = |name: &str| -> KeyName { (0, name.as_bytes().into()) };
        let mut far = Far::default();
        for (name, since) in [("a", 5), ("a", 7), ("b", NEVER), ("b", 7), ("b", 9)] {
            far.add(key(name), since);
        }
        assert_eq!((far.since(&key("a")), far.since(&key("b"))), (5, 7));
        assert_eq!(far.since(&key("c")), 0);
    }
    #[test]
    fn a_slot_that_has_told_nothing_may_have_recorded_the_watch() {
        let keys: Vec<KeyName> = vec![(0, (&b"a"[..]).into())];
        let far = Far::told(7, keys.clone(), b"");
        assert_eq!((far.number(), far.since(&keys[0])), (7, NEVER));
    }
}
