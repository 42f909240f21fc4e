//! Which worker of this node owns a key.
//!
//! A strict key has one owner, the worker of its slot. A key of a lattice keyspace has replicas on that worker, its
//! *primary*, and on the next ones, as many as the keyspace says. A worker that has a replica executes commands on
//! the key itself. Any other worker always forwards its requests to the same replica, so that a connection never
//! switches between replicas of a key ([`Owners`]).

mod owners;

use crate::keyspace::{Keyspace, Keyspaces, head};
pub use owners::Owners;
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
    /// What all lattice keys begin with.
    common: Common,
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

/// What all of some prefixes begin with, up to as many bytes as one number has.
#[derive(Clone, Copy, Debug, Default)]
struct Common {
    bytes: u64,
    mask: u64,
}

impl Common {
    fn of<'p>(prefixes: impl Iterator<Item = &'p [u8]>) -> Self {
        let mut all = prefixes.map(|prefix| (head(prefix), prefix.len()));
        let Some((bytes, len)) = all.next() else {
            return Self::default();
        };
        // Bits from the left that are equal in all of them.
        let common = all.fold(bits(len), |common, (other, len)| {
            common.min((bytes ^ other).leading_zeros()).min(bits(len))
        });
        let mask = u64::MAX.checked_shl(u64::BITS - common).unwrap_or(0);
        let bytes = bytes & mask;
        Self { bytes, mask }
    }

    /// Whether the key may begin with one of the prefixes.
    #[inline]
    fn may_begin(&self, key: &[u8]) -> bool {
        head(key) & self.mask == self.bytes
    }
}

/// The bits of a head that are taken by this number of bytes.
fn bits(len: usize) -> u32 {
    (len as u32).saturating_mul(u8::BITS).min(u64::BITS)
}

impl Placement {
    pub fn new(workers: usize) -> Self {
        assert!(workers > 0, "a node has at least one worker");
        Self {
            workers,
            own: WorkerId(0),
            keyspaces: None,
            firsts: Firsts::default(),
            common: Common::default(),
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
        let prefixes = || lattices().map(|keyspace| &*keyspace.prefix);
        self.firsts = Firsts::of(prefixes());
        self.common = Common::of(prefixes());
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
        self.search(key, keyspaces)
    }

    /// Kept out of line, so that the callers have the short way in line.
    #[inline(never)]
    fn search<'k>(&self, key: &[u8], keyspaces: &'k Keyspaces) -> Option<&'k Keyspace> {
        let may_be = self.common.may_begin(key);
        may_be.then(|| keyspaces.lattice(key)).flatten()
    }

    /// The worker of a key, as [`Placement::owner`] returns it, and whether the key is in a lattice keyspace: both by one
    /// search.
    #[inline]
    pub fn located(&self, key: &[u8]) -> (WorkerId, bool) {
        let keyspace = self.lattice(key);
        (self.owner_in(key, keyspace), keyspace.is_some())
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
        self.owner_in(key, self.lattice(key))
    }

    #[inline]
    fn owner_in(&self, key: &[u8], keyspace: Option<&Keyspace>) -> WorkerId {
        if self.workers == 1 {
            return WorkerId(0);
        }
        match keyspace {
            None => self.primary(key),
            Some(keyspace) => self.serving(key, keyspace),
        }
    }

    /// The owner of a strict key, or the primary of a lattice key.
    #[inline]
    pub fn primary(&self, key: &[u8]) -> WorkerId {
        worker_of_slot(slot_of(key), self.workers)
    }

    #[inline]
    fn serving(&self, key: &[u8], keyspace: &Keyspace) -> WorkerId {
        let spread = keyspace.spread(self.workers);
        if spread == self.workers {
            return self.own;
        }
        Owners::new(self.primary(key), spread, self.workers).serving(self.own)
    }

    /// All workers that have a replica of `key`, its primary first.
    pub fn owners(&self, key: &[u8]) -> impl Iterator<Item = WorkerId> + use<> {
        let spread = self
            .lattice(key)
            .map_or(1, |keyspace| keyspace.spread(self.workers));
        Owners::new(self.primary(key), spread, self.workers).all()
    }

    /// The workers with a replica of a key; `None` if it is strict.
    #[inline]
    pub fn lattice_owners(&self, key: &[u8]) -> Option<Owners> {
        let spread = self.lattice(key)?.spread(self.workers);
        Some(Owners::new(self.primary(key), spread, self.workers))
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

    /// The worker from whose view this is.
    pub fn own(&self) -> WorkerId {
        self.own
    }

    /// Whether this worker is the owner or the primary of `key`.
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
        let cases: [&[&[u8]]; 9] = [
            &[],
            &[b"s:", b"\xffx"],
            &[b"t"],
            &[b""],
            &[b"", b"t:"],
            &[b"cart:", b"carp"],
            &[b"cart:paid\0", b"cart:pai"],
            &[b"a\0", b"a\0\0\0"],
            &[b"0123456789", b"01234567x", b"01234567"],
        ];
        for prefixes in cases {
            let table = of(prefixes);
            let mut placement = Placement::new(2);
            placement.set_keyspaces(&table);
            let all =
                (0..=u8::MAX).flat_map(|first| [vec![first], vec![first, b':'], vec![first, b'x']]);
            // Keys that begin with some of a prefix, with all of it and more, and with another byte within.
            let parts = prefixes.iter().flat_map(|&prefix| {
                let whole = [prefix, b"\0x"].concat();
                let cut = (0..=whole.len()).map(|len| whole[..len].to_vec());
                let other = (0..whole.len()).map(|at| {
                    let mut key = whole.clone();
                    key[at] ^= 1;
                    key
                });
                cut.chain(other).collect::<Vec<_>>()
            });
            for key in all.chain([Vec::new()]).chain(parts) {
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
                assert_eq!(view.located(&key), (owner, false));
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
                    assert_eq!(view.located(&key), (serving, true));
                    assert!(owners.contains(&serving));
                    assert!(serving == WorkerId(own) || !owners.contains(&WorkerId(own)));
                    served[serving.index()] += 1;
                }
            }
            assert!(served.iter().all(|&n| n > 200), "{threads}: {served:?}");
        }
    }
}
