//! Which worker of this node owns a key.
//!
//! A strict key has one owner, the worker of its slot. A key of a lattice keyspace has replicas on that worker, its
//! *primary*, and on the next ones, as many as the keyspace says. A worker that has a replica executes commands on
//! the key itself. Any other worker always forwards its requests to the same replica, so that a connection never
//! switches between replicas of a key.

use crate::keyspace::{Keyspace, Keyspaces};
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_base::{Until, WorkerId};
use std::sync::Arc;

/// The placement of keys on the workers of one node, from the view of one worker.
#[derive(Clone, Debug)]
pub struct Placement {
    workers: usize,
    own: WorkerId,
    /// Set only if the table has a lattice keyspace: the only check on the common path.
    keyspaces: Option<Arc<Keyspaces>>,
    /// The first bytes of lattice keys: most other keys need no search.
    firsts: Firsts,
    gossip_us: u64,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Firsts([u64; 4]);

impl Firsts {
    /// Those with which keys with these prefixes may begin.
    fn of<'p>(prefixes: impl Iterator<Item = &'p [u8]>) -> Self {
        let mut all = Self::default();
        for prefix in prefixes {
            match prefix.first() {
                Some(first) => all.0[usize::from(first >> 6)] |= 1 << (first & 63),
                None => all = Self([u64::MAX; 4]),
            }
        }
        all
    }

    #[inline]
    fn has_first_of(&self, key: &[u8]) -> bool {
        let first = key.first().copied();
        // A key without bytes begins with the prefix without bytes.
        first.map_or(self.0[0] == u64::MAX, |first| {
            self.0[usize::from(first >> 6)] & 1 << (first & 63) != 0
        })
    }
}

