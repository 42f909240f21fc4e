//! Any bytes as a message, as a stored entry and as an identity of linear transactions: what is decoded has this encoding alone, and the slots
//! of a transaction are those of its parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_linear::{Access, Coded, Entry, Message, Transaction, TxnId};

fuzz_target!(|data: &[u8]| {
    if let Some(entry) = check::<Entry<Access>>(data) {
        whole(entry.txn());
    }
    if let Some(
        Message::Forward { txn, .. } | Message::Known { txn, .. } | Message::Redo { txn, .. },
    ) = check::<Message<Access>>(data)
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
    assert!(!slots.is_empty() && slots.is_sorted_by(|a, b| a < b));
    let parts = slots.iter().map(|slot| txn.at(*slot).count());
    let parts: Vec<usize> = parts.collect();
    assert!(parts.iter().all(|count| *count > 0));
    assert_eq!(parts.iter().sum::<usize>(), txn.parts().len());
}
