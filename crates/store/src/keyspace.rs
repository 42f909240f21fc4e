//! Keyspaces: the policies of all keys that begin with a prefix.
//!
//! A key belongs to the keyspace with the longest prefix that matches it. A key that matches none is strict. The
//! table is immutable: a change makes a new table with a higher version, which every worker takes over at the same
//! instant, while no command runs (see `worker::lattice`).

mod invalid;
mod lookup;
mod resolve;

pub use invalid::Invalid;
pub(crate) use lookup::head;
pub use resolve::Resolve;

use crate::effect::{NotAnEffect, byte, put_varint, slice, varint};
use crate::level::Level;
use lookup::Lookup;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The maximum number of keyspaces of a node.
pub const MOST_KEYSPACES: usize = 1024;
const MOST_NAME_BYTES: usize = 64;
const MOST_PREFIX_BYTES: usize = 256;
/// The default of the time between two epochs.
pub const DEFAULT_GOSSIP_MS: u32 = 100;
const MOST_GOSSIP_MS: u32 = 60_000;

/// How keys are replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// By their one owner, which orders all commands on them.
    Strict,
    /// By several replicas, each of which executes commands at once; they converge by merging.
    Lattice,
}

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    pub name: Box<str>,
    pub prefix: Box<[u8]>,
    pub regime: Regime,
    pub level: Level,
    /// Workers of a node that have a replica of each key; 0 means all.
    pub threads: u16,
    /// Number of nodes that have a replica.
    pub replicas: u16,
    pub resolve: Resolve,
    /// Whether that was asked for which [`Keyspace::is_cut`] says.
    pub cut: bool,
    /// Whether its keys may be evicted at the memory limit.
    pub evict: bool,
    /// Milliseconds between two epochs.
    pub gossip_ms: u32,
}

impl Keyspace {
    /// A strict keyspace with default settings, to be altered.
    pub fn new(name: &str, prefix: &[u8]) -> Self {
        Self {
            name: name.into(),
            prefix: prefix.into(),
            regime: Regime::Strict,
            level: Level::EVENTUAL,
            threads: 1,
            replicas: 1,
            resolve: Resolve::Newest,
            cut: false,
            evict: true,
            gossip_ms: DEFAULT_GOSSIP_MS,
        }
    }

    pub fn is_lattice(&self) -> bool {
        self.regime == Regime::Lattice
    }

    /// The number of workers with a replica on a node with this many workers.
    #[inline]
    pub fn spread(&self, workers: usize) -> usize {
        match usize::from(self.threads) {
            _ if self.regime == Regime::Strict => 1,
            0 => workers,
            threads => threads.min(workers),
        }
    }

    /// Whether a write is shown only after all writes of the keyspace that it may depend on. A level that promises an order does so
    /// over all keys, for sessions that change their worker, too.
    pub fn is_cut(&self) -> bool {
        self.cut || self.level.is_ordered()
    }

    /// Settings in one byte of the table. Earlier programs refuse one with the second bit.
    fn flags(&self) -> u8 {
        u8::from(self.cut) | u8::from(!self.evict) << 1
    }

    /// Checks the settings; the error says what is wrong, for the client.
    fn check(&self) -> Result<(), Invalid> {
        let name_byte = |b: u8| b.is_ascii_alphanumeric() || b"-_.:".contains(&b);
        let name = self.name.as_bytes();
        if name.is_empty() || name.len() > MOST_NAME_BYTES || !name.iter().all(|&b| name_byte(b)) {
            return Err(Invalid::Name);
        }
        if self.prefix.len() > MOST_PREFIX_BYTES {
            return Err(Invalid::Prefix);
        }
        if !(1..=MOST_GOSSIP_MS).contains(&self.gossip_ms) {
            return Err(Invalid::Gossip);
        }
        if self.replicas != 1 {
            return Err(Invalid::Replicas);
        }
        if self.is_lattice() {
            if self.cut && self.threads != 0 {
                return Err(Invalid::Cut);
            }
            if self.level.is_ordered() && self.threads != 0 {
                return Err(Invalid::Ordered);
            }
            if self.resolve != Resolve::Newest && !self.level.keeps_siblings() {
                return Err(Invalid::Resolve);
            }
            return Ok(());
        }
        match (self.threads, self.level == Level::EVENTUAL, self.cut) {
            (1, true, false) if self.resolve == Resolve::Newest => Ok(()),
            _ => Err(Invalid::Strict),
        }
    }
}

