//! Entries as they are stored: a transaction once, and behind it a state for each step that the entry has taken. So what a
//! slot keeps of a transaction is written once, whatever happens to it later.
//!
//! ```text
//! entry   6, transaction, then a state or more: the last one holds
//!         as older versions wrote it: the kind of a state, transaction, the rest of that state; then states
//! state   1 prepared: proposal, 0 or 1 with the maximum | 2 applied: stamp, after, told | 3 aborted: told | 4 forgotten
//!         5 applied, alone: as 2
//! ```

use crate::book::{Book, Entry};
use crate::codec::{Coded, all, put_all};
use crate::txn::{Operation, Stamp, Transaction, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of a transaction that states follow.
const TRANSACTION: u8 = 6;

/// What is to be done with the bytes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// They are these, one after the other: the transaction, which is the same at all its slots, and the state.
    Set {
        txn: Vec<u8>,
        state: Vec<u8>,
    },
    /// These follow.
    Append {
        state: Vec<u8>,
    },
    Remove,
}

impl Write {
    /// What becomes of an entry's bytes.
    pub fn on(self, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Self::Set { txn, state } => Some([txn, state].concat()),
            Self::Append { state } => Some([bytes.unwrap_or_default(), state].concat()),
            Self::Remove => None,
        }
    }
}

/// The transactions of a slot that are stored.
#[derive(Clone, Debug)]
pub struct Stored<O> {
    txns: BTreeMap<TxnId, Arc<Transaction<O>>>,
}

impl<O: Operation + Coded> Stored<O> {
    /// Those of a book that was made of what is stored.
    pub fn of(book: &Book<O>) -> Self {
        let txns = book.iter();
        Self {
            txns: txns
                .map(|(id, entry)| (*id, Arc::clone(entry.txn())))
                .collect(),
        }
    }

    /// The entry of a transaction has changed, or is gone.
    pub fn on_change(&mut self, id: TxnId, entry: Option<&Entry<O>>) -> Write {
        let Some(entry) = entry else {
            self.txns.remove(&id);
            return Write::Remove;
        };
        let mut state = Vec::new();
        put_state(entry, &mut state);
        let txn = entry.txn();
        let before = self.txns.insert(id, Arc::clone(txn));
        if before.is_some_and(|before| Arc::ptr_eq(&before, txn)) {
            return Write::Append { state };
        }
        let mut bytes = vec![TRANSACTION];
        txn.encode(&mut bytes);
        Write::Set { txn: bytes, state }
    }
}

fn put_state<O>(entry: &Entry<O>, out: &mut Vec<u8>) {
    match entry {
        Entry::Prepared { proposal, max, .. } => {
            out.push(1);
            proposal.encode(out);
            max.encode(out);
        }
        Entry::Applied {
            stamp,
            after,
            told,
            alone,
            ..
        } => {
            out.push(if *alone { 5 } else { 2 });
            stamp.encode(out);
            put_all(out, after);
            told.encode(out);
        }
        Entry::Aborted { told, .. } => {
            out.push(3);
            told.encode(out);
        }
        Entry::Forgotten { .. } => out.push(4),
    }
}

/// The entry that these bytes are. `None` if they are none.
pub fn entry_of<O: Coded>(bytes: &[u8]) -> Option<Entry<O>> {
    let mut rest = bytes;
    let kind = u8::decode(&mut rest)?;
    let txn = Arc::decode(&mut rest)?;
    let mut entry = match kind {
        TRANSACTION => None,
        kind => Some(state(kind, &txn, &mut rest)?),
    };
    while !rest.is_empty() {
        let kind = u8::decode(&mut rest)?;
        entry = Some(state(kind, &txn, &mut rest)?);
    }
    entry
}

