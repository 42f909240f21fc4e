//! Reading and changing keys that hold a text.

use super::value::Value;
use super::{Entry, Expect, State};
use rufous_resp::Reply;

pub(super) fn holds_other(state: &State, key: usize) -> bool {
    state[key]
        .as_ref()
        .is_some_and(|e| e.value.text().is_none())
}

pub(super) fn text(entry: &Option<Entry>) -> Option<&Vec<u8>> {
    entry.as_ref()?.value.text()
}

/// Changes a text; there must be nothing else.
pub(super) fn put<R>(entry: &mut Option<Entry>, change: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut bytes = text(entry).cloned().unwrap_or_default();
    let result = change(&mut bytes);
    let expiry = entry.take().and_then(|e| e.expiry);
    *entry = Some(Entry {
        value: Value::Text(bytes),
        expiry,
    });
    result
}

pub(super) fn increment(entry: &mut Option<Entry>, by: i64) -> Expect {
    let held = text(entry).map_or(&b"0"[..], |text| text);
    let number = std::str::from_utf8(held)
        .ok()
        .and_then(|t| t.parse::<i64>().ok());
    let Some(sum) = number.and_then(|n| n.checked_add(by)) else {
        return Expect::Error("ERR ");
    };
    put(entry, |text| *text = sum.to_string().into_bytes());
    Expect::Exactly(Reply::Integer(sum))
}
