//! The control thread's part: it follows the coordinator, tells workers every
//! mapping that comes into force, and proposes the next one where this node is
//! the one that plans.
//!
//! Nothing here is waited for by anybody who serves. A mapping is looked at
//! before it is told: who may write to the coordinator could have written
//! anything. Who plans is a hint; of two proposals for one epoch the
//! coordinator takes one.

use super::PeerMessage;
use super::state::Cluster;
use crate::front::Message;
use rufous::runtime::{Handle, Teller, Untold};
use rufous_base::WorkerId;
use rufous_coordinator::{Coordinator, Error, Proposed, State, View};
use rufous_kernel::replicate::member::MOST_NODES;
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use rufous_wire::mapping::{decode, decode_member, encode, encode_member};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked at what no news tells: time that has passed.
const PERIOD: Duration = Duration::from_millis(250);

/// Between two epochs, but where a node has just gone. What learners have is told by node and by worker:
/// an epoch for each would keep all nodes busy with mappings, and those that are behind without leases.
const APART: Duration = Duration::from_millis(200);

/// See the module's description.
pub struct Control<C> {
    coordinator: C,
    cluster: Arc<Cluster>,
    teller: Teller<Message>,
    mapping: Option<Arc<Mapping>>,
    /// The epoch that each worker was told of.
    told: Vec<u64>,
    /// Since when members are not alive.
    away: BTreeMap<NodeNo, Instant>,
    /// Why this node cannot be one of the cluster.
    may_not: Option<String>,
    /// When this node has last proposed one that came into force.
    proposed: Option<Instant>,
    /// What was last said in the log of a mapping or a proposal.
    said: String,
}

/// Follows the coordinator until the node stops, and says goodbye to it then.
pub async fn serve<C: Coordinator>(
    node: Handle,
    coordinator: C,
    cluster: Arc<Cluster>,
    teller: Teller<Message>,
) {
    let mut control = Control::new(coordinator, cluster, teller);
    tokio::select! {
        why = control.run() => {
            tracing::error!("{why}");
            let _first = control.cluster.may_not.set(why);
            node.stop();
        }
        () = node.stopping() => {}
    }
    control.coordinator.leave().await;
}

impl<C: Coordinator> Control<C> {
    fn new(coordinator: C, cluster: Arc<Cluster>, teller: Teller<Message>) -> Self {
        Self {
            told: vec![0; teller.workers()],
            coordinator,
            cluster,
            teller,
            mapping: None,
            away: BTreeMap::new(),
            may_not: None,
            proposed: None,
            said: String::new(),
        }
    }

    /// Goes on until the node may not: says why.
    async fn run(&mut self) -> String {
        let mut news = self.coordinator.view();
        loop {
            let view = news.borrow_and_update().clone();
            self.follow(&view);
            if let Some(why) = self.may_not.take() {
                return why;
            }
            self.look(&view);
            self.tell();
            self.announce().await;
            self.report(&view);
            self.plan(&view).await;
            // A coordinator without a sender has ended: the last view stays.
            let changed = tokio::time::timeout(PERIOD, news.changed()).await;
            if matches!(changed, Ok(Err(_))) {
                tokio::time::sleep(PERIOD).await;
            }
        }
    }

    /// Takes up what is agreed on.
    fn follow(&mut self, view: &View) {
        let me = NodeId(self.cluster.local.id);
        let is_leader = view.leader == Some(me) && view.is_current && view.is_member;
        self.cluster.shown.set_view(
            view.is_current,
            view.is_member,
            is_leader,
            view.members.len(),
        );
        let known = self.mapping.as_ref().map_or(0, |mapping| mapping.epoch);
        let Some(state) = view.state.as_ref().filter(|state| state.epoch > known) else {
            return;
        };
        match judge(state, self.mapping.as_deref()) {
            Ok(mapping) => {
                self.may_not = self.claim(&mapping);
                if self.may_not.is_some() {
                    return;
                }
                let members = mapping.members.len();
                tracing::info!(epoch = mapping.epoch, members, "a mapping comes into force");
                let own = mapping.number_of(me);
                let before = self
                    .mapping
                    .as_ref()
                    .and_then(|before| before.number_of(me));
                if let Some(own) =
                    own.filter(|own| usize::from(own.0) >= MOST_NODES && before != Some(*own))
                {
                    tracing::error!(
                        %own,
                        "the cluster has given numbers to {MOST_NODES} nodes already: this one serves no lattice keyspaces"
                    );
                }
                self.mapping = Some(Arc::new(mapping));
            }
            Err(why) => {
                if self.say(format!("epoch {}: {why}", state.epoch)) {
                    self.cluster.shown.note_refused();
                    let epoch = state.epoch;
                    tracing::error!(
                        epoch,
                        why,
                        "the coordinator has a mapping that makes no sense"
                    );
                }
            }
        }
    }

