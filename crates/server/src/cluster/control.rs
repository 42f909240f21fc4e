//! The control thread: observes the coordinator, has [`rufous_cluster::control`] decide, and
//! carries out the actions.
//!
//! No request waits for this thread.

use super::PeerMessage;
use super::state::Cluster;
use super::status::Alive;
use crate::front::Message;
use rufous::runtime::{Handle, Teller, Untold};
use rufous_base::WorkerId;
use rufous_base::limits::EPOCHS_APART_US;
use rufous_cluster::control::{
    Action, Continues, Control, Data, Halted, Outcome, Settings, Stored, View, announced,
};
use rufous_coordinator as coordinator;
use rufous_coordinator::{Coordinator, Proposed};
use rufous_kernel::replicate::member::MOST_NODES;
use rufous_mapping::planner::{Limits, Loss};
use rufous_mapping::{Mapping, NodeId, NodeNo, Phase, Was};
use rufous_wire::mapping::{decode_health, encode, encode_announcement};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time between two decisions: some depend on time alone.
const PERIOD: Duration = Duration::from_millis(250);

/// By then all workers have reported for the first time.
const BEGUN: Duration = Duration::from_secs(1);

/// Observes and acts for one node.
struct Hands<C> {
    coordinator: C,
    cluster: Arc<Cluster>,
    teller: Teller<Message>,
    control: Control,
    /// The origin of the time that the control sees.
    began: Instant,
    /// Why no lattice key is served, as it was last logged.
    waits: Option<String>,
    /// The members whose folders are behind, with their starts, as they were last logged.
    behind: BTreeSet<(NodeNo, u64)>,
    /// A member that leaves by the next proposal, as it was away for too long.
    outstayed: Option<NodeNo>,
}

/// Follows the coordinator until the node stops, then leaves it.
pub async fn serve<C: Coordinator>(
    node: Handle,
    coordinator: C,
    cluster: Arc<Cluster>,
    teller: Teller<Message>,
) {
    let settings = Settings {
        me: NodeId(cluster.common.local.id),
        incarnation: cluster.common.local.incarnation,
        copies: cluster.settings.copies,
        workers: teller.workers(),
        apart_us: EPOCHS_APART_US,
        limits: Limits {
            absence_ms: cluster.settings.absence_ms(),
            ..Limits::default()
        },
        kept: cluster.kept.clone(),
    };
    let mut hands = Hands {
        control: Control::new(settings),
        coordinator,
        cluster,
        teller,
        began: Instant::now(),
        waits: None,
        behind: BTreeSet::new(),
        outstayed: None,
    };
    tokio::select! {
        why = hands.run() => {
            tracing::error!("{why}");
            let _first = hands.cluster.may_not.set(why);
            node.stop();
        }
        // Earlier, others would end their sessions with this node while clients still wait.
        () = node.is_left() => {}
    }
    hands.coordinator.leave().await;
    hands.cluster.on_left();
}

