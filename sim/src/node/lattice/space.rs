//! The keyspaces and keys of a run.

use crate::engine::random::Random;
use rufous_kernel::keyspace::{Keyspace, Regime};

/// A lattice keyspace.
#[derive(Clone, Debug)]
pub struct Space {
    pub name: String,
    pub level: &'static str,
    /// 0: all.
    pub threads: u16,
    pub cut: bool,
    /// Whether its keys may be evicted.
    pub evict: bool,
    pub gossip_ms: u64,
    /// Clients change nothing of it but its epochs.
    pub is_fixed: bool,
    pub db: usize,
}

const LEVELS: [&str; 9] = [
    "eventual",
    "read-committed",
    "item-cut",
    "monotonic-reads",
    "monotonic-writes",
    "writes-follow-reads",
    "read-your-writes",
    "pram",
    "pram+writes-follow-reads",
];

impl Space {
    /// The words after `KEYSPACE CREATE`.
    pub fn words(&self) -> Vec<String> {
        let threads = match self.threads {
            0 => "all".into(),
            n => n.to_string(),
        };
        let cut = if self.cut { "yes" } else { "no" };
        let evict = if self.evict { "yes" } else { "no" };
        let words = [
            &self.name,
            "PREFIX",
            &self.prefix(),
            "REGIME",
            "lattice",
            "LEVEL",
            self.level,
            "THREADS",
            &threads,
            "CUT",
            cut,
            "EVICT",
            evict,
            "GOSSIP",
            &self.gossip_ms.to_string(),
        ];
        words.map(str::to_string).to_vec()
    }

    fn prefix(&self) -> String {
        format!("{}:", self.name)
    }

    /// As the settings have it.
    pub fn keyspace(&self) -> Keyspace {
        Keyspace {
            regime: Regime::Lattice,
            // invariant: these are levels
            level: self.level.parse().expect("a level"),
            threads: self.threads,
            cut: self.cut,
            evict: self.evict,
            gossip_ms: self.gossip_ms as u32,
            ..Keyspace::new(&self.name, self.prefix().as_bytes())
        }
    }

    /// Whether what its connection wrote and saw before a write has to be shown before it.
    pub fn has_order(&self) -> bool {
        self.is_fixed && self.cut
    }

    /// With what its level needs.
    fn whole(self) -> Self {
        const ORDERED: [&str; 5] = [
            "monotonic-writes",
            "writes-follow-reads",
            "pram",
            "pram+writes-follow-reads",
            "causal",
        ];
        if !ORDERED.contains(&self.level) {
            return self;
        }
        Self {
            threads: 0,
            cut: true,
            ..self
        }
    }
}

pub(super) fn spaces(r: &mut Random) -> Vec<Space> {
    let gossip = r.skewed(1, 300);
    let space = |n, r: &mut Random| {
        let cut = r.chance(0.25);
        Space {
            name: format!("l{n}"),
            level: LEVELS[r.index(LEVELS.len())],
            threads: match cut {
                true => 0,
                false => r.weighted(&[(4, 0), (1, 1), (2, 2), (1, 3)]),
            },
            cut,
            evict: true,
            gossip_ms: gossip.max(r.skewed(1, 300)),
            is_fixed: r.chance(0.6),
            db: 4 + usize::from(r.chance(0.2)),
        }
        .whole()
    };
    (0..r.between(1, 3)).map(|n| space(n, r)).collect()
}

/// What a key is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string that is written and deleted.
    Register,
    /// A string that has a time to live now and then.
    Fleeting,
    /// A string with causal order, whose concurrent values are all read.
    Note,
    /// A string that transactions write together with others.
    Group,
    Set,
    Hash,
    Sorted,
    /// A set from which no client removes anything.
    Grown,
    Count,
    Float,
    HashCount,
    ScoreCount,
    /// Collections that have a time to live now and then.
    TimedSet,
    TimedHash,
    TimedSorted,
    /// A HyperLogLog.
    Sketch,
    /// A string that transactions write together with another, also at once.
    Pair,
    /// Counted by one client alone, and cleared now and then.
    Cleared,
    ClearedHash,
    ClearedScore,
}

impl Kind {
    pub fn is_register(self) -> bool {
        matches!(
            self,
            Kind::Register | Kind::Fleeting | Kind::Group | Kind::Pair
        )
    }

    /// Whether transactions that are begun write it.
    pub fn fits_transactions(self) -> bool {
        use Kind::{Fleeting, Grown, Hash, Register, Set, Sorted};
        let is_plain = matches!(self, Register | Fleeting | Set | Hash | Sorted | Grown);
        is_plain || self.counts() && !self.is_cleared()
    }

    pub fn counts(self) -> bool {
        use Kind::{Count, Float, HashCount, ScoreCount};
        matches!(self, Count | Float | HashCount | ScoreCount) || self.is_cleared()
    }

    pub fn is_cleared(self) -> bool {
        matches!(self, Kind::Cleared | Kind::ClearedHash | Kind::ClearedScore)
    }
}

#[derive(Clone, Debug)]
pub struct Key {
    pub name: Vec<u8>,
    pub kind: Kind,
    pub db: usize,
    /// None: a strict key.
    pub space: Option<usize>,
    /// One client alone writes it, and in a life of the node at one worker.
    pub alone: bool,
}

