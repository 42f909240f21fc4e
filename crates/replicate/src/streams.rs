//! The receivers of changed keys: messages are encoded once for all keys that have replicas on the same workers, and
//! shared by these.

use super::batch::{Item, Writer};
use super::replicas::{Figures, Outbox, To};
use rufous_base::{Now, WorkerId};
use rufous_store::changeset::Changed;
use rufous_store::keyspace::Keyspace;
use rufous_store::placement::Placement;
use rufous_store::shard::Shard;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a collection in one item.
const CHUNK: usize = 64 << 10;

/// Writes the item of a changed key.
pub(super) fn write(now: Now, shard: &mut Shard, changed: Changed<'_>, writer: &mut Writer) {
    let Changed { db, key, delta } = changed;
    let mut push = |tag, chunk: &[u8]| {
        let key = key.bytes;
        writer.push(Item {
            db,
            key,
            tag,
            chunk,
        });
    };
    let Some(delta) = delta else {
        shard.show_replica(usize::from(db), key, now, &mut push);
        return;
    };
    let (mut chunk, mut next) = (Vec::new(), Some(0));
    while let Some(at) = next {
        chunk.clear();
        next = delta.chunk(at, CHUNK, &mut chunk);
        push(delta.tag(), &chunk);
    }
}

/// Messages being encoded, by their receivers: the first replica, the number of replicas, and whether the messages
/// are applied together and depend on what others have sent.
pub(super) struct Streams<'a> {
    own: WorkerId,
    replica: u16,
    /// Whether other nodes have replicas of all keys.
    others: bool,
    placement: &'a Placement,
    newest: u64,
    all: BTreeMap<(usize, usize, bool), Writer>,
}

impl<'a> Streams<'a> {
    pub(super) fn new(
        (own, replica, others): (WorkerId, u16, bool),
        placement: &'a Placement,
        newest: u64,
    ) -> Self {
        Self {
            own,
            replica,
            others,
            placement,
            newest,
            all: BTreeMap::new(),
        }
    }

    /// The message writer for a key; `None` if it has no other replica.
    pub(super) fn of(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        (flushes, after): (u64, &[(u16, u64)]),
    ) -> Option<&mut Writer> {
        let workers = self.placement.workers();
        let spread = keyspace.spread(workers);
        let first = match spread == workers {
            true => 0,
            false => self.placement.primary(key).index(),
        };
        if spread == 1 && first == self.own.index() && !self.others {
            return None;
        }
        let is_cut = keyspace.is_cut();
        let (own, newest) = (self.replica, self.newest);
        let writer = self.all.entry((first, spread, is_cut));
        Some(writer.or_insert_with(|| {
            if is_cut {
                Writer::ordered(own, flushes, newest, after)
            } else {
                Writer::new(own, flushes, newest)
            }
        }))
    }

    /// True if there are changes with cuts.
    pub(super) fn send(self, out: &mut Outbox, figures: &mut Figures) -> bool {
        let workers = self.placement.workers();
        let has_cuts = self.all.keys().any(|(.., is_cut)| *is_cut);
        for ((first, spread, _), mut writer) in self.all {
            for bytes in writer.take() {
                for replica in 0..spread {
                    let to = WorkerId(((first + replica) % workers) as u16);
                    if to != self.own {
                        figures.sent_messages += 1;
                        figures.sent_bytes += bytes.len() as u64;
                        out.push((To::Worker(to), Arc::clone(&bytes)));
                    }
                }
                if self.others {
                    out.push((To::Nodes { is_report: false }, bytes));
                }
            }
        }
        has_cuts
    }
}