    /// Data of no cluster becomes this one's before anybody acts by a mapping. Says why
    /// it cannot.
    fn claim(&self, mapping: &Mapping) -> Option<String> {
        let unclaimed = self.cluster.unclaimed.as_ref();
        let unclaimed = unclaimed.filter(|_| self.mapping.is_none())?;
        let refused = unclaimed.refuses(mapping, NodeId(self.cluster.local.id));
        refused.or_else(|| {
            let claimed = unclaimed.claim();
            claimed
                .err()
                .map(|error| format!("cannot note that the data is the cluster's: {error}"))
        })
    }

    /// Shows how the cluster is.
    fn look(&self, view: &View) {
        if let Some(mapping) = &self.mapping {
            let alive = view.members.values();
            let alive = alive.map(|node| (node.id, node.incarnation)).collect();
            self.cluster.about.see(mapping, alive, view.is_current);
        }
    }

    /// Says what the node is to say of itself by now, until it is known.
    async fn announce(&mut self) {
        let about = &self.cluster.about;
        let Some(member) = about.news() else {
            return;
        };
        match self.coordinator.announce(encode_member(&member)).await {
            Ok(()) => about.was_said(&member),
            Err(error) => tracing::debug!(%error, "cannot say what has changed; again soon"),
        }
    }

    /// Tells who has not heard yet.
    fn tell(&mut self) {
        let Some(mapping) = &self.mapping else {
            return;
        };
        for (worker, told) in self.told.iter_mut().enumerate() {
            if *told == mapping.epoch {
                continue;
            }
            let message = Message::Peer(PeerMessage::Mapping(Arc::clone(mapping)));
            match self.teller.tell(WorkerId(worker as u16), message) {
                Ok(()) | Err(Untold::Gone(_)) => *told = mapping.epoch,
                // The next time.
                Err(Untold::Full(_)) => {}
            }
        }
    }

    /// Tells who plans which learners have all: this node knows it of the slots
    /// of whose chains it is the tail.
    fn report(&mut self, view: &View) {
        let me = NodeId(self.cluster.local.id);
        let Some(leader) = view.leader.filter(|leader| *leader != me) else {
            return;
        };
        let mapping = self.mapping.as_ref();
        let Some(to) = mapping.and_then(|mapping| mapping.number_of(leader)) else {
            return;
        };
        let learned = self.cluster.reports.own();
        if !learned.all.is_empty() {
            let message = Message::Peer(PeerMessage::Report { to, learned });
            // The next time, if not now.
            let _ = self.teller.tell(WorkerId(0), message);
        }
    }

    /// Proposes the next epoch, where it is this node's to do so and there is one.
    async fn plan(&mut self, view: &View) {
        let me = NodeId(self.cluster.local.id);
        let plans = view.is_current && view.is_member && view.leader == Some(me);
        if !plans {
            // Who leads later begins to count then.
            self.away.clear();
            self.cluster.reports.forget_others();
            return;
        }
        let empty;
        let mapping = match &self.mapping {
            Some(mapping) if mapping.epoch == view.epoch() => mapping,
            None if view.state.is_none() => {
                empty = Arc::new(Mapping::new(self.cluster.settings.copies));
                &empty
            }
            // What is in force makes no sense: nobody is to build on it.
            _ => return,
        };
        let alive = alive(view);
        note_away(&mut self.away, mapping, &alive);
        if !is_time(self.proposed, &self.away, Instant::now()) {
            return;
        }
        let seen = Seen {
            alive,
            away_ms: self
                .away
                .iter()
                .map(|(no, since)| (*no, ms(since)))
                .collect(),
            learned: self.cluster.reports.known(),
            draining: draining(mapping, view),
        };
        let Some(next) = planner::next(mapping, &seen, &Limits::default()) else {
            return;
        };
        let proposed = self.coordinator.propose(mapping.epoch, encode(&next)).await;
        self.on_proposed(next.epoch, proposed);
    }

    fn on_proposed(&mut self, epoch: u64, proposed: Result<Proposed, Error>) {
        match proposed {
            Ok(Proposed::Taken) => {
                self.proposed = Some(Instant::now());
                self.cluster.shown.note_proposed();
                tracing::info!(epoch, "proposed a mapping");
            }
            // The view will tell.
            Ok(Proposed::Behind(_) | Proposed::NotAlive) => {}
            Err(error) => {
                if self.say(error.to_string()) {
                    tracing::warn!(epoch, %error, "cannot propose a mapping");
                }
            }
        }
    }

    /// True where this is news.
    fn say(&mut self, what: String) -> bool {
        let news = self.said != what;
        self.said = what;
        news
    }
}

/// Whether the next epoch may come.
fn is_time(proposed: Option<Instant>, away: &BTreeMap<NodeNo, Instant>, now: Instant) -> bool {
    let is_recent = |at: &Instant| now.saturating_duration_since(*at) < APART;
    away.values().any(is_recent) || !proposed.as_ref().is_some_and(is_recent)
}

