//! What workers report of this node's health, for its announcement: the nodes that they hear, logs
//! that cannot be written, lattice keys that are not served, and slots that are not. And which
//! workers report nothing any more.

use crate::standing::Standing;
use rufous_base::limits::LEASE_US;
use rufous_mapping::planner::Health;
use rufous_mapping::{Mapping, NodeId, NodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A slot that its head does not serve for this long is announced as one that is not served: a lease
/// of an earlier chain has run out by then.
const UNSERVED_US: u64 = LEASE_US;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Board(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    /// By worker.
    hears: BTreeMap<u16, BTreeSet<NodeNo>>,
    ails: BTreeMap<u16, String>,
    /// Why no lattice key is served, by worker; present once the worker has reported.
    waits: BTreeMap<u16, Option<String>>,
    /// Workers that serve lattice keys.
    serves: BTreeSet<u16>,
    /// Members that announce that they do.
    serving: BTreeSet<NodeNo>,
    /// Nodes whose process has ended, with the start that had it.
    gone: BTreeMap<NodeNo, u64>,
    /// By worker.
    unserved: BTreeMap<u16, Unserved>,
    /// Members that cannot take writes, as they announce, and why.
    ailing: BTreeMap<NodeNo, String>,
    standing: Standing,
}

/// Slots of which this node is the head and that a worker does not serve.
#[derive(Debug)]
struct Unserved {
    since_us: u64,
    slots: usize,
    lasts: bool,
}

impl Board {
    /// The nodes that a worker has heard lately on its sessions.
    pub(crate) fn hears(&self, worker: u16, nodes: BTreeSet<NodeNo>) {
        self.lock().hears.insert(worker, nodes);
    }

    /// This start of a node has ended: it had a session, and no process listens at its address.
    pub(crate) fn gone(&self, no: NodeNo, incarnation: u64) {
        self.lock().gone.insert(no, incarnation);
    }

    /// A session with a node has begun.
    pub(crate) fn begins(&self, no: NodeNo) {
        self.lock().gone.remove(&no);
    }

    /// Nodes whose process has ended, with the start that had it, as far as this node knows.
    pub fn ended(&self) -> BTreeMap<NodeNo, u64> {
        self.lock().gone.clone()
    }

    /// A worker takes turns: it tells so at every tick.
    pub fn turns(&self, worker: u16) {
        self.lock().standing.on_turn(worker);
    }

    /// Looks for workers that take none. The thread that announces the node's health calls this all
    /// the time, by its own clock.
    pub fn look(&self, now_us: u64) {
        self.lock().standing.on_look(now_us);
    }

    /// How often a worker has begun to stand still.
    pub fn stood_still(&self) -> u64 {
        self.lock().standing.times()
    }

    /// Why a worker cannot take writes, if it cannot.
    pub fn ails(&self, worker: u16, why: Option<String>) {
        let mut reported = self.lock();
        match why {
            Some(why) => reported.ails.insert(worker, why),
            None => reported.ails.remove(&worker),
        };
    }

    /// Why a worker serves no lattice key, if there are lattice keyspaces and it serves none.
    pub fn waits(&self, worker: u16, why: Option<String>) {
        self.lock().waits.insert(worker, why);
    }

    /// Whether a worker serves lattice keys. It does once all workers have received the state of other
    /// nodes, and their logs have it.
    pub fn serves(&self, worker: u16, serves: bool) {
        let mut reported = self.lock();
        if serves {
            reported.serves.insert(worker);
        } else {
            reported.serves.remove(&worker);
        }
    }

    /// The members that announce that they serve lattice keys.
    pub fn set_serving(&self, nodes: BTreeSet<NodeNo>) {
        self.lock().serving = nodes;
    }

    /// See [`Board::set_serving`].
    pub fn serving(&self) -> BTreeSet<NodeNo> {
        self.lock().serving.clone()
    }

    /// How many slots a worker does not serve of which this node is the head. It counts once it lasts.
    pub fn unserved(&self, worker: u16, now_us: u64, slots: usize) {
        let mut reported = self.lock();
        if slots == 0 {
            reported.unserved.remove(&worker);
            return;
        }
        let unserved = reported.unserved.entry(worker).or_insert(Unserved {
            since_us: now_us,
            slots,
            lasts: false,
        });
        unserved.slots = slots;
        unserved.lasts = now_us.saturating_sub(unserved.since_us) >= UNSERVED_US;
    }

    /// What nodes have announced of their health.
    pub fn hear(&self, mapping: &Mapping, announced: &BTreeMap<NodeId, Health>) {
        let members = mapping.members.iter();
        let ailing = members.filter_map(|(no, member)| {
            let why = announced.get(&member.id)?.ails.clone()?;
            Some((*no, why))
        });
        self.lock().ailing = ailing.collect();
    }

    /// The members that cannot take writes, and why.
    pub fn ailing(&self) -> BTreeMap<NodeNo, String> {
        self.lock().ailing.clone()
    }

    /// What all workers have reported last.
    pub fn known(&self) -> Health {
        let reported = self.lock();
        let ails = reported.ails.iter().next();
        let ails = ails.map(|(worker, why)| (*worker, why.as_str()));
        let ails = ails.or_else(|| reported.standing.ails());
        let hears = reported.hears.values().flatten();
        Health {
            ails: ails.map(|(worker, why)| format!("worker {worker}: {why}")),
            hears: Some(hears.copied().collect()),
            waits: why_it_waits(&reported.waits),
            unserved: {
                let lasting = reported.unserved.values().filter(|of| of.lasts);
                lasting.map(|of| of.slots).sum()
            },
            serves: !reported.serves.is_empty(),
        }
    }

    /// No holder of the lock panics, and the data would be valid even then.
    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the workers wait for that serve no lattice keys; by worker where it is not the same.
fn why_it_waits(waits: &BTreeMap<u16, Option<String>>) -> Option<String> {
    if waits.is_empty() {
        return Some("its workers have yet to begin".to_owned());
    }
    let all = waits.iter();
    let all: Vec<(&u16, &String)> = all
        .filter_map(|(worker, why)| why.as_ref().map(|why| (worker, why)))
        .collect();
    let (_, first) = all.first()?;
    if all.iter().all(|(_, why)| why == first) {
        return Some((*first).clone());
    }
    let all = all
        .iter()
        .map(|(worker, why)| format!("worker {worker} {why}"));
    Some(all.collect::<Vec<String>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_are_not_served_count_once_that_lasts() {
        let board = Board::default();
        board.unserved(0, 10, 5);
        board.unserved(1, 10, 2);
        assert_eq!(board.known().unserved, 0);
        board.unserved(0, 10 + UNSERVED_US, 4);
        assert_eq!(board.known().unserved, 4);
        board.unserved(0, 11 + UNSERVED_US, 0);
        board.unserved(1, 11 + UNSERVED_US, 1);
        assert_eq!(board.known().unserved, 1);
        // It begins again.
        board.unserved(0, 12 + UNSERVED_US, 9);
        assert_eq!(board.known().unserved, 1);
    }

    #[test]
    fn a_worker_that_takes_no_turns_is_a_reason() {
        let board = Board::default();
        let look = |from: u64, turn: &[u16]| {
            for n in from..from + 10 {
                turn.iter().for_each(|worker| board.turns(*worker));
                board.look(n * 250_000);
            }
            board.known().ails
        };
        assert_eq!(look(0, &[0, 1]), None);
        let ails = look(10, &[0]).expect("a reason");
        assert!(ails.starts_with("worker 1: it stands still"), "{ails}");
        // What a worker says itself comes first.
        board.ails(1, Some("no space".into()));
        assert_eq!(board.known().ails.as_deref(), Some("worker 1: no space"));
        board.ails(1, None);
        look(20, &[0, 1]);
        look(30, &[0, 1]);
        assert_eq!(look(40, &[0, 1]), None);
        assert_eq!(board.stood_still(), 1);
    }

    #[test]
    fn a_reason_stays_until_every_worker_serves_lattice_keys() {
        let board = Board::default();
        assert!(board.known().waits.is_some(), "no worker has begun");
        board.waits(0, None);
        board.waits(1, Some("waits".into()));
        assert_eq!(board.known().waits.as_deref(), Some("waits"));
        board.waits(0, Some("is ready".into()));
        let both = "worker 0 is ready; worker 1 waits";
        assert_eq!(board.known().waits.as_deref(), Some(both));
        board.waits(0, None);
        board.waits(1, None);
        assert_eq!(board.known().waits, None);
        // There may be no lattice keyspaces.
        assert!(!board.known().serves);
        board.serves(0, false);
        board.serves(1, true);
        assert!(board.known().serves);
        // The node has another number now, and waits again.
        board.serves(1, false);
        assert!(!board.known().serves);
    }
}
