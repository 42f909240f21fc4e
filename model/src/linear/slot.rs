//! A slot: its log, how much of it is kept where, and its head.

use super::ops::{Keys, Op};
use super::world::Bounds;
use rufous_linear::stored::{Stored, entry_of};
use rufous_linear::{Ahead, Book, Head, Later, Message, Output, Record, Survey, To, TxnId};
use std::collections::{BTreeMap, VecDeque};

/// A message that waits for records to be kept.
#[derive(Clone, Debug)]
struct Gated {
    /// The number of records that have to be.
    records: usize,
    /// In synced logs, not only at all copies.
    synced: bool,
    to: To,
    message: Message<Op>,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Slot {
    no: u16,
    apart: bool,
    log: Vec<Record<Op>>,
    /// So many records are at all copies, and so many in synced logs.
    kept: usize,
    synced: usize,
    gated: VecDeque<Gated>,
    pub head: Head<Op>,
    pub keys: Keys,
    /// It may have lost something, and waits for what others tell.
    pub closed: bool,
    pub survey: Survey<Op>,
}

impl Slot {
    pub fn new(no: u16, bounds: &Bounds) -> Self {
        let apart = bounds.apart;
        Self {
            no,
            apart,
            log: Vec::new(),
            kept: 0,
            synced: 0,
            gated: VecDeque::new(),
            head: head(Book::new(no), apart),
            closed: false,
            survey: Survey::default(),
            keys: Keys {
                refusals: bounds.refusals,
                ..Keys::default()
            },
        }
    }

    /// Takes what the head has put out, and returns what is for the heads of slots beside this one.
    pub fn take(&mut self, outputs: Vec<Output<Op>>) -> Vec<(u16, Ahead<Op>)> {
        let mut beside = Vec::new();
        for output in outputs {
            let (to, message, synced) = match output {
                Output::Record(record) => {
                    self.log.push(record);
                    continue;
                }
                Output::Send(to, message) => (to, message, false),
                Output::SendSynced(to, message) => (to, message, true),
                Output::Beside(slot, ahead) => {
                    beside.push((slot, ahead));
                    continue;
                }
            };
            let records = self.log.len();
            self.gated.push_back(Gated {
                records,
                synced,
                to,
                message,
            });
        }
        beside
    }

    /// Messages that may leave now.
    pub fn leaving(&mut self) -> Vec<(To, Message<Op>)> {
        let (kept, synced) = (self.kept, self.synced);
        let may = |gated: &Gated| gated.records <= if gated.synced { synced } else { kept };
        let (go, stay): (VecDeque<Gated>, _) = self.gated.drain(..).partition(may);
        self.gated = stay;
        go.into_iter()
            .map(|gated| (gated.to, gated.message))
            .collect()
    }

    pub fn lacks_copies(&self) -> bool {
        self.kept < self.log.len()
    }

    pub fn lacks_sync(&self) -> bool {
        self.synced < self.kept
    }

    pub fn is_idle(&self) -> bool {
        self.gated.is_empty() && !self.lacks_copies()
    }

    /// All copies have all records.
    pub fn copy(&mut self) {
        self.kept = self.log.len();
    }

    pub fn sync(&mut self) {
        self.synced = self.kept;
    }

    /// How many of the last records may be lost with the head, or with the end of all logs.
    pub fn unkept(&self, synced: bool) -> usize {
        self.log.len() - if synced { self.synced } else { self.kept }
    }

    /// Another head takes over, without the last records.
    pub fn lose(&mut self, lost: usize) {
        self.log.truncate(self.log.len() - lost);
        self.synced = self.synced.min(self.log.len());
        self.gated.clear();
        self.keys = Keys {
            refusals: self.keys.refusals,
            wrong: self.keys.wrong.take(),
            changed: self.keys.changed.take(),
            ..Keys::default()
        };
        for record in &self.log {
            if let Record::Applied {
                txn,
                stamp,
                told,
                alone,
                ..
            } = record
            {
                let later = rufous_linear::told::after(told, |of| txn.is_after(of, self.no));
                let later = if *alone {
                    Later::Bytes(0)
                } else {
                    Later::Told(&later)
                };
                rufous_linear::State::apply(&mut self.keys, txn, self.no, *stamp, later);
            }
        }
        self.kept = self.log.len();
        self.head = head(stored(&self.log, self.no), self.apart);
    }
}

fn head(book: Book<Op>, apart: bool) -> Head<Op> {
    if apart {
        Head::apart(book)
    } else {
        Head::new(book)
    }
}

/// A book as it is made of what is stored, entry by entry: its clock is the largest time in them. Whether the slot has lost
/// something is stored apart.
fn stored(log: &[Record<Op>], no: u16) -> Book<Op> {
    let (mut book, mut bytes) = (Book::new(no), BTreeMap::new());
    let mut stored = Stored::of(&book);
    for record in log {
        book.on_record(record.clone());
        if let Some(id) = record.txn() {
            let write = stored.on_change(id, book.get(id));
            let entry = write.on(bytes.remove(&id));
            bytes.extend(entry.map(|entry| (id, entry)));
        }
    }
    let entries = bytes.into_iter();
    let entries = entries.filter_map(|(id, bytes)| Some((id, entry_of(&bytes)?)));
    let mut restored = Book::restore(no, entries);
    if book.is_lost() {
        restored.on_record(Record::Lost);
    }
    restored
}

impl Slot {
    /// Its log, for a person.
    pub fn line(&self) -> String {
        let names = self.log.iter().map(|record| match record {
            Record::Prepared { txn, proposal, .. } => format!("P{proposal}{}", name(txn.id)),
            Record::Applied { txn, stamp, .. } => format!("A{}{}", stamp.time, name(txn.id)),
            Record::Aborted { txn, .. } => format!("X{}", name(txn.id)),
            Record::Forgotten { txn } => format!("F{}", name(*txn)),
            Record::Dropped { txn } => format!("D{}", name(*txn)),
            Record::Lost => "lost".into(),
            Record::Recovered => "recovered".into(),
        });
        let names: Vec<String> = names.collect();
        let (no, kept, synced) = (self.no, self.kept, self.synced);
        let state = if self.closed { " recovers" } else { "" };
        format!(
            "slot {no}: kept {kept}, synced {synced}{state}: {}",
            names.join(" ")
        )
    }
}

/// A transaction, for a person.
pub fn name(txn: TxnId) -> String {
    format!("({}.{}.{})", txn.node, txn.start, txn.number)
}
