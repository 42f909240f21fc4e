//! A head that tests drive by hand.

use super::{Head, State};
use crate::{Ahead, Book, Message, Operation, Output, Record, To, TxnId};

pub(super) type Sent<O> = Vec<(To, Message<O>)>;

/// A slot whose records are kept at once.
pub(super) struct Slot<O: Operation, K> {
    pub(super) head: Head<O>,
    pub(super) keys: K,
    pub(super) records: Vec<Record<O>>,
    /// What it has put out for slots beside it.
    pub(super) beside: Vec<(u16, Ahead<O>)>,
}

impl<O: Operation, K: State<O> + Default> Slot<O, K> {
    pub(super) fn new(no: u16) -> Self {
        Self {
            head: Head::new(Book::new(no)),
            keys: K::default(),
            records: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Takes what the head has put out, and returns what it sends.
    pub(super) fn put(&mut self, out: Vec<Output<O>>) -> Sent<O> {
        let mut sent = Vec::new();
        for output in out {
            match output {
                Output::Record(record) => self.records.push(record),
                Output::Send(to, message) | Output::SendSynced(to, message) => {
                    sent.push((to, message));
                }
                Output::Beside(slot, ahead) => self.beside.push((slot, ahead)),
            }
        }
        sent
    }

    pub(super) fn take(&mut self, from: Option<u16>, message: Message<O>) -> Sent<O> {
        let mut out = Vec::new();
        let keys = &mut self.keys;
        self.head.on_message(from, message, keys, &mut out);
        self.put(out)
    }

    pub(super) fn ahead(&mut self, ahead: Ahead<O>) -> Sent<O> {
        let mut out = Vec::new();
        self.head.on_ahead(ahead, &mut self.keys, &mut out);
        self.put(out)
    }

    pub(super) fn link(&mut self, peer: u16) -> Sent<O> {
        let mut out = Vec::new();
        self.head.on_link(peer, &mut out);
        self.put(out)
    }

    pub(super) fn take_beside(&mut self) -> Vec<(u16, Ahead<O>)> {
        std::mem::take(&mut self.beside)
    }

    /// Another head takes over.
    pub(super) fn lose_head(&mut self) -> Sent<O> {
        let mut book = Book::new(self.head.book().slot());
        for record in &self.records {
            book.on_record(record.clone());
        }
        self.head = Head::new(book);
        let mut out = Vec::new();
        let keys = &mut self.keys;
        self.head.on_start(keys, &mut out);
        self.put(out)
    }

    /// Likewise, with the first of the records.
    pub(super) fn lose_records(&mut self, kept: usize) -> Sent<O> {
        self.records.truncate(kept);
        self.lose_head()
    }
}

pub(super) fn id(number: u64) -> TxnId {
    let (node, start) = (1, 1);
    TxnId {
        node,
        start,
        number,
    }
}
