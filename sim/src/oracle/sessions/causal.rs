//! Causal over keys: no read of what is overwritten in its past, which is all
//! that its session has done and read, and the pasts of these writes.

use super::order::Order;
use super::{Seen, Value, What};
use std::collections::{BTreeMap, BTreeSet};

type Past = BTreeSet<Value>;

pub(super) fn pairs(seen: &Seen<'_>, order: &mut Order) {
    let mut sessions: BTreeMap<usize, Past> = BTreeMap::new();
    let mut pasts: BTreeMap<Value, Past> = BTreeMap::new();
    for event in seen.events() {
        let past = sessions.entry(event.session).or_default();
        let (value, why) = match event.what {
            What::Write(value) => (value, "was known to who wrote"),
            What::Read(Some(value)) => {
                past.extend(pasts.get(&value).into_iter().flatten());
                (value, "was in the past of the read that found")
            }
            What::Read(None) => continue,
        };
        past.insert(value);
        let same_key = |other: &&Value| seen.writer(**other).key == event.key;
        for earlier in past.iter().filter(same_key) {
            order.before(*earlier, value, why);
        }
        if let What::Write(value) = event.what {
            pasts.insert(value, past.clone());
        }
    }
}
