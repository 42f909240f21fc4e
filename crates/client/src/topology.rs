//! The nodes, and which of them to ask.

use crate::command::cmd;
use crate::config::{Addr, Config, ReadFrom};
use crate::connection::Batch;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::shape::Shape;
use crate::slots::{self, SlotMap};
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Nodes that are asked for the map before it is left at what is known.
const ASKED: usize = 3;
/// The map is not asked for more often: a thousand tasks that fail at once ask once.
const APART: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Topology {
    state: Arc<TopologyState>,
}

struct TopologyState {
    config: Arc<Config>,
    map: Mutex<SlotMap>,
    nodes: Mutex<HashMap<Addr, Arc<Node>>>,
    cluster: AtomicBool,
    /// Where there is no cluster: the address of the URL that all requests go to, until it fails.
    door: Mutex<Addr>,
    rng: Mutex<Rng>,
    refreshed: tokio::sync::Mutex<Option<Instant>>,
    refreshes: AtomicU64,
    pushes: Arc<AtomicU64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Topology {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        // Two clients that chose alike would be no harm: any seed will do where there is none.
        let seed = getrandom::u64().unwrap_or(config.seeds.len() as u64);
        let door = config.seeds.first().cloned();
        let state = TopologyState {
            map: Mutex::new(SlotMap::new(&config.seeds)),
            nodes: Mutex::default(),
            cluster: AtomicBool::new(false),
            door: Mutex::new(door.unwrap_or_else(|| Addr::new("localhost", 6379))),
            rng: Mutex::new(Rng::new(seed)),
            refreshed: tokio::sync::Mutex::new(None),
            refreshes: AtomicU64::new(0),
            pushes: Arc::new(AtomicU64::new(0)),
            config,
        };
        Self {
            state: Arc::new(state),
        }
    }

    /// Connects to the first address that answers, and learns whether it is one of a cluster.
    pub(crate) async fn begin(&self) -> Result<()> {
        let mut failed = Error::Config("no address".into());
        for seed in self.state.config.seeds.clone() {
            let node = self.node(&seed);
            match node.shared().await {
                Ok(_) => {
                    self.state
                        .cluster
                        .store(node.is_cluster(), Ordering::Relaxed);
                    *lock(&self.state.door) = seed;
                    self.refresh(&[]).await;
                    return Ok(());
                }
                Err(error @ Error::Connect { .. }) => failed = error,
                Err(error) => return Err(error),
            }
        }
        Err(failed)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.state.cluster.load(Ordering::Relaxed)
    }

