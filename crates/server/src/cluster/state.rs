//! The cluster state that all threads of a node share.

use super::about::About;
use super::kept::Keeping;
use super::past::Run;
use super::settings::Settings;
use super::unclaimed::Unclaimed;
use rufous_base::limits::LEASE_US;
use rufous_cluster::common::Common;
use rufous_cluster::control::Kept;
use rufous_kernel::worker::{ChainSettings, Past};
use rufous_mapping::Mapping;
use rufous_wire::Local;
use rufous_wire::proof::Auth;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Fixed for the life of a node, apart from what the control thread updates.
#[derive(Debug)]
pub struct Cluster {
    pub settings: Settings,
    pub common: Arc<Common>,
    pub shown: Shown,
    /// Set if the node has data that belongs to no cluster yet.
    pub unclaimed: Option<Unclaimed>,
    /// The node has never run: it has granted no lease.
    pub is_new: bool,
    pub about: About,
    /// Whether the files have everything that earlier starts have sent to other nodes.
    pub past: Past,
    /// The record of this start in the data folder, for the next one.
    pub run: Option<Arc<Run>>,
    /// Why the node cannot be a member of the cluster.
    pub may_not: OnceLock<String>,
    /// The node stops and has left the coordinator: others replace it, and the mapping that it acts by
    /// is its last one.
    left: AtomicBool,
    /// What workers or other nodes have reported of copies has changed.
    pub reported: Notify,
    /// The last start before this one with the same folder; `None` without a folder.
    pub(super) after: Option<u64>,
    /// The note of a restored save in the folder.
    pub(super) restored: Option<PathBuf>,
    pub(super) keeping: Arc<Keeping>,
    pub(super) kept: Kept,
}

/// What the control thread publishes for monitoring.
#[derive(Debug, Default)]
pub struct Shown {
    /// Whether the coordinator is reachable and counts this node as alive.
    is_current: AtomicBool,
    is_member: AtomicBool,
    is_leader: AtomicBool,
    /// Nodes that the coordinator counts as alive.
    alive: AtomicU64,
    /// Epochs proposed by this node that took effect.
    proposed: AtomicU64,
    /// Mappings of the coordinator that were refused.
    refused: AtomicU64,
    /// Whether the coordinator has lost mappings that the node knows.
    went_back: AtomicBool,
    /// Slots whose chains are halted in the mapping in force.
    halted: AtomicU64,
    /// Members whose data folders are not those that they had.
    behind: AtomicU64,
    /// Slots that continued, by proposals of this node, without writes that may have been
    /// acknowledged.
    lossy: AtomicU64,
    /// Members that left by proposals of this node, as they were away for too long.
    outstayed: AtomicU64,
    /// Whether this node announces that it cannot take writes.
    ails: AtomicBool,
    /// How often a worker has begun to stand still.
    stood_still: AtomicU64,
    /// Members that it hears.
    heard: AtomicU64,
}

/// A copy of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub is_current: bool,
    pub is_member: bool,
    pub is_leader: bool,
    pub alive: u64,
    pub proposed: u64,
    pub refused: u64,
    pub went_back: bool,
    pub halted: u64,
    pub behind: u64,
    pub lossy: u64,
    pub outstayed: u64,
    pub ails: bool,
    pub stood_still: u64,
    pub heard: u64,
}

impl Cluster {
    pub fn new(settings: Settings, local: Local) -> Self {
        Self::guarded(settings, local, None)
    }

    /// The same of a node that may have a secret.
    pub fn guarded(settings: Settings, local: Local, auth: Option<Auth>) -> Self {
        let mut common = Common::new(local);
        common.auth = auth;
        common.is_for = settings.tls.is_some().then_some(crate::tls::is_for);
        Self {
            settings,
            common: Arc::new(common),
            shown: Shown::default(),
            unclaimed: None,
            is_new: false,
            about: About::default(),
            past: Past::Unknown,
            run: None,
            may_not: OnceLock::new(),
            left: AtomicBool::new(false),
            reported: Notify::new(),
            after: None,
            restored: None,
            keeping: Arc::default(),
            kept: Kept::default(),
        }
    }

    /// The node has left the coordinator.
    pub fn on_left(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

impl Cluster {
    /// The settings that workers need for chains.
    pub fn chains(&self) -> ChainSettings {
        let incarnation = self.common.local.incarnation;
        ChainSettings {
            incarnation,
            lease_us: LEASE_US,
            has_run: incarnation > 1 && !self.is_new,
            move_rate: self.settings.move_rate,
            past: self.past,
        }
    }
}

impl Cluster {
    /// The cluster knows of this start and of its folder: the note has done its part.
    pub(super) fn forget_restored(&self) {
        let Some(path) = &self.restored else {
            return;
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove {}", path.display());
            }
            _ => {}
        }
    }
}

impl Shown {
    pub(super) fn set_view(
        &self,
        is_current: bool,
        is_member: bool,
        is_leader: bool,
        alive: usize,
    ) {
        self.is_current.store(is_current, Ordering::Relaxed);
        self.is_member.store(is_member, Ordering::Relaxed);
        self.is_leader.store(is_leader, Ordering::Relaxed);
        self.alive.store(alive as u64, Ordering::Relaxed);
    }

    pub(super) fn set_health(&self, ails: bool, heard: usize, stood_still: u64) {
        self.ails.store(ails, Ordering::Relaxed);
        self.stood_still.store(stood_still, Ordering::Relaxed);
        self.heard.store(heard as u64, Ordering::Relaxed);
    }

    pub(super) fn note_proposed(&self) {
        self.proposed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_mapping(&self, mapping: &Mapping) {
        let members = mapping.members.values();
        let behind = members.filter(|member| member.folder.was().is_some());
        self.behind.store(behind.count() as u64, Ordering::Relaxed);
        let ranges = mapping.chains.ranges();
        let halted = ranges.filter(|(_, chain)| chain.is_halted());
        let slots: usize = halted.map(|(slots, _)| slots.len()).sum();
        self.halted.store(slots as u64, Ordering::Relaxed);
    }

    pub(super) fn note_lossy(&self, slots: usize) {
        self.lossy.fetch_add(slots as u64, Ordering::Relaxed);
    }

    pub(super) fn note_outstayed(&self, is_one: bool) {
        self.outstayed
            .fetch_add(u64::from(is_one), Ordering::Relaxed);
    }

    pub(super) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_went_back(&self, went_back: bool) {
        self.went_back.store(went_back, Ordering::Relaxed);
    }

    pub fn seen(&self) -> Seen {
        Seen {
            is_current: self.is_current.load(Ordering::Relaxed),
            is_member: self.is_member.load(Ordering::Relaxed),
            is_leader: self.is_leader.load(Ordering::Relaxed),
            alive: self.alive.load(Ordering::Relaxed),
            proposed: self.proposed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            went_back: self.went_back.load(Ordering::Relaxed),
            halted: self.halted.load(Ordering::Relaxed),
            behind: self.behind.load(Ordering::Relaxed),
            lossy: self.lossy.load(Ordering::Relaxed),
            outstayed: self.outstayed.load(Ordering::Relaxed),
            ails: self.ails.load(Ordering::Relaxed),
            stood_still: self.stood_still.load(Ordering::Relaxed),
            heard: self.heard.load(Ordering::Relaxed),
        }
    }
}
