//! Which node has which slot, as far as this client has learned.
//!
//! An answer replaces what was known of the slots that it names, and nothing else: an answer
//! with half the slots does not change the others, and addresses stay known until the
//! node is known to be gone [Anna-auto §4.3.3].

use crate::config::Addr;
use crate::value::Value;
use rufous_base::limits::SLOTS;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Nodes that are remembered at most; what goes beyond is not taken up.
pub(crate) const MAX_NODES: usize = 4096;
/// Replicas of a slot that are taken up.
const MAX_REPLICAS: usize = 64;

/// The nodes that have a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) owner: Addr,
    pub(crate) replicas: Vec<Addr>,
}

impl Owners {
    fn all(&self) -> impl Iterator<Item = &Addr> {
        std::iter::once(&self.owner).chain(&self.replicas)
    }
}

/// One entry of `CLUSTER SLOTS`.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) slots: RangeInclusive<u16>,
    pub(crate) owners: Arc<Owners>,
}

#[derive(Debug)]
pub(crate) struct SlotMap {
    slots: Box<[Option<Arc<Owners>>]>,
    known: BTreeSet<Addr>,
}

impl SlotMap {
    pub(crate) fn new(seeds: &[Addr]) -> Self {
        Self {
            slots: vec![None; SLOTS].into(),
            known: seeds.iter().take(MAX_NODES).cloned().collect(),
        }
    }

    pub(crate) fn owners(&self, slot: u16) -> Option<&Arc<Owners>> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    pub(crate) fn known(&self) -> &BTreeSet<Addr> {
        &self.known
    }

    /// Applies a node's information on these slots. Returns the known nodes that it does not name
    /// although it covers all slots: they may be gone.
    pub(crate) fn learn(&mut self, ranges: &[Range]) -> Vec<Addr> {
        let mut named = BTreeSet::new();
        for range in ranges {
            if !self.admit(range.owners.all()) {
                continue;
            }
            named.extend(range.owners.all().cloned());
            for slot in range.slots.clone() {
                if let Some(entry) = self.slots.get_mut(usize::from(slot)) {
                    *entry = Some(range.owners.clone());
                }
            }
        }
        if covered(ranges) < SLOTS {
            return Vec::new();
        }
        self.known.difference(&named).cloned().collect()
    }

    /// Takes up a redirection: this slot is there now.
    pub(crate) fn moved(&mut self, slot: u16, to: &Addr) {
        if !self.admit(std::iter::once(to)) {
            return;
        }
        // The new owner's other slots tell its replicas.
        let mut others = self.slots.iter().flatten();
        let owners = others.find(|owners| owners.owner == *to).cloned();
        if let Some(entry) = self.slots.get_mut(usize::from(slot)) {
            *entry = Some(owners.unwrap_or_else(|| {
                Arc::new(Owners {
                    owner: to.clone(),
                    replicas: Vec::new(),
                })
            }));
        }
    }

    /// A node is known to be gone.
    pub(crate) fn forget(&mut self, gone: &Addr) {
        self.known.remove(gone);
        for entry in &mut self.slots {
            let Some(owners) = entry else { continue };
            if owners.owner == *gone {
                *entry = None;
            } else if owners.replicas.contains(gone) {
                Arc::make_mut(owners).replicas.retain(|addr| addr != gone);
            }
        }
    }

    /// Makes room for these addresses, or says that there is none.
    fn admit<'a>(&mut self, addrs: impl Iterator<Item = &'a Addr>) -> bool {
        for addr in addrs {
            if !self.known.contains(addr) {
                if self.known.len() >= MAX_NODES {
                    return false;
                }
                self.known.insert(addr.clone());
            }
        }
        true
    }
}

/// How many slots the ranges tell of.
fn covered(ranges: &[Range]) -> usize {
    let mut told = vec![false; SLOTS];
    for slot in ranges.iter().flat_map(|range| range.slots.clone()) {
        if let Some(slot) = told.get_mut(usize::from(slot)) {
            *slot = true;
        }
    }
    told.iter().filter(|&&told| told).count()
}

/// Reads a reply of `CLUSTER SLOTS`. `asked` is the node that gave it: an empty host means its own.
/// Entries that make no sense are left out.
pub(crate) fn read(reply: &Value, asked: &Addr) -> Vec<Range> {
    let Value::Array(entries) = reply else {
        return Vec::new();
    };
    entries
        .iter()
        .take(SLOTS)
        .filter_map(|entry| range(entry, asked))
        .collect()
}

fn range(entry: &Value, asked: &Addr) -> Option<Range> {
    let Value::Array(parts) = entry else {
        return None;
    };
    let [Value::Int(first), Value::Int(last), owner, replicas @ ..] = &parts[..] else {
        return None;
    };
    let slot = |n: i64| u16::try_from(n).ok().filter(|&n| usize::from(n) < SLOTS);
    let (first, last) = (slot(*first)?, slot(*last)?);
    if first > last {
        return None;
    }
    let replicas = replicas.iter().take(MAX_REPLICAS);
    Some(Range {
        slots: first..=last,
        owners: Arc::new(Owners {
            owner: node(owner, asked)?,
            replicas: replicas.filter_map(|value| node(value, asked)).collect(),
        }),
    })
}