impl<C: Coordinator> Hands<C> {
    /// Returns why the node has to stop.
    async fn run(&mut self) -> String {
        let mut news = self.coordinator.view();
        let woken = Arc::clone(&self.cluster);
        loop {
            let view = news.borrow_and_update().clone();
            let observed = self.observe(&view);
            self.show_view(&observed, view.members.len());
            let actions = self.control.decide(self.now_us(), &observed);
            let serving = self.control.serving(&observed);
            self.cluster.common.health.set_serving(serving);
            self.look_at_health();
            self.show(&view);
            for action in actions {
                if let Err(why) = self.act(action).await {
                    return why;
                }
            }
            self.announce().await;
            // A coordinator without a sender has ended: the last view remains.
            let changed = tokio::select! {
                changed = tokio::time::timeout(PERIOD, news.changed()) => changed,
                () = woken.reported.notified() => continue,
            };
            if matches!(changed, Ok(Err(_))) {
                tokio::time::sleep(PERIOD).await;
            }
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn observe<'a>(&self, view: &'a coordinator::View) -> View<'a> {
        let me = NodeId(self.cluster.common.local.id);
        let own = self.control.mapping();
        let own = own.and_then(|mapping| mapping.number_of(me));
        let health = view.members.values();
        let health = health.map(|node| (node.id, decode_health(&node.about)));
        let alive = view.members.values().filter_map(|node| {
            let member = announced(node.id, node.incarnation, &node.about)?;
            Some((node.id, member))
        });
        View {
            is_current: view.is_current,
            is_member: view.is_member,
            leader: view.leader,
            ended: self.cluster.common.health.ended(),
            stored: view.state.as_ref().map(|state| Stored {
                epoch: state.epoch,
                mapping: &state.mapping,
            }),
            behind: view.behind,
            alive: alive.collect(),
            health: health.collect(),
            removed: BTreeSet::new(),
            forgets: self.cluster.about.forgets(),
            data: match self.cluster.unclaimed {
                Some(ref data) if data.is_of_lost_mapping() => Data::OfLostMapping,
                Some(_) => Data::Unclaimed,
                None => Data::Claimed,
            },
            learned: self.cluster.common.reports.known(),
            held: self.cluster.common.reports.held(own),
        }
    }

    fn show_view(&self, view: &View<'_>, alive: usize) {
        let me = NodeId(self.cluster.common.local.id);
        let leads = self.control.leader(view) == Some(me) && view.is_current && view.is_member;
        let is_leader = leads && !self.cluster.shown.seen().went_back;
        let (is_current, is_member) = (view.is_current, view.is_member);
        let shown = &self.cluster.shown;
        shown.set_view(is_current, is_member, is_leader, alive);
    }

