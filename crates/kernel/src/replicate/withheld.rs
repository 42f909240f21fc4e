//! Changes that an epoch leaves out, as a command over several workers holds
//! their keys: a later epoch has them. Until then no report may say that they
//! were sent, or others would forget what they are to meet.

use crate::keyspace::Keyspace;
use crate::placement::Placement;
use crate::shard::Shard;
use std::collections::BTreeMap;

/// Keys, and up to where reports may go while these are not sent.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    keys: BTreeMap<(u8, Box<[u8]>), u64>,
}

impl Withheld {
    /// All changes up to `said` were sent. Where the key was left out before,
    /// what was said before that counts.
    pub(super) fn leave_out(&mut self, db: u8, key: &[u8], said: u64) {
        self.keys.entry((db, key.into())).or_insert(said);
    }

    /// All of the key is sent.
    pub(super) fn send(&mut self, db: u8, key: &[u8]) {
        if !self.keys.is_empty() {
            self.keys.remove(&(db, key.into()));
        }
    }

    /// The database is empty.
    pub(super) fn forget_db(&mut self, db: u8) {
        self.keys.retain(|(of, _), _| *of != db);
    }

    /// Up to where a report may go.
    pub(super) fn limit(&self) -> u64 {
        self.keys.values().copied().min().unwrap_or(u64::MAX)
    }
}

/// Whether others take over together what is sent of an epoch.
pub(super) fn is_ordered(keyspace: &Keyspace) -> bool {
    keyspace.cut || keyspace.level.is_ordered()
}

/// Whether a change of such a keyspace cannot be sent now: what came after it
/// must not be sent without it.
pub(super) fn is_held_up(
    shard: &mut Shard,
    placement: &Placement,
    held: &dyn Fn(u8, &[u8]) -> bool,
) -> bool {
    if !placement.any_lattice(is_ordered) {
        return false;
    }
    let changes = shard.changeset();
    let mut all = (0..changes.len()).filter_map(|at| changes.get(at));
    all.any(|changed| {
        let key = changed.key.bytes;
        held(changed.db, key) && placement.lattice(key).is_some_and(is_ordered)
    })
}

#[cfg(test)]
mod tests {
    use super::super::batch::{Batch, Body};
    use super::super::replicas::{Outbox, Replicas};
    use crate::keyspace::{Keyspace, Keyspaces, Regime};
    use crate::placement::Placement;
    use crate::shard::{ExpirySetting, Keyed, Keying, NewValue, Shard};
    use rufous_base::{Now, WorkerId};
    use rufous_datatype::object::Tag;
    use rufous_datatype::replicated::Writer;
    use std::sync::Arc;

    const PERIOD_US: u64 = 1_000;

    #[derive(Debug)]
    struct All;

    impl Keying for All {
        fn of(&self, _: &[u8]) -> Option<Keyed> {
            Some(Keyed {
                strings: Tag::Register,
                is_shared: true,
            })
        }
    }

    /// The first of two workers.
    struct Rig {
        replicas: Replicas,
        shard: Shard,
        placement: Placement,
        now: Now,
    }

    impl Rig {
        fn new(cut: bool) -> Self {
            let keyspace = Keyspace {
                regime: Regime::Lattice,
                threads: 0,
                cut,
                ..Keyspace::new("all", b"k")
            };
            let table = Keyspaces::default().with(keyspace).expect("it is valid");
            let mut placement = Placement::new(2);
            placement.set_keyspaces(&Arc::new(table));
            let mut shard = Shard::new(1);
            shard.set_keying(Some(Arc::new(All)));
            Self {
                replicas: Replicas::new(WorkerId(0), 2),
                shard,
                placement,
                now: Now {
                    mono_us: 1,
                    unix_us: 1_000_000,
                },
            }
        }

        /// Returns the time of the write.
        fn write(&mut self, name: &[u8]) -> u64 {
            let stamp = self.replicas.stamp(self.now);
            self.shard.begin_lattice(Writer { stamp });
            let key = self.shard.key(name);
            let value = NewValue::Copy(b"v");
            self.shard
                .set(0, key, value, ExpirySetting::Clear, self.now);
            self.shard.end_lattice();
            self.replicas.wrote(self.now, self.shard.changeset());
            stamp.time
        }

        /// An epoch later: the keys that were sent, and up to where it is said
        /// that all were.
        fn poll(&mut self, held: &[&[u8]]) -> (Vec<Vec<u8>>, Option<u64>) {
            self.now.mono_us += 10 * PERIOD_US;
            self.now.unix_us += 10 * PERIOD_US;
            let held = |_: u8, key: &[u8]| held.contains(&key);
            let mut out = Outbox::new();
            let at = (&mut self.shard, &self.placement);
            self.replicas.poll(self.now, PERIOD_US, at, &held, &mut out);
            let (mut keys, mut upto) = (Vec::new(), None);
            for (_, bytes) in out {
                match Batch::decode(&bytes).expect("a message").body {
                    Body::Items(items) | Body::Ordered { items, .. } => {
                        keys.extend(items.map(|item| item.expect("an item").key.to_vec()));
                    }
                    Body::Report(report) => upto = Some(report.upto),
                }
            }
            keys.sort();
            (keys, upto)
        }
    }

    #[test]
    fn no_report_covers_a_change_that_is_not_sent() {
        let mut rig = Rig::new(false);
        let early = rig.write(b"k1");
        let (keys, upto) = rig.poll(&[]);
        assert_eq!(keys, [b"k1"]);
        assert!(upto >= Some(early));
        let withheld = rig.write(b"k1");
        let later = rig.write(b"k2");
        for _ in 0..3 {
            rig.write(b"k1");
            let (keys, upto) = rig.poll(&[b"k1"]);
            assert!(!keys.contains(&b"k1".to_vec()));
            assert!(
                upto.is_some_and(|upto| (early..withheld).contains(&upto)),
                "{upto:?}"
            );
        }
        let (keys, upto) = rig.poll(&[]);
        assert_eq!(keys, [b"k1"]);
        assert!(upto > Some(later));
        // A flush takes along what was not sent.
        rig.write(b"k1");
        rig.poll(&[b"k1"]);
        rig.replicas.flushed(0, &mut rig.shard);
        let last = rig.write(b"k3");
        let (keys, upto) = rig.poll(&[]);
        assert_eq!(keys, [b"k3"]);
        assert!(upto > Some(last));
    }

    #[test]
    fn what_goes_together_is_not_sent_in_part() {
        let mut rig = Rig::new(true);
        rig.write(b"k1");
        let later = rig.write(b"k2");
        for _ in 0..3 {
            assert_eq!(rig.poll(&[b"k1"]), (vec![], None));
            let wakes = rig.replicas.wake_us(PERIOD_US);
            assert!(
                wakes > Some(rig.now.mono_us),
                "it is not looked at all the time"
            );
        }
        let (keys, upto) = rig.poll(&[b"other"]);
        assert_eq!(keys, [b"k1", b"k2"]);
        assert!(upto > Some(later));
    }
}