fn node(value: &Value, asked: &Addr) -> Option<Addr> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [host, Value::Int(port), ..] = &parts[..] else {
        return None;
    };
    let host = match host {
        Value::Nil => "",
        host => std::str::from_utf8(host.as_bytes()?).ok()?,
    };
    // `?` is a host that the node does not know.
    let host = if host == "?" { "" } else { host };
    Addr::parse(&format!("{host}:{port}"), asked.host())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn addr(n: u16) -> Addr {
        Addr::new("10.0.0.1", 7000 + n)
    }

    fn some_range() -> impl Strategy<Value = Range> {
        let replicas = prop::collection::vec(0..12u16, 0..3);
        (0..SLOTS as u16, 0..4000u16, 0..12u16, replicas).prop_map(|(first, len, owner, others)| {
            Range {
                slots: first..=first.saturating_add(len).min(SLOTS as u16 - 1),
                owners: Arc::new(Owners {
                    owner: addr(owner),
                    replicas: others.into_iter().map(addr).collect(),
                }),
            }
        })
    }

    #[derive(Clone, Debug)]
    enum Event {
        Learn(Vec<Range>),
        Moved(u16, u16),
        Forget(u16),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => prop::collection::vec(some_range(), 0..5).prop_map(Event::Learn),
            2 => (0..SLOTS as u16, 0..12u16).prop_map(|(slot, n)| Event::Moved(slot, n)),
            1 => (0..12u16).prop_map(Event::Forget),
        ]
    }

    fn owner_list(map: &SlotMap) -> Vec<Option<Addr>> {
        let owner = |slot| map.owners(slot).map(|owners| owners.owner.clone());
        (0..SLOTS as u16).map(owner).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Beside the map stands the plainest one there is: a list of owners.
        #[test]
        fn what_is_learned_changes_what_it_tells_of_and_nothing_else(
            events in prop::collection::vec(event(), 1..20)
        ) {
            let mut map = SlotMap::new(&[addr(0)]);
            let mut model: Vec<Option<Addr>> = vec![None; SLOTS];
            for event in events {
                match event {
                    Event::Learn(ranges) => {
                        let maybe_gone = map.learn(&ranges);
                        for range in &ranges {
                            for slot in range.slots.clone() {
                                model[usize::from(slot)] = Some(range.owners.owner.clone());
                            }
                        }
                        prop_assert!(covered(&ranges) == SLOTS || maybe_gone.is_empty());
                        // The same answer again changes nothing.
                        map.learn(&ranges);
                    }
                    Event::Moved(slot, to) => {
                        map.moved(slot, &addr(to));
                        model[usize::from(slot)] = Some(addr(to));
                    }
                    Event::Forget(n) => {
                        map.forget(&addr(n));
                        prop_assert!(!map.known().contains(&addr(n)));
                        for entry in &mut model {
                            entry.take_if(|owner| *owner == addr(n));
                        }
                    }
                }
                prop_assert_eq!(owner_list(&map), model.clone());
                for owners in map.slots.iter().flatten() {
                    prop_assert!(owners.all().all(|addr| map.known().contains(addr)));
                }
            }
        }
    }

    #[test]
    fn only_a_whole_answer_says_who_is_missing() {
        let range = |slots, n| Range {
            slots,
            owners: Arc::new(Owners {
                owner: addr(n),
                replicas: vec![],
            }),
        };
        let mut map = SlotMap::new(&[addr(0)]);
        assert!(map.learn(&[range(0..=8000, 1)]).is_empty());
        assert_eq!(map.learn(&[range(0..=16383, 2)]), [addr(0), addr(1)]);
        // They stay known: whether they are gone is not for one answer to say.
        assert_eq!(map.known().len(), 3);
    }

    #[test]
    fn addresses_are_bounded() {
        let mut map = SlotMap::new(&[addr(0)]);
        for port in 1..=MAX_NODES as u16 + 50 {
            map.moved(5, &Addr::new("10.0.0.2", port));
        }
        assert_eq!(map.known().len(), MAX_NODES);
        // A node that is known is still believed.
        map.moved(5, &addr(0));
        assert_eq!(map.owners(5).unwrap().owner, addr(0));
    }

    #[test]
    fn answers_that_make_no_sense_are_left_out() {
        let text = |t: &str| Value::Bytes(t.into());
        let node = |host: Value, port| Value::Array(vec![host, Value::Int(port), text("id")]);
        let entry = |first, last, rest: Vec<Value>| {
            let mut parts = vec![Value::Int(first), Value::Int(last)];
            parts.extend(rest);
            Value::Array(parts)
        };
        let good = node(text("h"), 7001);
        let reply = Value::Array(vec![
            entry(
                0,
                9,
                vec![good.clone(), node(Value::Nil, 7002), node(text("x"), -1)],
            ),
            entry(10, 5, vec![good.clone()]),
            entry(0, 16384, vec![good.clone()]),
            entry(-1, 4, vec![good.clone()]),
            entry(1, 4, vec![]),
            entry(1, 4, vec![node(text("h"), 70_000)]),
            entry(1, 4, vec![node(text(&"h".repeat(300)), 7000)]),
            Value::Nil,
        ]);
        let ranges = read(&reply, &Addr::new("asked", 1));
        assert_eq!(ranges.len(), 1);
        assert_eq!(ranges[0].slots, 0..=9);
        assert_eq!(ranges[0].owners.owner, Addr::new("h", 7001));
        assert_eq!(ranges[0].owners.replicas, [Addr::new("asked", 7002)]);
        assert!(read(&Value::Int(1), &addr(0)).is_empty());
    }
}