impl Key {
    /// Gives a collection deadlines, and one client that writes it.
    pub(super) fn make_timed(&mut self) {
        let timed = match self.kind {
            Kind::Set => Kind::TimedSet,
            Kind::Hash => Kind::TimedHash,
            Kind::Sorted => Kind::TimedSorted,
            _ => return,
        };
        (self.kind, self.alone) = (timed, true);
    }
}

/// One whose strings have causal order, in some runs.
pub(super) fn causal(r: &mut Random) -> Option<Space> {
    let cut = r.chance(0.25);
    let space = Space {
        name: "notes".into(),
        level: "causal",
        threads: if cut {
            0
        } else {
            r.weighted(&[(4, 0), (1, 2)])
        },
        cut,
        evict: true,
        gossip_ms: r.skewed(1, 300),
        is_fixed: true,
        db: 4,
    };
    r.chance(0.6).then_some(space.whole())
}

/// One whose keys are evicted.
pub(super) fn cache(r: &mut Random) -> Space {
    Space {
        name: "cache".into(),
        level: "eventual",
        threads: r.weighted(&[(3, 0), (1, 2)]),
        cut: false,
        evict: true,
        gossip_ms: r.skewed(1, 300),
        is_fixed: true,
        db: 4,
    }
}

/// Its keys.
pub(super) fn cached(number: usize, space: &Space) -> impl Iterator<Item = Key> {
    let kinds = [Kind::Set, Kind::Hash, Kind::Sorted].repeat(3);
    kinds.into_iter().enumerate().map(move |(n, kind)| Key {
        name: format!("{}:{kind:?}{n}", space.name)
            .to_lowercase()
            .into_bytes(),
        kind,
        db: space.db,
        space: Some(number),
        alone: false,
    })
}

/// Its keys.
pub(super) fn notes(number: usize, space: &Space) -> impl Iterator<Item = Key> {
    let kinds = [Kind::Note, Kind::Note, Kind::Note, Kind::Grown, Kind::Set];
    kinds.into_iter().enumerate().map(move |(n, kind)| Key {
        name: format!("{}:{kind:?}{n}", space.name)
            .to_lowercase()
            .into_bytes(),
        kind,
        db: space.db,
        space: Some(number),
        alone: false,
    })
}

/// Keys of these, and strict ones; and those that are written together, by database.
pub(super) fn keys(r: &mut Random, spaces: &[Space], strict: bool) -> (Vec<Key>, Vec<Vec<usize>>) {
    use Kind::{
        Cleared, ClearedHash, ClearedScore, Count, Fleeting, Float, Group, Grown, Hash, HashCount,
        Register, ScoreCount, Set, Sorted,
    };
    let kinds = [
        Register,
        Fleeting,
        Set,
        Hash,
        Sorted,
        Count,
        Float,
        HashCount,
        ScoreCount,
        Cleared,
        ClearedHash,
        ClearedScore,
    ];
    let mut keys = Vec::new();
    let share = r.weighted(&[(1, 0.3), (1, 0.7)]);
    for (space, at) in spaces.iter().enumerate() {
        let some = kinds.into_iter().filter(|_| r.chance(share));
        let chosen: Vec<_> = some.chain([Grown, Grown, Group, Group]).collect();
        for (n, kind) in chosen.into_iter().enumerate() {
            let name = format!("{}:{kind:?}{n}", at.name).to_lowercase();
            keys.push(Key {
                name: name.into_bytes(),
                kind,
                db: at.db,
                space: Some(space),
                alone: kind.is_cleared(),
            });
        }
    }
    for db in [4, 5].into_iter().filter(|_| strict) {
        keys.push(Key {
            name: format!("strict:{db}").into_bytes(),
            kind: Grown,
            db,
            space: None,
            alone: false,
        });
    }
    let groups = [4, 5].map(|db| {
        let of = |(_, key): &(usize, &Key)| key.db == db && key.kind == Group;
        keys.iter().enumerate().filter(of).map(|(n, _)| n).collect()
    });
    (keys, groups.to_vec())
}

/// Those that some runs have besides.
pub(super) fn more(r: &mut Random, spaces: &[Space]) -> Vec<Key> {
    use Kind::{Pair, Sketch, TimedHash, TimedSet, TimedSorted};
    let mut keys = Vec::new();
    for (space, at) in spaces.iter().enumerate() {
        let mut add = |kind: Kind, alone| {
            let name = format!("{}:{kind:?}{}", at.name, keys.len()).to_lowercase();
            keys.push(Key {
                name: name.into_bytes(),
                kind,
                db: at.db,
                space: Some(space),
                alone,
            });
        };
        for kind in [TimedSet, TimedHash, TimedSorted] {
            for alone in [true, false] {
                if r.chance(if alone { 0.6 } else { 0.3 }) {
                    add(kind, alone);
                }
            }
        }
        if r.chance(0.5) {
            (0..r.between(1, 3)).for_each(|_| add(Sketch, false));
        }
        if at.is_fixed && at.level != "causal" {
            (0..4).for_each(|_| add(Pair, false));
        }
    }
    keys
}