    /// Returns why the node has to stop, if it has to.
    async fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Stop => {
                let unclaimed = self.cluster.unclaimed.as_ref();
                return Err(unclaimed.map_or_else(String::new, |unclaimed| unclaimed.refusal()));
            }
            Action::Claim => {
                if let Some(Err(error)) = self.cluster.unclaimed.as_ref().map(|data| data.claim()) {
                    return Err(format!(
                        "cannot note that the data is the cluster's: {error}"
                    ));
                }
            }
            Action::Adopted { mapping, numbered } => {
                self.cluster.shown.set_mapping(&mapping);
                log_adopted(&mapping, numbered);
                self.look_at_folders(&mapping);
                self.cluster.keeping.keep_later(mapping);
            }
            Action::WentBack { found, known } => {
                tracing::error!(
                    found,
                    known,
                    "the coordinator was restored to an earlier mapping: the node refuses it and continues with the last known one; membership cannot change until the coordinator has that one again, see docs/operations/coordinator.md"
                );
                self.set_behind(true);
            }
            Action::CaughtUp { epoch } => {
                tracing::info!(epoch, "the coordinator has the last known mapping again");
                self.set_behind(false);
            }
            Action::Refused { epoch, why } => {
                self.cluster.shown.note_refused();
                tracing::error!(
                    epoch,
                    why,
                    "the coordinator has a mapping that is not valid"
                );
            }
            Action::Tell { worker, mapping } => self.tell(worker, mapping),
            Action::Report { to } => self.report(to),
            Action::ForgetReports => self.cluster.common.reports.forget_others(),
            Action::Unfit { before, now } => log_unfit(&before, &now),
            Action::Forgotten { id, kept } => {
                self.cluster.about.has_forgotten(id);
                match kept {
                    Some(why) => tracing::warn!(%id, why, "cannot remove a member"),
                    None => {
                        tracing::info!(%id, "the member leaves the cluster, as an operator wants")
                    }
                }
            }
            Action::Outstayed { no, id } => {
                self.outstayed = Some(no);
                let after_s = self.cluster.settings.forget_after_s;
                tracing::warn!(
                    node = %no, %id, after_s,
                    "the node was away for longer than cluster-forget-after: it leaves the cluster. If it is started again it joins as a \
                     new node, and copies all data from the others"
                );
            }
            Action::Halted(halted) => log_halted(&halted),
            Action::Propose {
                expected,
                next,
                continues,
            } => self.propose(expected, &next, &continues).await,
        }
        Ok(())
    }

    /// Logs which data folders are not those that their nodes had.
    fn look_at_folders(&mut self, mapping: &Mapping) {
        let members = mapping.members.iter();
        let behind = members.filter_map(|(no, member)| Some((no, member, member.folder.was()?)));
        let behind: Vec<_> = behind.collect();
        for (no, member, was) in &behind {
            if self.behind.contains(&(**no, member.incarnation)) {
                continue;
            }
            let what = match was {
                Was::Empty => "was empty",
                Was::Past => "was restored from an earlier state, or cloned",
            };
            tracing::error!(
                node = %no, id = %member.id,
                "the data folder of the node {what}: a later start of the node is known. Its copies of strict slots are not \
                 used where another node has one; it copies them from the others"
            );
        }
        let starts = behind
            .iter()
            .map(|(no, member, _)| (**no, member.incarnation));
        self.behind = starts.collect();
        let me = NodeId(self.cluster.common.local.id);
        let own = mapping.members.values().find(|member| member.id == me);
        if own.is_some_and(|own| own.incarnation == self.cluster.common.local.incarnation) {
            self.cluster.forget_restored();
        }
    }

    fn set_behind(&self, is_behind: bool) {
        self.cluster.shown.set_went_back(is_behind);
        self.cluster.about.set_went_back(is_behind);
        self.cluster.keeping.set_behind_later(is_behind);
    }

    fn tell(&mut self, worker: usize, mapping: Arc<Mapping>) {
        let epoch = mapping.epoch;
        let message = Message::Peer(PeerMessage::Mapping(mapping));
        match self.teller.tell(WorkerId(worker as u16), message) {
            Ok(()) | Err(Untold::Gone(_)) => self.control.on_told(worker, epoch),
            // It is retried at the next decision.
            Err(Untold::Full(_)) => {}
        }
    }

    fn report(&self, to: NodeNo) {
        let learned = self.cluster.common.reports.own();
        if !learned.all.is_empty() || !learned.held.is_empty() {
            let message = Message::Peer(PeerMessage::Report { to, learned });
            // If it fails, it is retried at the next decision.
            let _ = self.teller.tell(WorkerId(0), message);
        }
    }

    async fn propose(&mut self, expected: u64, next: &Mapping, continues: &Continues) {
        let epoch = next.epoch;
        let outstayed = self.outstayed.take().is_some();
        let outcome = match self.coordinator.propose(expected, encode(next)).await {
            Ok(Proposed::Taken) => {
                self.cluster.shown.note_proposed();
                tracing::info!(epoch, "proposed a mapping");
                self.cluster.shown.note_lossy(continues.lossy());
                self.cluster.shown.note_outstayed(outstayed);
                log_continues(continues);
                Outcome::Taken
            }
            Ok(Proposed::Behind(_) | Proposed::NotAlive) => Outcome::Passed,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        if let Some(error) = self.control.on_proposed(self.now_us(), outcome) {
            tracing::warn!(epoch, error, "cannot propose a mapping");
        }
    }

    /// Shows operators the state of the cluster.
    fn show(&self, view: &coordinator::View) {
        if let Some(mapping) = self.control.mapping() {
            let alive = view.members.values();
            let about = |node: &coordinator::Member| (node.incarnation, decode_health(&node.about));
            let alive: Alive = alive.map(|node| (node.id, about(node))).collect();
            let announced = alive.iter();
            let announced = announced.map(|(id, (_, health))| (*id, health.clone()));
            let health = &self.cluster.common.health;
            health.hear(mapping, &announced.collect());
            self.cluster.about.see(mapping, alive, view.is_current);
        }
    }

    /// Takes what the workers report.
    fn look_at_health(&mut self) {
        let board = &self.cluster.common.health;
        board.look(self.now_us());
        let health = board.known();
        let heard = health.hears.as_ref().map_or(0, BTreeSet::len);
        let shown = &self.cluster.shown;
        shown.set_health(health.ails.is_some(), heard, board.stood_still());
        if health.waits != self.waits {
            self.waits.clone_from(&health.waits);
            match &self.waits {
                Some(why) => tracing::warn!(why, "lattice keys are not served"),
                None => tracing::info!("lattice keys are served"),
            }
        }
        // Without a reason, all lattice keys are served, or there are none.
        let is_begun = self.began.elapsed() > BEGUN;
        let is_served = health.serves || is_begun && health.waits.is_none();
        let is_whole = is_served && self.has_no_copy_that_waits();
        if let Some(run) = self.cluster.run.as_ref().filter(|_| is_whole) {
            run.is_whole_later();
        }
        self.cluster.about.set_health(health);
    }

    /// Whether this start has dealt with every slot of which the node had a copy: until then its files
    /// may lack writes of theirs.
    fn has_no_copy_that_waits(&self) -> bool {
        let local = &self.cluster.common.local;
        let (me, mapping) = (NodeId(local.id), self.control.mapping());
        let own = mapping.and_then(|mapping| mapping.number_of(me));
        let Some((mapping, own)) = mapping.zip(own) else {
            return false;
        };
        let is_known = mapping.members[&own].incarnation == local.incarnation;
        let mut chains = mapping.chains.ranges().map(|(_, chain)| chain);
        is_known
            && !chains
                .any(|chain| chain.phase != Phase::Acts && chain.holders().any(|no| no == own))
    }

    /// Announces changes of this node, until the coordinator has them.
    async fn announce(&self) {
        let about = &self.cluster.about;
        let Some((member, health)) = about.news() else {
            return;
        };
        let announcement = encode_announcement(&member, &health);
        match self.coordinator.announce(announcement).await {
            Ok(()) => about.was_said(&(member, health)),
            Err(error) => tracing::debug!(%error, "cannot announce a change; trying again"),
        }
    }
}

