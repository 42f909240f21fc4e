//! Conversion of existing keys by a change of the table of keyspaces.
//!
//! Everything of every worker is held. Each worker examines its keys and counts those whose
//! replication changes, and those that cannot be converted: if there are any of these, the change
//! is refused. Otherwise:
//!
//! 1. If some keys have replicas, every worker sends its changes and waits for those of the others:
//!    now all replicas are equal, and no message between them is in transit (a *drain*). Their
//!    contents, including concurrent values, are known only now, and so every worker examines its
//!    keys again.
//! 2. Every worker adopts the table and converts its keys, in the piece of the log that has the
//!    table: a start finds both or neither. The primary makes plain values replicated and replicas
//!    plain; other replicas are removed. A start drops a log's replicas from before such a table
//!    ([`crate::shard::Shard::apply`]): their current state follows in the primary's log, and what
//!    was deleted and forgotten must not be restored from a log that has less than others.
//! 3. Another drain: no worker releases its keys before the new replicas exist everywhere.

use super::{KEYS, each_grave};
use crate::keyspace::{Keyspace, Keyspaces};
use crate::replicate::replicas::Replicas;
use crate::shard::convert::reshapes;
use crate::shard::{Item, convert};
use crate::worker::store::Store;
use rufous_base::Now;
use rufous_base::limits::DATABASES;
use rufous_datatype::replicated::Writer;
use std::sync::Arc;

/// The limit of keys that one change converts.
const MOST_KEYS: u64 = 1_000_000;
/// The limit of bytes of their values and names.
const MOST_BYTES: u64 = 256 << 20;
/// Why no key is converted that other nodes may have.
const SHARED: &str = "other nodes of the cluster have them, too";

/// A worker's findings, while everything is held.
#[derive(Debug, Default)]
pub struct Findings {
    /// Keys to convert, and the bytes of their values and names.
    keys: u64,
    bytes: u64,
    /// Keys that cannot be converted.
    unfit: u64,
    /// One of them, and why.
    example: Option<(Box<[u8]>, &'static str)>,
    /// Some keys have replicas, which may not be equal yet.
    is_shared: bool,
}

impl Findings {
    pub(in crate::worker) fn add(&mut self, other: Findings) {
        self.keys += other.keys;
        self.bytes += other.bytes;
        self.unfit += other.unfit;
        self.is_shared |= other.is_shared;
        if self.example.is_none() {
            self.example = other.example;
        }
    }

    /// Whether replicas must be sent.
    pub(in crate::worker) fn converts(&self) -> bool {
        self.keys > 0
    }

    fn count(&mut self, item: &Item<'_>, is_shared: bool) {
        self.keys += 1;
        self.bytes += (item.key.len() + convert::size_of_value(item.value)) as u64;
        self.is_shared |= is_shared;
    }

    fn unfit(&mut self, key: &[u8], why: &'static str) {
        self.unfit += 1;
        self.example.get_or_insert_with(|| (key.into(), why));
    }

    /// Whether replicas must be made equal first.
    pub(in crate::worker) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Why the change cannot be made.
    pub(in crate::worker) fn refusal(&self) -> Option<String> {
        if let Some((key, why)) = &self.example {
            return Some(format!(
                "keys with this prefix cannot be replicated otherwise than they are: {} of them, \
                 '{}' among these: {why}. Delete them, or copy them to another prefix",
                self.unfit,
                key.escape_ascii()
            ));
        }
        (self.keys > MOST_KEYS || self.bytes > MOST_BYTES).then(|| {
            format!(
                "{} keys with {} bytes would have to be converted while everything waits: \
                 at most {MOST_KEYS} keys and {MOST_BYTES} bytes are. \
                 Write the data again under another prefix",
                self.keys, self.bytes
            )
        })
    }
}

/// The lattice keyspaces that a key leaves and enters.
type Move<'a> = (Option<&'a Keyspace>, Option<&'a Keyspace>);

/// Messages between workers.
#[derive(Debug)]
pub enum Draining {
    /// The sender's command installs this table on all workers, and holds everything: send all
    /// workers the changes of replicas and, after receiving theirs, tell the sender what the table
    /// would do.
    Begin { multi: u64, table: Arc<Keyspaces> },
    /// The sender has sent all its changes, before or after it adopted the table of this version.
    Sent { version: u64, taken: bool },
    /// All replicas here are equal to those elsewhere, for the receiver's command.
    Settled { multi: u64, findings: Findings },
}

/// A change of the table of keyspaces.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) from: &'a Keyspaces,
    pub(super) to: &'a Keyspaces,
    /// All replicas of the node are known to be equal.
    pub(super) are_equal: bool,
    /// Other nodes may have the same keys.
    pub(super) at_nodes: bool,
}