fn ms(since: &Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What a coordinator has, if it may come after what this node acts by.
fn judge(state: &State, known: Option<&Mapping>) -> Result<Mapping, &'static str> {
    let mapping = decode(&state.mapping).map_err(|invalid| invalid.0)?;
    if mapping.epoch != state.epoch {
        return Err("it says that it is of another epoch");
    }
    match known {
        // Of those between nothing is known any more.
        Some(known) if known.epoch + 1 == mapping.epoch => {
            mapping.follows(known).map_err(|invalid| invalid.0)?;
        }
        _ => {}
    }
    Ok(mapping)
}

/// Members that say that they want to leave.
fn draining(mapping: &Mapping, view: &View) -> BTreeSet<NodeNo> {
    let alive = alive(view);
    let drains = |id: &NodeId| alive.get(id).is_some_and(|member| member.drains);
    let members = mapping.members.iter();
    let draining = members.filter(|(_, member)| drains(&member.id));
    draining.map(|(no, _)| *no).collect()
}

/// Nodes that are there, as they announce themselves.
fn alive(view: &View) -> BTreeMap<NodeId, Member> {
    let alive = view.members.values().filter_map(|node| {
        let member = decode_member(&node.about).ok()?;
        let is_itself = member.id.0 == node.id.0 && member.incarnation == node.incarnation;
        is_itself.then_some((member.id, member))
    });
    alive.collect()
}

fn note_away(
    away: &mut BTreeMap<NodeNo, Instant>,
    mapping: &Mapping,
    alive: &BTreeMap<NodeId, Member>,
) {
    let is_away = |no: &NodeNo| {
        let member = mapping.members.get(no);
        member.is_some_and(|member| !alive.contains_key(&member.id))
    };
    away.retain(|no, _| is_away(no));
    for no in mapping.members.keys().filter(|no| is_away(no)) {
        away.entry(*no).or_insert_with(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_coordinator::Member as Node;

    fn member(id: u8) -> Member {
        Member {
            id: NodeId([id; 20]),
            incarnation: 1,
            peer: "127.0.0.1:1".into(),
            plain: String::new(),
            cluster: String::new(),
            zone: String::new(),
            weight: 100,
            workers: 1,
            drains: false,
        }
    }

    fn of(ids: &[u8], before: &Mapping) -> Mapping {
        let alive = ids.iter().map(|id| (NodeId([*id; 20]), member(*id)));
        let seen = Seen {
            alive: alive.collect(),
            ..Seen::default()
        };
        planner::next(before, &seen, &Limits::default()).expect("a change")
    }

    #[test]
    fn only_what_makes_sense_is_acted_by() {
        let first = of(&[1], &Mapping::new(1));
        let second = of(&[1, 2], &first);
        let state = |epoch, mapping: &Mapping| State {
            epoch,
            mapping: encode(mapping),
        };
        assert_eq!(judge(&state(1, &first), None).as_ref(), Ok(&first));
        let next = judge(&state(2, &second), Some(&first));
        assert_eq!(next.as_ref(), Ok(&second));
        // One that was not seen may lie between.
        let mut third = second.clone();
        third.epoch = 3;
        assert!(judge(&state(3, &third), Some(&first)).is_ok());
        assert!(judge(&state(2, &first), None).is_err(), "another epoch");
        // All slots are somebody else's at once.
        let mut other = of(&[9], &Mapping::new(1));
        other.epoch = 2;
        assert!(judge(&state(2, &other), Some(&first)).is_err());
        let garbage = State {
            epoch: 2,
            mapping: vec![0xff; 40],
        };
        assert!(judge(&garbage, Some(&first)).is_err());
    }

    #[test]
    fn epochs_are_apart_unless_a_node_has_just_gone() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let gone = |ms| BTreeMap::from([(NodeNo(3), at(ms))]);
        let none = BTreeMap::new();
        assert!(is_time(None, &none, begun));
        assert!(!is_time(Some(begun), &none, at(199)));
        assert!(is_time(Some(begun), &none, at(200)));
        assert!(is_time(Some(begun), &gone(50), at(60)));
        // One that has been away for long is no reason to hurry.
        assert!(!is_time(Some(at(500)), &gone(0), at(510)));
    }

    #[test]
    fn who_says_to_be_somebody_else_is_not_there() {
        let mut view = View::default();
        let mut add = |id: u8, about: Vec<u8>, incarnation| {
            let id = NodeId([id; 20]);
            let node = Node {
                id,
                incarnation,
                about,
            };
            view.members.insert(id, node);
        };
        let about = |id| encode_member(&member(id));
        add(1, about(1), 1);
        add(2, about(3), 1);
        add(4, about(4), 2);
        add(5, vec![0xff; 5], 1);
        let alive: Vec<_> = alive(&view).into_keys().collect();
        assert_eq!(alive, [NodeId([1; 20])]);
    }
}