    pub(crate) fn known(&self) -> Vec<Addr> {
        lock(&self.state.map).known().iter().cloned().collect()
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.state.refreshes), count(&self.state.pushes))
    }

    /// By lot, in `[0, 1)`.
    pub(crate) fn unit(&self) -> f64 {
        lock(&self.state.rng).unit()
    }

    pub(crate) fn node(&self, addr: &Addr) -> Arc<Node> {
        let mut nodes = lock(&self.state.nodes);
        if let Some(node) = nodes.get(addr) {
            return node.clone();
        }
        let state = &self.state;
        let node = Node::new(addr.clone(), state.config.clone(), state.pushes.clone());
        let node = Arc::new(node);
        // What a redirection named beyond all bounds serves this once and is not kept.
        if nodes.len() < slots::MAX_NODES {
            nodes.insert(addr.clone(), node.clone());
        }
        node
    }

    /// The node to try next, another than `avoid` if there is one that will do.
    pub(crate) fn choose(&self, shape: &Shape<'_>, avoid: &[Addr]) -> Arc<Node> {
        let addr = if self.is_cluster() {
            self.choose_in_cluster(shape, avoid)
        } else {
            self.choose_door(avoid)
        };
        self.node(&addr)
    }

    fn choose_in_cluster(&self, shape: &Shape<'_>, avoid: &[Addr]) -> Addr {
        let replicas = shape.reads && self.state.config.read_from == ReadFrom::AnyReplica;
        let candidates: Vec<Addr> = {
            let map = lock(&self.state.map);
            match shape.key.and_then(|key| map.owners(slot_of(key))) {
                Some(owners) if replicas => {
                    let others = owners.replicas.iter();
                    others.chain([&owners.owner]).cloned().collect()
                }
                Some(owners) => vec![owners.owner.clone()],
                // Any known node can say where to go.
                None => map.known().iter().cloned().collect(),
            }
        };
        let fresh: Vec<&Addr> = candidates.iter().filter(|a| !avoid.contains(a)).collect();
        let drawn = |len: usize| lock(&self.state.rng).below(len as u64) as usize;
        if !fresh.is_empty() {
            return fresh[drawn(fresh.len())].clone();
        }
        match candidates.len() {
            0 => lock(&self.state.door).clone(),
            len => candidates[drawn(len)].clone(),
        }
    }

    /// All go through one door, since what sessions count on holds at one node; the next is taken
    /// when it fails.
    fn choose_door(&self, avoid: &[Addr]) -> Addr {
        let mut door = lock(&self.state.door);
        if avoid.contains(&door) {
            let seeds = &self.state.config.seeds;
            if let Some(next) = seeds.iter().find(|seed| !avoid.contains(seed)) {
                *door = next.clone();
            } else if let Some(at) = seeds.iter().position(|seed| *seed == *door) {
                *door = seeds[(at + 1) % seeds.len()].clone();
            }
        }
        door.clone()
    }

    pub(crate) fn moved(&self, slot: u16, to: &Addr) {
        lock(&self.state.map).moved(slot, to);
        // A node that redirects is in a cluster, even if it was not at connection time.
        self.state.cluster.store(true, Ordering::Relaxed);
    }

    /// Asks `first` for the map, behind the application's back.
    pub(crate) fn refresh_later(&self, first: &Addr) {
        let (topology, first) = (self.clone(), self.node(first));
        tokio::spawn(async move {
            let Ok(mut refreshed) = topology.state.refreshed.try_lock() else {
                return;
            };
            if refreshed.is_none_or(|when| when.elapsed() >= APART) {
                topology.learn_from(&first).await;
                *refreshed = Some(Instant::now());
            }
        });
    }

    /// Asks for the map: any node but `avoid`, until one answers.
    pub(crate) async fn refresh(&self, avoid: &[Addr]) {
        if !self.is_cluster() {
            return;
        }
        let mut refreshed = self.state.refreshed.lock().await;
        if refreshed.is_some_and(|when| when.elapsed() < APART) {
            return;
        }
        let mut known = self.known();
        known.retain(|addr| !avoid.contains(addr));
        for _ in 0..ASKED.min(known.len()) {
            let at = lock(&self.state.rng).below(known.len() as u64) as usize;
            let node = self.node(&known.swap_remove(at));
            if self.learn_from(&node).await {
                break;
            }
        }
        *refreshed = Some(Instant::now());
    }

    async fn learn_from(&self, node: &Arc<Node>) -> bool {
        self.state.refreshes.fetch_add(1, Ordering::Relaxed);
        let Ok(connection) = node.shared().await else {
            return false;
        };
        let deadline = Instant::now() + self.state.config.attempt_timeout;
        let ask = cmd("CLUSTER SLOTS").encoded();
        let Batch { values, failure } = connection.send(ask, 1, deadline).await;
        let ranges = match (values.first(), failure) {
            (Some(reply), None) => slots::read(reply, node.addr()),
            _ => return false,
        };
        if ranges.is_empty() {
            return false;
        }
        let maybe_gone = lock(&self.state.map).learn(&ranges);
        for addr in maybe_gone {
            self.forget_if_dead(&addr);
        }
        true
    }

    /// Forgets a node that is in no complete map and has no living connection. Addresses of the URL stay.
    fn forget_if_dead(&self, addr: &Addr) {
        if self.state.config.seeds.contains(addr) {
            return;
        }
        let mut nodes = lock(&self.state.nodes);
        if nodes.get(addr).is_none_or(|node| !node.is_connected()) {
            nodes.remove(addr);
            lock(&self.state.map).forget(addr);
        }
    }
}
