//! What a mapping of many nodes is and costs: the real planner lets a cluster grow, one more node
//! joins it, and a worker takes up what is agreed on.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rufous_chain::{Message, Replica, Store};
use rufous_mapping::planner::{self, Learned, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use rufous_wire::mapping::{decode, encode};

use crate::drive::thread_cpu_ns;

const COPIES: usize = 2;
/// Epochs in which a cluster is at rest, at the latest.
const MOST_EPOCHS: usize = 10_000;
/// As nodes have them.
const LEASE_US: u64 = 1_000_000;

/// One cluster, and one more node.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Mapped {
    pub bytes: usize,
    /// Milliseconds of CPU time: to decode a mapping, to check it against the one before and to act
    /// by it, at a node with one worker; to plan the next epoch, at the one node that does.
    pub take_up_ms: f64,
    pub plan_ms: f64,
    /// What one more node takes.
    pub epochs_of_join: usize,
    /// Nodes that have a slot together with one of them, and so grant leases to it.
    pub peers: usize,
    /// Leases that are asked for in a second.
    pub asks_s: f64,
}

/// Keeps nothing: slots are empty.
struct Nothing;

impl Store for Nothing {
    fn apply(&mut self, _: u16, _: &[u8]) {}
    fn clear(&mut self, _: u16) -> bool {
        true
    }
    fn begin_copy(&mut self, _: u16) {}
    fn end_copy(&mut self, _: u16) {}
    fn note(&mut self, _: u16, _: &[u8]) {}
    fn copy(&mut self, _: u16) -> Option<Vec<u8>> {
        None
    }
    fn load(&mut self, _: u16, _: &[u8]) {}
}

fn member(n: usize) -> Member {
    let mut id = [0; 20];
    id[..8].copy_from_slice(&(n as u64 + 1).to_le_bytes());
    Member {
        id: NodeId(id),
        incarnation: 1,
        peer: format!("10.0.{}.{}:16379", n / 250, n % 250 + 1),
        plain: format!("10.0.{}.{}:6379", n / 250, n % 250 + 1),
        cluster: format!("10.0.{}.{}:7379", n / 250, n % 250 + 1),
        zone: format!("zone-{}", n % 3),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

/// Learners have all, and who is to leave may, as soon as it is asked.
fn learned(mapping: &Mapping) -> Learned {
    let mut learned = Learned::default();
    for (slots, chain) in mapping.chains.ranges() {
        let last = chain.members.last().copied();
        for no in chain.learner.into_iter().chain(last) {
            learned.add(slots.clone(), no, chain.since);
        }
    }
    learned
}

/// Plans until nothing is left to be planned. How many epochs that took, and CPU time for each.
fn settle(mapping: &mut Mapping, alive: &BTreeMap<NodeId, Member>) -> Result<(usize, f64)> {
    let (mut epochs, mut planning) = (0, 0.0);
    loop {
        let seen = Seen {
            alive: alive.clone(),
            learned: learned(mapping),
            ..Seen::default()
        };
        let before = thread_cpu_ns();
        let next = planner::next(mapping, &seen, &Limits::default());
        planning += thread_cpu_ns() - before;
        match next {
            Some(next) => *mapping = next,
            None => return Ok((epochs, planning / 1e6 / (epochs + 1) as f64)),
        }
        epochs += 1;
        ensure!(epochs < MOST_EPOCHS, "the planner finds no end");
    }
}

/// Of a cluster of so many nodes.
pub(crate) fn measure(nodes: usize) -> Result<Mapped> {
    let mut alive: BTreeMap<_, _> = (0..nodes).map(member).map(|one| (one.id, one)).collect();
    let mut mapping = Mapping::new(COPIES);
    settle(&mut mapping, &alive)?;
    let bytes = encode(&mapping).len();
    let first = NodeNo(0);
    let mut replica = Replica::new(first, 0, 1, 1, LEASE_US, None);
    let taken = replica.take_up(&Arc::new(mapping.clone()), &mut Nothing, 1);
    ensure!(taken.is_ok(), "a mapping that is sound: {taken:?}");
    let (peers, asks_s) = asks(&mut replica);

    let one = member(nodes);
    alive.insert(one.id, one);
    let (mut epochs, mut planning, mut taking) = (0, 0.0, 0.0);
    // As `settle`, and somebody acts by each.
    loop {
        let seen = Seen {
            alive: alive.clone(),
            learned: learned(&mapping),
            ..Seen::default()
        };
        let before = thread_cpu_ns();
        let Some(next) = planner::next(&mapping, &seen, &Limits::default()) else {
            break;
        };
        planning += thread_cpu_ns() - before;
        let said = encode(&next);
        let before = thread_cpu_ns();
        let heard = decode(&said).ok().context("what was encoded")?;
        let done = replica.take_up(&Arc::new(heard), &mut Nothing, 2 + epochs as u64);
        taking += thread_cpu_ns() - before;
        ensure!(done == Ok(true), "an epoch is taken up: {done:?}");
        black_box(replica.take_messages());
        mapping = next;
        epochs += 1;
        ensure!(epochs < MOST_EPOCHS, "the planner finds no end");
    }
    let each = |ns: f64| ns / 1e6 / epochs.max(1) as f64;
    Ok(Mapped {
        bytes,
        take_up_ms: each(taking),
        plan_ms: each(planning),
        epochs_of_join: epochs,
        peers,
        asks_s,
    })
}

/// Whom a worker asks for leases, and how often in a second.
fn asks(replica: &mut Replica) -> (usize, f64) {
    const SECONDS: u64 = 10;
    replica.take_messages();
    let (mut asked, mut peers) = (0, std::collections::BTreeSet::new());
    let mut now = 1;
    while now < SECONDS * 1_000_000 {
        now = now.max(replica.wake_at());
        replica.tick(now);
        for (to, envelope) in replica.take_messages() {
            if matches!(envelope.message, Message::Ask { .. }) {
                asked += 1;
                peers.insert(to);
            }
        }
        now += 1_000;
    }
    (peers.len(), asked as f64 / SECONDS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_grows_and_one_more_comes() {
        let of = measure(5).expect("a cluster");
        // One of the others is in its zone.
        assert_eq!(of.peers, 3, "copies of a slot are in two zones");
        assert!(of.asks_s > 3.0 && of.epochs_of_join > 2);
        assert!(of.bytes > 1_000 && of.bytes < 1 << 20);
    }
}