/// All keyspaces of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyspaces {
    version: u64,
    /// Longer prefixes first, equal lengths in the order of bytes.
    all: Vec<Arc<Keyspace>>,
    lookup: Lookup,
    has_lattice: bool,
}

impl Keyspaces {
    /// Rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Keyspace> {
        self.all.iter().map(|keyspace| &**keyspace)
    }

    pub fn get(&self, name: &str) -> Option<&Keyspace> {
        self.iter().find(|keyspace| *keyspace.name == *name)
    }

    /// Whether the table has a keyspace of regime lattice.
    pub fn has_lattice(&self) -> bool {
        self.has_lattice
    }

    /// The keyspace that the key belongs to, if any.
    #[inline]
    pub fn of(&self, key: &[u8]) -> Option<&Keyspace> {
        self.lookup.of(key, &self.all).map(|at| &*self.all[at])
    }

    /// The keyspace that the key belongs to, if that is of regime lattice.
    #[inline]
    pub fn lattice(&self, key: &[u8]) -> Option<&Keyspace> {
        self.of(key).filter(|keyspace| keyspace.is_lattice())
    }

    /// A new table that has this keyspace as well.
    pub fn with(&self, keyspace: Keyspace) -> Result<Self, Invalid> {
        if self.get(&keyspace.name).is_some() {
            return Err(Invalid::NameTaken);
        }
        if self.all.len() >= MOST_KEYSPACES {
            return Err(Invalid::TooMany);
        }
        self.changed(keyspace)
    }

    /// A new table in which this keyspace replaces the one of the same name.
    pub fn altered(&self, keyspace: Keyspace) -> Result<Self, Invalid> {
        self.without(&keyspace.name)?
            .changed(keyspace)
            .map(|next| Self {
                version: self.version + 1,
                ..next
            })
    }

    pub fn without(&self, name: &str) -> Result<Self, Invalid> {
        let mut all = self.all.clone();
        all.retain(|keyspace| *keyspace.name != *name);
        if all.len() == self.all.len() {
            return Err(Invalid::Missing);
        }
        Ok(Self::of_all(self.version + 1, all))
    }

    fn changed(&self, keyspace: Keyspace) -> Result<Self, Invalid> {
        keyspace.check()?;
        if let Some(other) = self.iter().find(|other| other.prefix == keyspace.prefix) {
            return Err(Invalid::PrefixTaken(other.name.clone()));
        }
        let mut all = self.all.clone();
        all.push(Arc::new(keyspace));
        Ok(Self::of_all(self.version + 1, all))
    }

    fn of_all(version: u64, mut all: Vec<Arc<Keyspace>>) -> Self {
        all.sort_by(|a, b| {
            let longer = b.prefix.len().cmp(&a.prefix.len());
            longer.then_with(|| a.prefix.cmp(&b.prefix))
        });
        Self {
            has_lattice: all.iter().any(|keyspace| keyspace.is_lattice()),
            lookup: Lookup::new(&all),
            version,
            all,
        }
    }

    /// Appends the table's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.version);
        put_varint(out, self.all.len() as u64);
        for keyspace in self.iter() {
            put_bytes(out, keyspace.name.as_bytes());
            put_bytes(out, &keyspace.prefix);
            out.push(u8::from(keyspace.is_lattice()));
            put_bytes(out, keyspace.level.to_string().as_bytes());
            put_varint(out, u64::from(keyspace.threads));
            put_varint(out, u64::from(keyspace.replicas));
            out.push(keyspace.resolve.byte());
            out.push(keyspace.flags());
            put_varint(out, u64::from(keyspace.gossip_ms));
        }
    }

    /// A checksum of the settings that nodes have to agree on, by which they compare their tables; 0 if no keyspace
    /// is of regime lattice.
    pub fn sum(&self) -> u64 {
        let mut bytes = Vec::new();
        for keyspace in self.iter().filter(|_| self.has_lattice) {
            put_bytes(&mut bytes, keyspace.name.as_bytes());
            put_bytes(&mut bytes, &keyspace.prefix);
            put_bytes(&mut bytes, keyspace.level.to_string().as_bytes());
            let lattice = u8::from(keyspace.is_lattice());
            bytes.extend([lattice, keyspace.flags(), keyspace.resolve.byte()]);
        }
        // FNV-1a suffices: an attacker gains nothing from a collision.
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        match bytes.is_empty() {
            true => 0,
            false => bytes.iter().fold(0xcbf2_9ce4_8422_2325, step),
        }
    }

    /// Decodes what [`Keyspaces::encode`] wrote. Trailing bytes are an error.
    pub fn decode(mut from: &[u8]) -> Result<Self, NotAnEffect> {
        let from = &mut from;
        let version = varint(from)?;
        let count = varint(from)?;
        if count > MOST_KEYSPACES as u64 {
            return Err(NotAnEffect);
        }
        let (mut all, mut names, mut prefixes) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for _ in 0..count {
            let keyspace = decode_one(from)?;
            keyspace.check().map_err(|_| NotAnEffect)?;
            if !names.insert(keyspace.name.clone()) || !prefixes.insert(keyspace.prefix.clone()) {
                return Err(NotAnEffect);
            }
            all.push(Arc::new(keyspace));
        }
        let table = Self::of_all(version, all);
        from.is_empty().then_some(table).ok_or(NotAnEffect)
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], NotAnEffect> {
    let len = varint(from)?;
    slice(from, len)
}

