//! Watches of keys at other nodes: slots record them, as transactions that do only that.

use super::{Apart, in_db};
use crate::cluster::links::Links;
use crate::cluster::redirect::Door;
use crate::cluster::way::Way;
use crate::front::transaction::step::Step;
use crate::front::transaction::watching::end_watches;
use rufous_base::ConnId;
use rufous_base::slot::slot_of;
use rufous_cluster::composing::Composer;
use rufous_command::{DataCommands, Failure};
use rufous_kernel::Worker;
use rufous_kernel::body::{self, Deed};
use rufous_kernel::lock::KeyName;
use rufous_kernel::planted::{self, Planted};
use rufous_kernel::shard::WatchId;
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
    fn add(&mut self, key: KeyName, since: u64) {
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
}

/// What a transaction means for the watches of its connection.
#[derive(Debug)]
pub(super) enum Watches {
    /// Nothing.
    Stay,
    /// `EXEC` or `COMMIT` ends them.
    End {
        watcher: WatchId,
        keys: Vec<KeyName>,
        far: Far,
        /// The database that its commands select.
        db: Option<u8>,
        /// `COMMIT` does.
        begun: bool,
    },
    /// `WATCH` begins these.
    Begin { number: u64, keys: Vec<KeyName> },
    /// A command of a transaction that `BEGIN` has begun begins these, unless the number is 0, for the keys that it takes.
    Fetch { number: u64, step: Box<Step> },
}

impl Watches {
    /// Whether `COMMIT` ends them.
    pub(super) fn are_of_commit(&self) -> bool {
        matches!(self, Self::End { begun: true, .. })
    }
}

impl Apart<'_> {
    /// Whether slots record these watches: other nodes have some of the keys.
    pub(in super::super) fn records(&mut self, conn: ConnId, keys: &[KeyName]) -> bool {
        let door = self.front.connection(conn).map(|c| c.door());
        door == Some(Door::Plain) && self.are_elsewhere(keys)
    }

    /// Whether some of these keys are at another node.
    pub(super) fn are_elsewhere(&self, keys: &[KeyName]) -> bool {
        let Some(links) = self.front.links() else {
            return false;
        };
        let placement = self.front.kernel.placement();
        let is_strict = |key: &&KeyName| placement.lattice(&key.1).is_none();
        let strict = keys.iter().filter(is_strict);
        let mut slots = strict.map(|(_, key)| Some(slot_of(key)));
        let routing = links.routing();
        // One by one: no node may serve one of them now.
        slots.any(|slot| matches!(routing.to_slots([slot]), Way::There(_)))
    }

    /// Has them recorded. The reply comes when they are.
    pub(in super::super) fn watch(
        &mut self,
        conn: ConnId,
        keys: Vec<KeyName>,
    ) -> Result<(), Failure> {
        let command = self.front.table.find(b"watch").unwrap_or_default();
        let number = self.number_watches(conn);
        let watcher = number;
        let Some(connection) = self.front.connection(conn) else {
            return Ok(());
        };
        let header = connection.header(command, false, None);
        let mut composer = Composer::new(true, false);
        for (db, key) in &keys {
            composer.add_deed(in_db(*db), Deed::Watch { watcher }, key);
        }
        self.begin(&header, composer, Watches::Begin { number, keys })
    }

    /// The number of the watches of a connection.
    pub(super) fn number_watches(&mut self, conn: ConnId) -> u64 {
        let own = u64::from(self.front.id().0);
        let next = self.front.transactions.apart.next_watcher(own);
        let Some(connection) = self.front.connection(conn) else {
            return next;
        };
        let far = &mut connection.transaction.far;
        if far.number == 0 {
            far.number = next;
        }
        far.number
    }

    /// A transaction was executed: its commands may have selected a database.
    pub(super) fn select(&mut self, conn: ConnId, watches: &Watches) {
        if let Watches::End { db: Some(db), .. } = watches
            && let Some(connection) = self.front.connection(conn)
        {
            connection.db = *db;
        }
    }

    /// A transaction is over: ends or begins the watches of its connection. `told`: by its slots.
    pub(super) fn settle_watches(&mut self, conn: ConnId, watches: Watches, told: &[u8]) {
        let Watches::Begin { number, keys } = watches else {
            return self.drop_watches(watches);
        };
        let keys = watched_since(keys, told);
        self.watches_begun(conn, Far { number, keys });
    }

    /// Slots have recorded these watches of a connection.
    pub(super) fn watches_begun(&mut self, conn: ConnId, begun: Far) {
        let connection = self.front.connection(conn);
        let transaction = connection.map(|connection| &mut connection.transaction);
        match transaction.filter(|transaction| transaction.far.number == begun.number) {
            Some(transaction) => {
                for (key, since) in begun.keys {
                    if since != NEVER && !planted::is(Planted::CopyNotWatched) {
                        transaction.watched.insert(key.clone());
                    }
                    transaction.far.add(key, since);
                }
            }
            None => begun.end(self.front.peers.links(), &mut self.front.kernel),
        }
    }

    /// Ends the watches of an `EXEC` that is over, or is not executed.
    pub(super) fn drop_watches(&mut self, watches: Watches) {
        if let Watches::End {
            watcher, keys, far, ..
        } = watches
        {
            let front = &mut self.front;
            let (kernel, out) = (&mut front.kernel, &mut front.out);
            end_watches(watcher, keys.iter(), kernel, out);
            far.end(front.peers.links(), kernel);
        }
    }
}

/// What slots have told of watches; of others it is not known whether they were recorded.
fn watched_since(keys: Vec<KeyName>, told: &[u8]) -> BTreeMap<KeyName, u64> {
    let slots = body::told(told).unwrap_or_default().into_iter();
    let number = |reply: &[u8]| {
        let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
        std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
    };
    let slots = slots.filter_map(|told| Some((told.slot, number(told.replies.first()?)?)));
    let since: BTreeMap<u16, u64> = slots.collect();
    let of = |key: &KeyName| since.get(&slot_of(&key.1)).copied().unwrap_or(NEVER);
    let all = keys.into_iter();
    all.map(|key| (key.clone(), of(&key))).collect()
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
}
