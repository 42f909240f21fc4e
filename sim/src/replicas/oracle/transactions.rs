//! Transactions [HAT §5.1.1]: read uncommitted is that two of them are not
//! ordered one way at one key and the other way at another (G0); read committed
//! also that no transaction reads what was rolled back (G1a) or replaced within its
//! transaction (G1b), and that there is no circle of dependencies (G1c);
//! item cut also that an item is the same whenever a transaction reads it.

use super::Seen;
use super::order::Order;
use crate::replicas::history::{Event, Outcome, Value, What};
use crate::replicas::plan::Mode;
use std::collections::BTreeMap;

pub(super) fn judge(mode: Mode, seen: &Seen<'_>) -> Result<(), String> {
    // Transactions are numbers of an order as values are; the first writes are 0.
    let mut order = Order::new(seen.history.transactions.len() + 1);
    last_writes_stay(seen)?;
    write_order(seen, &mut order);
    if mode != Mode::ReadUncommitted {
        committed(seen, &mut order)?;
    }
    if mode == Mode::ItemCut {
        items_stay(seen)?;
    }
    let told = |text: String| format!("v means transaction, counted from 1: {text}");
    order.check().map_err(told)
}

fn number(event: &Event) -> Value {
    event.transaction.map_or(0, |number| number as Value + 1)
}

/// Whether the transaction writes the key once more after `value`.
fn is_replaced(seen: &Seen<'_>, value: Value) -> bool {
    let wrote = seen.writes[&value];
    let event = &seen.history.events[wrote];
    let later = seen.history.events[wrote + 1..].iter();
    let again = |other: &Event| {
        let same = (other.transaction, other.key) == (event.transaction, event.key);
        let known = matches!(other.what, What::Write(value) if seen.happened[value as usize]);
        same && known
    };
    event.transaction.is_some() && later.into_iter().any(again)
}

fn last_writes_stay(seen: &Seen<'_>) -> Result<(), String> {
    for value in seen.history.quiets.iter().flat_map(|quiet| &quiet.shown) {
        if let Some(value) = value.filter(|value| is_replaced(seen, *value)) {
            return Err(format!("v{value} stays, which its transaction replaced"));
        }
    }
    Ok(())
}

/// A round's last writer of a key is after all others of it.
fn write_order(seen: &Seen<'_>, order: &mut Order) {
    let mut begin = 0;
    let mut last: &[Option<Value>] = &[];
    for quiet in &seen.history.quiets {
        for event in &seen.history.events[begin..quiet.events] {
            let What::Write(value) = event.what else {
                continue;
            };
            let shown = quiet.shown[event.key].filter(|_| seen.happened[value as usize]);
            let Some(end) = shown else { continue };
            let end = number(seen.writer(end));
            order.before(number(event), end, "wrote the key before");
            if let Some(Some(before)) = last.get(event.key) {
                let before = number(seen.writer(*before));
                order.before(before, number(event), "was everywhere before");
            }
        }
        (begin, last) = (quiet.events, &quiet.shown);
    }
}

fn committed(seen: &Seen<'_>, order: &mut Order) -> Result<(), String> {
    for event in seen.events() {
        let What::Read(Some(value)) = event.what else {
            continue;
        };
        let writer = seen.writer(value);
        if writer.transaction == event.transaction {
            continue;
        }
        let outcome = writer.transaction.map(|n| seen.history.transactions[n]);
        if outcome == Some(Outcome::RolledBack) {
            return Err(format!("v{value} was read, which was rolled back"));
        }
        if is_replaced(seen, value) {
            return Err(format!("v{value} was read, which its transaction replaced"));
        }
        order.before(number(writer), number(event), "was read by");
    }
    Ok(())
}

fn items_stay(seen: &Seen<'_>) -> Result<(), String> {
    let mut items: BTreeMap<(usize, usize), Value> = BTreeMap::new();
    for event in seen.events() {
        let (Some(number), What::Read(Some(value))) = (event.transaction, event.what) else {
            continue;
        };
        // Its own writes it sees as they come.
        if seen.writer(value).transaction == event.transaction {
            continue;
        }
        let first = *items.entry((number, event.key)).or_insert(value);
        if first != value {
            let key = event.key;
            return Err(format!(
                "transaction {number} read v{first} at key {key}, and then v{value}"
            ));
        }
    }
    Ok(())
}