fn take_text<'a>(from: &mut &'a [u8]) -> Result<&'a str, NotAnEffect> {
    std::str::from_utf8(take_bytes(from)?).map_err(|_| NotAnEffect)
}

fn take_flag(from: &mut &[u8]) -> Result<bool, NotAnEffect> {
    match byte(from)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(NotAnEffect),
    }
}

fn take_level(from: &mut &[u8]) -> Result<Level, NotAnEffect> {
    let text = take_text(from)?;
    let level: Level = text.parse().map_err(|_| NotAnEffect)?;
    // Only the canonical name is accepted.
    (level.to_string() == text)
        .then_some(level)
        .ok_or(NotAnEffect)
}

fn take_number<T: TryFrom<u64>>(from: &mut &[u8]) -> Result<T, NotAnEffect> {
    T::try_from(varint(from)?).map_err(|_| NotAnEffect)
}

fn decode_one(from: &mut &[u8]) -> Result<Keyspace, NotAnEffect> {
    let name = take_text(from)?.into();
    let prefix = take_bytes(from)?.into();
    let regime = match take_flag(from)? {
        true => Regime::Lattice,
        false => Regime::Strict,
    };
    let level = take_level(from)?;
    let (threads, replicas) = (take_number(from)?, take_number(from)?);
    // Earlier programs let such a level have fewer replicas. A start sends keys to workers that lack them.
    let threads = if level.is_ordered() { 0 } else { threads };
    let resolve = Resolve::of_byte(byte(from)?)?;
    let flags = Some(byte(from)?).filter(|flags| *flags < 4);
    let flags = flags.ok_or(NotAnEffect)?;
    Ok(Keyspace {
        name,
        prefix,
        regime,
        level,
        threads,
        replicas,
        resolve,
        cut: flags & 1 == 1,
        evict: flags & 2 == 0,
        gossip_ms: take_number(from)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lattice(name: &str, prefix: &[u8]) -> Keyspace {
        Keyspace {
            regime: Regime::Lattice,
            threads: 0,
            ..Keyspace::new(name, prefix)
        }
    }

    fn table() -> Keyspaces {
        let table = Keyspaces::default();
        let table = table.with(lattice("carts", b"cart:")).unwrap();
        let table = table.with(Keyspace::new("paid", b"cart:paid:")).unwrap();
        let few = Keyspace {
            threads: 2,
            evict: false,
            level: "monotonic-reads+read-your-writes".parse().unwrap(),
            ..lattice("likes", b"like:")
        };
        let table = table.with(few).unwrap();
        let notes = Keyspace {
            level: "causal".parse().unwrap(),
            resolve: Resolve::Largest,
            ..lattice("notes", b"note:")
        };
        table.with(notes).unwrap()
    }

    #[test]
    fn the_longest_prefix_decides() {
        let table = table();
        let name = |key: &[u8]| table.of(key).map(|k| &*k.name);
        assert_eq!(name(b"cart:7"), Some("carts"));
        assert_eq!(name(b"cart:"), Some("carts"));
        assert_eq!(name(b"cart:paid:7"), Some("paid"));
        assert_eq!(name(b"car"), None);
        assert_eq!(table.lattice(b"cart:paid:7"), None);
        let all = table.with(lattice("rest", b"")).unwrap();
        assert_eq!(all.of(b"car").map(|k| &*k.name), Some("rest"));
        assert_eq!(all.of(b"like:1").map(|k| &*k.name), Some("likes"));
        assert!(!Keyspaces::default().has_lattice());
    }

    #[test]
    fn changes_make_other_tables_with_higher_versions() {
        let before = table();
        let after = before.altered(lattice("paid", b"cart:paid:")).unwrap();
        assert_eq!(after.version(), before.version() + 1);
        assert!(after.get("paid").is_some_and(Keyspace::is_lattice));
        assert!(before.get("paid").is_some_and(|k| !k.is_lattice()));
        assert_eq!(after.without("nobody"), Err(Invalid::Missing));
        let after = after.without("paid").unwrap();
        assert_eq!(after.version(), before.version() + 2);
        assert_eq!(after.of(b"cart:paid:7").map(|k| &*k.name), Some("carts"));
        let taken = Err(Invalid::PrefixTaken("likes".into()));
        assert_eq!(after.altered(lattice("carts", b"like:")), taken);
        assert_eq!(after.with(lattice("carts", b"x")), Err(Invalid::NameTaken));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |keyspace: Keyspace| Keyspaces::default().with(keyspace).unwrap_err();
        assert_eq!(refused(lattice("", b"a")), Invalid::Name);
        assert_eq!(refused(lattice("a b", b"a")), Invalid::Name);
        assert_eq!(refused(lattice("a", &[0; 300])), Invalid::Prefix);
        let few = lattice("a", b"a");
        assert_eq!(
            refused(Keyspace {
                gossip_ms: 0,
                ..few.clone()
            }),
            Invalid::Gossip
        );
        assert_eq!(
            refused(Keyspace {
                replicas: 2,
                ..few.clone()
            }),
            Invalid::Replicas
        );
        assert_eq!(
            refused(Keyspace {
                cut: true,
                threads: 2,
                ..few
            }),
            Invalid::Cut
        );
        assert_eq!(
            refused(Keyspace {
                resolve: Resolve::Refuse,
                ..lattice("a", b"a")
            }),
            Invalid::Resolve
        );
        let strict = Keyspace::new("a", b"a");
        assert_eq!(
            refused(Keyspace {
                threads: 0,
                ..strict
            }),
            Invalid::Strict
        );
    }

    #[test]
    fn a_level_with_an_order_has_a_replica_at_every_worker() {
        let level: Level = "pram".parse().expect("a level");
        let few = Keyspace {
            level,
            threads: 2,
            ..lattice("a", b"a")
        };
        let refused = Keyspaces::default().with(few.clone());
        assert_eq!(refused, Err(Invalid::Ordered));
        // As an earlier program may have stored it.
        let mut bytes = Vec::new();
        Keyspaces::of_all(7, vec![Arc::new(few)]).encode(&mut bytes);
        let table = Keyspaces::decode(&bytes).expect("a table");
        let all = table.get("a").map(|of| (of.threads, of.is_cut(), of.cut));
        assert_eq!(all, Some((0, true, false)));
    }

    #[test]
    fn bytes_say_all_of_it_and_any_bytes_may_come() {
        let table = table();
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(Keyspaces::decode(&bytes), Ok(table.clone()));
        for cut in 0..bytes.len() {
            assert!(Keyspaces::decode(&bytes[..cut]).is_err());
        }
        let mut same = 0;
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                same += usize::from(Keyspaces::decode(&other).as_ref() == Ok(&table));
            }
        }
        assert_eq!(same, 7, "a level settles the number of threads");
        assert!(Keyspaces::decode(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).is_err());
    }
}