impl Change<'_> {
    fn at(&self, key: &[u8]) -> Move<'_> {
        (self.from.lattice(key), self.to.lattice(key))
    }

    /// What the change would do here.
    pub(super) fn look(&self, store: &mut Store<'_>, now: Now) -> Findings {
        let workers = store.workers();
        let mut found = Findings::default();
        if !self.from.has_lattice() && !self.to.has_lattice() {
            return found;
        }
        let are_equal = self.are_equal || workers == 1;
        let Store {
            shard, placement, ..
        } = store;
        for db in 0..DATABASES {
            let mut look = |item: Item<'_>| {
                let between = self.at(item.key);
                if !reshapes(between, workers) {
                    return;
                }
                found.count(&item, between.0.is_some());
                if self.at_nodes {
                    found.unfit(item.key, SHARED);
                }
                // Each key is examined once; a replica by its primary, when replicas are equal.
                let counts = match between.0 {
                    Some(_) => are_equal && placement.is_primary(item.key),
                    None => true,
                };
                if counts && let Some(why) = convert::refuses(&item, between) {
                    found.unfit(item.key, why);
                }
            };
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                cursor = shard.scan(db, at, KEYS, now, &mut look);
            }
            each_grave(shard, db, &mut |key| {
                if reshapes(self.at(key), workers) {
                    found.keys += 1;
                    found.is_shared = true;
                    if self.at_nodes {
                        found.unfit(key, SHARED);
                    }
                }
            });
        }
        found
    }

    /// Converts the keys here. Returns how many there were.
    pub(super) fn make(&self, replicas: &mut Replicas, store: &mut Store<'_>, now: Now) -> u64 {
        let workers = store.workers();
        let mut converted = 0;
        for db in 0..DATABASES {
            let mut names = Vec::<Box<[u8]>>::new();
            let mut take = |key: &[u8]| {
                if reshapes(self.at(key), workers) {
                    names.push(key.into());
                }
            };
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let mut look = |item: Item<'_>| take(item.key);
                cursor = store.shard.scan(db, at, KEYS, now, &mut look);
            }
            each_grave(store.shard, db, &mut take);
            let stamp = replicas.stamp(now);
            store.shard.begin_lattice(Writer { stamp });
            converted += names.len() as u64;
            for name in &names {
                convert_one(store, (db, name), self.at(name), now);
            }
            if let Some(ended) = store.shard.end_lattice() {
                debug_assert_eq!(ended.refused, None, "all of them were looked at");
                replicas.observe(ended.next);
            }
        }
        converted
    }
}

fn convert_one(store: &mut Store<'_>, (db, name): (usize, &[u8]), (from, to): Move<'_>, now: Now) {
    let key = store.shard.key(name);
    let stays = store.placement.owners(name).any(|owner| owner == store.id);
    let is_primary = store.placement.is_primary(name);
    let shard = &mut *store.shard;
    let Some(from) = from else {
        return convert::make_replicated(shard, db, key, now);
    };
    // Removed replicas are no longer sent, and so need no grave.
    if !shard.contains(db, key, now) {
        return convert::drop_replicated(shard, db, key, now);
    }
    let pick = from.resolve.pick();
    let stays_as_it_is =
        to.is_some_and(|to| !convert::rewrites(&mut shard.at(db, key, now), from, to));
    match (stays_as_it_is, is_primary) {
        (false, true) => convert::write_anew(shard, db, key, pick, now),
        (true, true) => convert::spread(shard, db, key, now),
        (true, false) if stays => {}
        (_, false) => convert::drop_replicated(shard, db, key, now),
    }
}
