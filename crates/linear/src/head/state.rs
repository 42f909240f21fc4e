//! What a head asks of the keys of its slot.

use crate::txn::{Operation, Stamp, Standing, Transaction};

/// What wants a key beside transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    None,
    /// Something holds it, and waits for no transaction meanwhile.
    Hold,
    /// Something waits for the transactions that are prepared at this slot, to have it before those that come later.
    Wait,
}

/// The keys of a slot.
pub trait State<O: Operation> {
    /// The stamp of the last transaction that has written the key.
    fn version(&self, key: &[u8]) -> Option<Stamp>;

    /// What of the key's state matters to independence, if anything is known of it.
    fn standing(&self, key: &[u8]) -> Option<Standing<O>> {
        let _ = key;
        None
    }

    /// What else wants the key: if anything does, transactions wait to be admitted, until [`Head::on_free`].
    fn others(&self, key: &[u8]) -> Others {
        let _ = key;
        Others::None
    }

    /// Looks at a transaction that would be admitted at the slot. `Some`: it is aborted, and its client is told why.
    fn refuses(&mut self, txn: &Transaction<O>, slot: u16) -> Option<Vec<u8>> {
        let _ = (txn, slot);
        None
    }

    /// What the slot adds to a transaction that it admits, for the later slots. A key of it that nothing else may write
    /// meanwhile is the same when the transaction is applied. `Err`: it is aborted, and its client is told why.
    fn gather(&mut self, txn: &Transaction<O>, slot: u16) -> Result<Vec<u8>, Vec<u8>> {
        let _ = (txn, slot);
        Ok(Vec::new())
    }

    /// Whether each slot applies its parts by itself: it adds nothing, and needs nothing of what others add or tell.
    fn is_apart(&mut self, txn: &Transaction<O>) -> bool {
        let _ = txn;
        false
    }

    /// Applies the parts of a transaction at the slot, and returns what its client is told of them.
    fn apply(&mut self, txn: &Transaction<O>, slot: u16, stamp: Stamp, later: Later<'_>)
    -> Vec<u8>;
}

/// What later slots, which have applied a transaction, have told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later<'a> {
    /// In frames ([`crate::told::pieces`]).
    Told(&'a [u8]),
    /// So many bytes that are not known here: the transaction is one whose slots need them not ([`State::is_apart`]).
    Bytes(usize),
}

impl Later<'_> {
    /// How many bytes they are.
    pub fn len(&self) -> usize {
        match self {
            Self::Told(told) => told.len(),
            Self::Bytes(len) => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