fn state<O>(kind: u8, txn: &Arc<Transaction<O>>, from: &mut &[u8]) -> Option<Entry<O>> {
    let txn = Arc::clone(txn);
    Some(match kind {
        1 => Entry::Prepared {
            txn,
            proposal: u64::decode(from)?,
            max: Option::decode(from)?,
        },
        2 | 5 => Entry::Applied {
            txn,
            stamp: Stamp::decode(from)?,
            after: all(from)?,
            told: Arc::decode(from)?,
            alone: kind == 5,
        },
        3 => Entry::Aborted {
            txn,
            told: Arc::decode(from)?,
        },
        4 => Entry::Forgotten { txn },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::message::{Predecessor, Record};
    use crate::txn::Part;

    const ID: TxnId = TxnId {
        node: 0x0102,
        start: 3,
        number: 4,
    };

    fn txn() -> Arc<Transaction<Access>> {
        let part = |slot: u16, key: &[u8]| Part {
            slot,
            key: key.into(),
            ops: vec![Access::Read, Access::Write],
            expects: Some(None),
        };
        let parts = vec![part(1, b"a"), part(300, b"b")];
        let txn = Transaction::new(ID, parts, b"body".as_slice().into()).expect("has parts");
        Arc::new(txn.with_gathered(1, b"abc"))
    }

    fn applied(txn: &Arc<Transaction<Access>>) -> Entry<Access> {
        Entry::Applied {
            txn: Arc::clone(txn),
            stamp: Stamp { time: 128, txn: ID },
            after: vec![Predecessor { txn: ID, first: 7 }],
            told: b"ok".as_slice().into(),
            alone: false,
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    const OF: &str = "01020000000000000003000000000000000404626f6479050103616263\
                      0201016102000101ac02016202000101";
    const STATE: &str = "800101020000000000000003000000000000000401010200000000000000030000000000000004\
                         07026f6b";

    /// What logs have has to stay readable.
    #[test]
    fn stored_bytes_are_these() {
        let txn = txn();
        let mut stored = Stored::of(&Book::new(1));
        let Write::Set { txn: first, state } = stored.on_change(ID, Some(&applied(&txn))) else {
            panic!("it is new");
        };
        assert_eq!(hex(&first), format!("06{OF}"));
        assert_eq!(hex(&state), format!("02{STATE}"));
    }

    /// As versions did that wrote the transaction with each state.
    #[test]
    fn earlier_entries_are_read_and_go_on() {
        let earlier = format!("02{OF}{STATE}");
        let pairs = earlier.as_bytes().chunks(2);
        let bytes: Vec<u8> = pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16))
            .map(|byte| byte.expect("a number"))
            .collect();
        let txn = txn();
        assert_eq!(entry_of(&bytes), Some(applied(&txn)));
        let more = [&bytes[..], &[4]].concat();
        assert_eq!(entry_of(&more), Some(Entry::Forgotten { txn }));
    }

    /// Whatever happens to it, and where another head goes on from what is stored.
    #[test]
    fn a_transaction_is_written_once() {
        let txn = txn();
        let records = [
            Record::Prepared {
                txn: Arc::clone(&txn),
                proposal: 5,
                max: None,
            },
            Record::Prepared {
                txn: Arc::clone(&txn),
                proposal: 5,
                max: Some(9),
            },
            Record::Applied {
                txn: Arc::clone(&txn),
                stamp: Stamp { time: 9, txn: ID },
                after: Vec::new(),
                told: b"ok".as_slice().into(),
                alone: true,
            },
            Record::Forgotten { txn: ID },
        ];
        for is_read_again in [false, true] {
            let (mut book, mut bytes) = (Book::new(1), None);
            let mut stored = Stored::of(&book);
            for (n, record) in records.iter().enumerate() {
                book.on_record(match record {
                    Record::Applied {
                        stamp,
                        after,
                        told,
                        alone,
                        ..
                    } => Record::Applied {
                        txn: Arc::clone(book.get(ID).expect("an entry").txn()),
                        stamp: *stamp,
                        after: after.clone(),
                        told: Arc::clone(told),
                        alone: *alone,
                    },
                    Record::Prepared { proposal, max, .. } if n > 0 => Record::Prepared {
                        txn: Arc::clone(book.get(ID).expect("an entry").txn()),
                        proposal: *proposal,
                        max: *max,
                    },
                    record => record.clone(),
                });
                let write = stored.on_change(ID, book.get(ID));
                assert_eq!(n == 0, matches!(write, Write::Set { .. }), "{n}: {write:?}");
                bytes = write.on(bytes);
                let entry = entry_of(bytes.as_ref().expect("bytes")).expect("an entry");
                assert_eq!(Some(&entry), book.get(ID));
                if is_read_again {
                    book = Book::restore(1, [(ID, entry)]);
                    stored = Stored::of(&book);
                }
            }
            assert_eq!(stored.on_change(ID, None), Write::Remove);
            let other = book.get(ID).expect("an entry").txn().renamed(ID);
            let again = Entry::Forgotten {
                txn: Arc::new(other),
            };
            let write = stored.on_change(ID, Some(&again));
            assert!(matches!(write, Write::Set { .. }), "{write:?}");
        }
    }
}