impl Placement {
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "a node has at least one worker");
        Self {
            workers,
            own: WorkerId(0),
            keyspaces: None,
            firsts: Firsts::default(),
            gossip_us: 0,
        }
    }

    /// The same placement from the view of worker `own`.
    pub fn seen_by(self, own: WorkerId) -> Self {
        Self { own, ..self }
    }

    pub fn set_keyspaces(&mut self, keyspaces: &Arc<Keyspaces>) {
        let wanted = keyspaces.has_lattice().then_some(keyspaces);
        self.keyspaces = wanted.cloned();
        let lattices = || keyspaces.iter().filter(|keyspace| keyspace.is_lattice());
        self.firsts = Firsts::of(lattices().map(|keyspace| &*keyspace.prefix));
        let period = lattices().map(|keyspace| u64::from(keyspace.gossip_ms) * 1000);
        self.gossip_us = period.min().unwrap_or(0);
    }

    /// Whether a lattice keyspace satisfies `f`.
    pub fn any_lattice(&self, f: impl Fn(&Keyspace) -> bool) -> bool {
        let mut all = self.keyspaces.iter().flat_map(|table| table.iter());
        all.any(|keyspace| keyspace.is_lattice() && f(keyspace))
    }

    /// Microseconds between two epochs: the shortest period of all keyspaces.
    pub fn gossip_us(&self) -> u64 {
        self.gossip_us
    }

    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Whether any lattice keyspace exists.
    #[inline]
    pub fn has_lattice(&self) -> bool {
        self.keyspaces.is_some()
    }

    /// The keyspace of a key, if it is of regime lattice.
    #[inline]
    pub fn lattice(&self, key: &[u8]) -> Option<&Keyspace> {
        let keyspaces = self.keyspaces.as_ref()?;
        if !self.firsts.has_first_of(key) {
            return None;
        }
        keyspaces.lattice(key)
    }

    /// What a reply that depends on these keys only waits for: for lattice keys it is enough that this worker's log
    /// has what the worker did.
    pub fn until<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Until {
        let mut keys = keys.into_iter().peekable();
        let is_any = self.has_lattice() && keys.peek().is_some();
        match is_any && keys.all(|key| self.lattice(key).is_some()) {
            true => Until::Logged,
            false => Until::Passed,
        }
    }

    /// The worker that runs this worker's commands on `key`. A node with one worker computes no slot.
    #[inline]
    pub fn owner(&self, key: &[u8]) -> WorkerId {
        if self.workers == 1 {
            return WorkerId(0);
        }
        match self.lattice(key) {
            None => self.primary(key),
            Some(keyspace) => self.serving(key, keyspace),
        }
    }

    /// The owner of a strict key, or the primary of a lattice key.
    #[inline]
    pub fn primary(&self, key: &[u8]) -> WorkerId {
        worker_of_slot(slot_of(key), self.workers)
    }

    fn serving(&self, key: &[u8], keyspace: &Keyspace) -> WorkerId {
        let spread = keyspace.spread(self.workers);
        if spread == self.workers {
            return self.own;
        }
        let first = self.primary(key).index();
        let away = (self.own.index() + self.workers - first) % self.workers;
        if away < spread {
            return self.own;
        }
        let replica = self.own.index() % spread;
        WorkerId(((first + replica) % self.workers) as u16)
    }

    /// All workers that have a replica of `key`, its primary first.
    pub fn owners(&self, key: &[u8]) -> impl Iterator<Item = WorkerId> + use<> {
        let spread = self
            .lattice(key)
            .map_or(1, |keyspace| keyspace.spread(self.workers));
        let (first, workers) = (self.primary(key).index(), self.workers);
        (0..spread).map(move |replica| WorkerId(((first + replica) % workers) as u16))
    }

    /// Whether this worker has a replica of a lattice key.
    pub fn has_replica(&self, key: &[u8]) -> bool {
        let spread = self
            .lattice(key)
            .map(|keyspace| keyspace.spread(self.workers));
        spread.is_some_and(|spread| {
            spread == self.workers || self.owners(key).any(|owner| owner == self.own)
        })
    }

    /// Whether this worker counts and lists `key`: it is the owner or the primary.
    #[inline]
    pub fn is_primary(&self, key: &[u8]) -> bool {
        self.workers == 1 || self.primary(key) == self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Regime;

    fn view(workers: usize, own: u16, threads: u16) -> Placement {
        let keyspace = Keyspace {
            regime: Regime::Lattice,
            threads,
            ..Keyspace::new("shared", b"s:")
        };
        let table = Keyspaces::default().with(keyspace).unwrap();
        let mut placement = Placement::new(workers).seen_by(WorkerId(own));
        placement.set_keyspaces(&Arc::new(table));
        placement
    }

    /// However a key begins, the short way says what the table says.
    #[test]
    fn keyspaces_are_found_by_the_first_byte_of_a_key() {
        let of = |prefixes: &[&[u8]]| {
            let mut table = Keyspaces::default();
            for (no, prefix) in prefixes.iter().enumerate() {
                let keyspace = Keyspace {
                    regime: Regime::Lattice,
                    ..Keyspace::new(&format!("k{no}"), prefix)
                };
                table = table.with(keyspace).expect("a keyspace");
            }
            Arc::new(table)
        };
        let cases: [&[&[u8]]; 4] = [&[], &[b"s:", b"\xffx"], &[b"t"], &[b""]];
        for prefixes in cases {
            let table = of(prefixes);
            let mut placement = Placement::new(2);
            placement.set_keyspaces(&table);
            let all =
                (0..=u8::MAX).flat_map(|first| [vec![first], vec![first, b':'], vec![first, b'x']]);
            for key in all.chain([Vec::new()]) {
                let (short, long) = (placement.lattice(&key), table.lattice(&key));
                assert_eq!(short.map(|of| &of.name), long.map(|of| &of.name), "{key:?}");
            }
        }
    }

    #[test]
    fn strict_keys_have_one_owner_for_everybody() {
        for n in 0..200 {
            let key = format!("strict:{n}").into_bytes();
            let owner = Placement::new(4).owner(&key);
            for own in 0..4 {
                let view = view(4, own, 0);
                assert_eq!(view.owner(&key), owner);
                assert_eq!(view.owners(&key).collect::<Vec<_>>(), [owner]);
                assert_eq!(view.is_primary(&key), owner == WorkerId(own));
            }
        }
    }

    #[test]
    fn who_has_a_replica_serves_it_and_others_always_ask_the_same() {
        for threads in [0, 1, 2, 3, 9] {
            let mut served = [0; 4];
            for n in 0..400 {
                let key = format!("s:{n}").into_bytes();
                let owners: Vec<_> = view(4, 0, threads).owners(&key).collect();
                assert_eq!(owners[0], view(4, 0, threads).primary(&key));
                let primaries = (0..4).filter(|&own| view(4, own, threads).is_primary(&key));
                assert_eq!(primaries.count(), 1);
                for own in 0..4 {
                    let view = view(4, own, threads);
                    assert!(view.owners(&key).eq(owners.iter().copied()));
                    let serving = view.owner(&key);
                    assert!(owners.contains(&serving));
                    assert!(serving == WorkerId(own) || !owners.contains(&WorkerId(own)));
                    served[serving.index()] += 1;
                }
            }
            assert!(served.iter().all(|&n| n > 200), "{threads}: {served:?}");
        }
    }
}
