//! What clients asked for and what they saw, by unit: the keys that are
//! checked together.

use crate::model::Op;
use rufous_resp::Reply;

/// What a unit's keys are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One key, any bytes.
    Text,
    /// One key, a number.
    Counter,
    /// One key that has a time to live.
    Expiring,
    /// Several keys, always written together.
    Group,
    /// Two keys, moved and copied from one to the other.
    Pair,
    /// One to three keys that hold such.
    Hash,
    List,
    Set,
    Sorted,
    Ids,
    Ranking,
    Bag,
    Bounded,
}

impl Kind {
    pub const COLLECTIONS: [Kind; 8] = [
        Kind::Hash,
        Kind::List,
        Kind::Set,
        Kind::Sorted,
        Kind::Ids,
        Kind::Ranking,
        Kind::Bag,
        Kind::Bounded,
    ];

    pub fn is_of_collections(self) -> bool {
        Self::COLLECTIONS.contains(&self)
    }

    pub fn is_of_claret(self) -> bool {
        Self::COLLECTIONS[4..].contains(&self)
    }
}

/// Keys that are checked together.
#[derive(Clone, Debug)]
pub struct Unit {
    pub kind: Kind,
    pub db: usize,
    pub keys: Vec<Vec<u8>>,
}

impl Unit {
    pub fn name(&self) -> String {
        format!(
            "{:?} {}/{}",
            self.kind,
            self.db,
            String::from_utf8_lossy(&self.keys[0])
        )
    }
}

/// How it ended for the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing came back: it may have run or not.
    Open,
    /// Refused: it did not run.
    Refused,
    Seen(Reply),
}

/// One thing that a client asked for.
#[derive(Clone, Debug)]
pub struct Record {
    pub op: Op,
    pub outcome: Outcome,
    /// Requests of one connection run in their order.
    pub connection: u64,
    pub order: u64,
    pub asked_us: u64,
    /// When the answer came; `u64::MAX` where none did.
    pub answered_us: u64,
}

/// How a life of the node ended, as far as data is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    pub end_us: u64,
    pub kept: Kept,
    /// Since when the disk failed. From then on reads go on while what they
    /// show cannot be logged: they promise nothing.
    pub trouble_us: Option<u64>,
}

impl Epoch {
    /// Whether the effects of this record must be present after the epoch.
    pub fn holds(&self, record: &Record) -> bool {
        let troubled = self.trouble_us.is_some_and(|us| record.answered_us >= us);
        self.kept.holds(record) && (record.op.writes() || !troubled)
    }
}

/// What has to be there after a restart.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// Everything that was acknowledged.
    All,
    /// A prefix, with everything acknowledged up to a time and everything
    /// that was asked for and acknowledged within one of the spans.
    Prefix {
        up_to_us: u64,
        firm: Vec<(u64, u64)>,
    },
    Nothing,
}

impl Kept {
    /// A prefix, and be it nothing.
    pub const ANY: Kept = Kept::Prefix {
        up_to_us: 0,
        firm: Vec::new(),
    };

    fn holds(&self, record: &Record) -> bool {
        if record.answered_us == u64::MAX {
            return false;
        }
        match self {
            Kept::All => true,
            Kept::Nothing => false,
            Kept::Prefix { up_to_us, firm } => {
                record.answered_us <= *up_to_us
                    || firm
                        .iter()
                        .any(|(from, to)| *from <= record.asked_us && record.answered_us <= *to)
            }
        }
    }
}

/// Everything that happened to the units.
#[derive(Debug, Default)]
pub struct History {
    pub units: Vec<Unit>,
    /// By unit: the records, by life of the node.
    pub records: Vec<Vec<Vec<Record>>>,
    pub epochs: Vec<Epoch>,
    /// Searches that were given up.
    pub unsure: u64,
}

impl History {
    pub fn new(units: Vec<Unit>) -> Self {
        Self {
            records: vec![vec![Vec::new()]; units.len()],
            units,
            epochs: Vec::new(),
            unsure: 0,
        }
    }

    /// Adds what was asked for in that life of the node.
    pub fn add(&mut self, unit: usize, life: usize, record: Record) {
        self.records[unit][life].push(record);
    }

    /// The node's life is over.
    pub fn end_epoch(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
        self.records.iter_mut().for_each(|r| r.push(Vec::new()));
    }
}