fn log_unfit(before: &BTreeMap<NodeNo, String>, now: &BTreeMap<NodeNo, String>) {
    for (no, why) in now.iter().filter(|(no, _)| !before.contains_key(no)) {
        tracing::warn!(node = %no, why, "other nodes replace this one, which is alive");
    }
    for no in before.keys().filter(|no| !now.contains_key(no)) {
        tracing::info!(node = %no, "the node takes part again");
    }
}

fn log_halted(halted: &Halted) {
    for (node, slots) in &halted.wait_for {
        tracing::warn!(
            %node, slots,
            "all copies of slots have stopped, and this node has not reported its copies yet. If it does not come back, \
             remove it with rufous cluster forget, or restart the other nodes with cluster-accept-loss yes"
        );
    }
    if halted.without_copy > 0 {
        tracing::error!(
            slots = halted.without_copy,
            "no node has a copy of slots that may continue: data folders were emptied, exchanged, or restored from an earlier \
             state. Start the nodes with the folders that they had; to continue with what is left, restart them with \
             cluster-accept-loss yes"
        );
    }
}

fn log_continues(continues: &Continues) {
    for ((loss, node), slots) in &continues.at {
        let why = match loss {
            Loss::None => {
                tracing::info!(%node, slots, "all copies of slots had stopped; the best one continues");
                continue;
            }
            Loss::Earlier => "the best copy is of an earlier epoch than the last one",
            Loss::Unsynced => "no node is certain that its files have the last writes",
            Loss::Past => {
                "the only copies are in folders from the past, or cluster-accept-loss is set"
            }
            Loss::Empty => "no copy is left, and they continue empty",
        };
        tracing::error!(
            %node, slots, why,
            "all copies of slots had stopped, and acknowledged writes may be lost in those that continue"
        );
    }
}

fn log_adopted(mapping: &Mapping, numbered: Option<NodeNo>) {
    let members = mapping.members.len();
    tracing::info!(epoch = mapping.epoch, members, "applying a mapping");
    if let Some(own) = numbered.filter(|own| usize::from(own.0) >= MOST_NODES) {
        tracing::error!(
            %own,
            "the cluster has given numbers to {MOST_NODES} nodes already: this one serves no lattice keyspaces"
        );
    }
}
