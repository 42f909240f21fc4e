//! Any bytes as a message, as a stored entry and as an identity of linear transactions: what is decoded has this encoding
//! alone, or comes back as it was where it is stored, and the slots of a transaction are those of its parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_linear::stored::{Stored, entry_of};
use rufous_linear::{Access, Book, Coded, Message, Transaction, TxnId};

fuzz_target!(|data: &[u8]| {
    if let Some(entry) = entry_of::<Access>(data) {
        whole(entry.txn());
        let mut stored = Stored::of(&Book::new(1));
        let bytes = stored.on_change(entry.txn().id, Some(&entry)).on(None);
        assert_eq!(entry_of(&bytes.expect("it is new")), Some(entry));
    }
    if let Some(Message::Forward { txn, .. } | Message::Recalled { txn: Some(txn), .. }) =
        check::<Message<Access>>(data)
    {
        whole(&txn);
    }
    check::<TxnId>(data);
});

fn check<T: Coded>(data: &[u8]) -> Option<T> {
    let mut rest = data;
    let value = T::decode(&mut rest)?;
    let mut again = Vec::new();
    value.encode(&mut again);
    assert_eq!(again, data[..data.len() - rest.len()]);
    Some(value)
}

fn whole(txn: &Transaction<Access>) {
    let slots = txn.slots();
    let mut sorted = slots.to_vec();
    sorted.sort_unstable();
    assert!(!slots.is_empty() && sorted.is_sorted_by(|a, b| a < b));
    // Only those that have an order of their own visit them in another one.
    assert!(txn.order() > 0 || sorted == slots);
    let parts = slots.iter().map(|slot| txn.at(*slot).count());
    let parts: Vec<usize> = parts.collect();
    assert!(parts.iter().all(|count| *count > 0));
    assert_eq!(parts.iter().sum::<usize>(), txn.parts().len());
}
