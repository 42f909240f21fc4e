//! What has to hold at the end of a history: no transaction is open, each is whole or absent, and those that were
//! applied have one order, which keeps to real time.

use super::ops::{Do, Done, Op, plain};
use super::world::World;
use rufous_linear::{Operation, Outcome, Part, TxnId};
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// Call it when nothing more happens by itself.
    pub fn check(&self) -> Result<(), String> {
        for (no, slot) in self.slots.iter().enumerate() {
            if slot.closed || slot.head.book().is_lost() {
                return Err(format!("slot {no} does not end its recovery"));
            }
            // What a slot has added may be of writes that are lost: then nothing is promised of it.
            let changed = slot.keys.changed.as_ref().filter(|_| !self.has_lost);
            if let Some(wrong) = slot.keys.wrong.as_ref().or(changed) {
                return Err(format!("at slot {no}, {wrong}"));
            }
            if slot.head.waiting() > 0 {
                return Err(format!("slot {no} has transactions that wait for ever"));
            }
            if let Some((id, entry)) = slot.head.book().iter().next() {
                return Err(format!("slot {no} does not forget {id:?}: {entry:?}"));
            }
            let (peers, origins) = (slot.head.peers(), slot.head.origins());
            if !slot.head.is_idle() || !peers.is_empty() || !origins.is_empty() {
                return Err(format!("slot {no} is not idle: {peers:?}, {origins:?}"));
            }
        }
        self.check_whole()?;
        self.check_told()?;
        // What was read of a lost write has no order.
        if self.has_lost {
            return Ok(());
        }
        if self.bounds.typed {
            return self.check_serial();
        }
        self.check_order()
    }

    fn check_whole(&self) -> Result<(), String> {
        for (id, client) in &self.clients {
            let mut times = BTreeSet::new();
            for slot in client.txn.slots() {
                for part in client.txn.at(*slot) {
                    let key = self.slots[usize::from(*slot)].keys.all.get(&part.key);
                    let done = key.into_iter().flat_map(|key| &key.done);
                    times.insert(done.filter(|done| done.txn == *id).count());
                }
            }
            let applied = match times.iter().copied().collect::<Vec<_>>()[..] {
                [0] => false,
                [1] => true,
                _ => return Err(format!("half of {id:?} is applied, or it twice: {times:?}")),
            };
            let (start, _) = self.origins[usize::from(id.node)];
            match client.ended {
                None if id.start == start => return Err(format!("no outcome of {id:?}")),
                Some((_, Outcome::Aborted)) if applied => {
                    return Err(format!("{id:?} was aborted for its client, and is applied"));
                }
                Some((_, Outcome::Committed)) if !applied && !self.has_lost => {
                    return Err(format!("{id:?} was acknowledged and is lost"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), String> {
        let mut edges = BTreeSet::new();
        let mut applied = BTreeSet::new();
        for slot in &self.slots {
            for key in slot.keys.all.values() {
                applied.extend(key.done.iter().map(|done| done.txn));
                versions(&key.done)?;
                for (at, before) in key.done.iter().enumerate() {
                    let later = key.done[at + 1..].iter();
                    let depend = later.filter(|after| depend(&before.part, &after.part));
                    edges.extend(depend.map(|after| (before.txn, after.txn)));
                }
            }
        }
        if has_cycle(&applied, &edges) {
            return Err("not serializable".into());
        }
        for (before, first) in &self.clients {
            let Some((ended, Outcome::Committed)) = first.ended else {
                continue;
            };
            let later = self.clients.iter().filter(|(_, later)| later.began > ended);
            edges.extend(later.map(|(after, _)| (*before, *after)));
        }
        self.order_requests(&mut applied, &mut edges);
        if has_cycle(&applied, &edges) {
            return Err("not strictly serializable".into());
        }
        Ok(())
    }

    /// Requests are transactions that read one key, as numbers of a node that is none.
    fn order_requests(&self, nodes: &mut BTreeSet<TxnId>, edges: &mut BTreeSet<(TxnId, TxnId)>) {
        let read = [plain(Do::Read)];
        for (number, seen) in (0..).zip(&self.seen) {
            let id = TxnId {
                node: u16::MAX,
                start: 0,
                number,
            };
            nodes.insert(id);
            let key = self.slots[usize::from(seen.slot)].keys.all.get(&seen.key);
            let done = key.map_or(&[][..], |key| &key.done);
            for (at, done) in done.iter().enumerate() {
                let depends = done.part.ops.iter().any(|op| !op.is_independent(&read[0]));
                if depends && at < seen.after {
                    edges.insert((done.txn, id));
                } else if depends {
                    edges.insert((id, done.txn));
                }
            }
            for (other, client) in &self.clients {
                if client.began > seen.ended {
                    edges.insert((id, *other));
                }
                if matches!(client.ended, Some((at, Outcome::Committed)) if at < seen.began) {
                    edges.insert((*other, id));
                }
            }
        }
    }
}

fn depend(a: &Part<Op>, b: &Part<Op>) -> bool {
    a.ops
        .iter()
        .any(|a| b.ops.iter().any(|b| !a.is_independent(b)))
}

/// Each part found the version that it expected.
fn versions(done: &[Done]) -> Result<(), String> {
    let mut last: Option<TxnId> = None;
    for Done { txn, part, .. } in done {
        let expects = part.expects.map(|version| version.map(|stamp| stamp.txn));
        if expects.is_some_and(|expects| expects != last) {
            return Err(format!(
                "{txn:?} has not found the version that it expected"
            ));
        }
        if part.ops.iter().any(Operation::writes) {
            last = Some(*txn);
        }
    }
    Ok(())
}

fn has_cycle(nodes: &BTreeSet<TxnId>, edges: &BTreeSet<(TxnId, TxnId)>) -> bool {
    let mut open: BTreeMap<TxnId, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    let within = |(a, b): &&(TxnId, TxnId)| nodes.contains(a) && nodes.contains(b);
    for (_, to) in edges.iter().filter(within) {
        *open.entry(*to).or_default() += 1;
    }
    let free = open.iter().filter(|(_, count)| **count == 0);
    let mut free: Vec<TxnId> = free.map(|(node, _)| *node).collect();
    let mut seen = 0;
    while let Some(node) = free.pop() {
        seen += 1;
        for (_, to) in edges.iter().filter(|edge| edge.0 == node).filter(within) {
            let count = open.entry(*to).or_default();
            *count -= 1;
            if *count == 0 {
                free.push(*to);
            }
        }
    }
    seen < nodes.len()
}
