//! What a node announces to the coordinator, and the control thread's latest view of the cluster,
//! for operators and readiness checks.

use super::status::{Alive, Status};
use rufous_base::limits::SLOTS;
use rufous_mapping::planner::Health;
use rufous_mapping::{Mapping, Member, NodeId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module's description.
#[derive(Debug, Default)]
pub struct About(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    member: Option<Member>,
    health: Health,
    /// A part of it is not announced yet.
    is_news: bool,
    status: Option<Arc<Status>>,
    /// The inputs that `status` was computed from.
    made_of: (u64, Alive, bool, bool),
    /// Whether the coordinator has lost mappings that the node knows.
    went_back: bool,
    /// All slots have had all their copies once and were served, including those of this incarnation of the node.
    was_whole: bool,
    /// The mapping has no member that is this node.
    is_out: bool,
    /// Members that are gone for good, as operators have said at this node.
    forgets: BTreeSet<NodeId>,
}

/// Why a node has no mapping whose coordinator was restored.
const WENT_BACK: &str =
    "the coordinator was restored to an earlier mapping than the last one that this node knows";

/// Why a node is not ready that others have removed.
const REMOVED: &str = "the others have removed the node, as it was silent; it joins again by itself once it reaches the coordinator";

impl About {
    /// Sets the announcement of a starting node.
    pub fn begin(&self, member: Member) {
        self.lock().member = Some(member);
    }

    /// Changes the announcement. False if the node has not joined yet.
    pub fn change(&self, change: impl FnOnce(&mut Member)) -> bool {
        let mut inner = self.lock();
        let Some(member) = &mut inner.member else {
            return false;
        };
        let before = member.clone();
        change(member);
        inner.is_news |= inner.member.as_ref() != Some(&before);
        true
    }

    /// The node's announcement, once it has joined.
    pub fn member(&self) -> Option<Member> {
        self.lock().member.clone()
    }

    /// Sets what the node announces of its health.
    pub fn set_health(&self, health: Health) {
        let mut inner = self.lock();
        inner.is_news |= inner.health != health;
        inner.health = health;
    }

    /// Why the node serves no lattice key, if there are lattice keyspaces and it serves none.
    pub fn waits(&self) -> Option<String> {
        self.lock().health.waits.clone()
    }

    /// Whether the coordinator counts a node as alive, whatever its incarnation.
    pub fn is_alive(&self, id: NodeId) -> bool {
        self.lock().made_of.1.contains_key(&id)
    }

    /// An operator wants this member removed.
    pub fn forget(&self, id: NodeId) {
        self.lock().forgets.insert(id);
    }

    /// It leaves, or is kept.
    pub fn has_forgotten(&self, id: NodeId) {
        self.lock().forgets.remove(&id);
    }

    /// Members that operators want removed.
    pub fn forgets(&self) -> BTreeSet<NodeId> {
        self.lock().forgets.clone()
    }

    /// The announcement, if it is to be sent. [`About::was_said`] marks it as sent.
    pub fn news(&self) -> Option<(Member, Health)> {
        let inner = self.lock();
        let member = inner.member.clone().filter(|_| inner.is_news)?;
        Some((member, inner.health.clone()))
    }

    /// This was announced; if the announcement has changed meanwhile, it stays to be sent.
    pub fn was_said(&self, (member, health): &(Member, Health)) {
        let mut inner = self.lock();
        inner.is_news &= inner.member.as_ref() != Some(member) || inner.health != *health;
    }

    /// Records the agreed mapping, and the live nodes.
    pub fn see(&self, mapping: &Mapping, alive: Alive, is_current: bool) {
        let went_back = self.lock().went_back;
        let made_of = (mapping.epoch, alive, is_current, went_back);
        if self.lock().made_of == made_of {
            return;
        }
        let mut status = Status::of(mapping, &made_of.1, is_current);
        status.went_back = went_back;
        let mut inner = self.lock();
        let own = inner.member.as_ref();
        let known = own.filter(|own| mapping.number_of(own.id).is_some());
        let is_out = own.is_some() && known.is_none();
        let is_known = known.is_some_and(|own| {
            let id = own.id.to_string();
            let mut nodes = status.nodes.iter();
            nodes.any(|node| node.id == id && node.incarnation == own.incarnation && node.is_alive)
        });
        inner.was_whole |= is_known && status.serves_all();
        inner.is_out = is_out;
        inner.status = Some(Arc::new(status));
        inner.made_of = made_of;
    }

    /// Whether the coordinator has lost mappings that the node knows.
    pub fn set_went_back(&self, went_back: bool) {
        self.lock().went_back = went_back;
    }

    pub fn status(&self) -> Option<Arc<Status>> {
        self.lock().status.clone()
    }

    /// Why the node is not ready, if it is not: from its start until all slots have had all their
    /// copies once and were served, so that a rolling restart never stops the last copy. Not later: the loss of
    /// another node does not make this one less ready. While it serves no lattice key, its log cannot
    /// be written, or the others have removed it, it is not ready either.
    pub fn not_ready(&self) -> Option<String> {
        let inner = self.lock();
        let Health { ails, waits, .. } = &inner.health;
        if let Some(why) = ails {
            return Some(format!("the node takes no writes: {why}"));
        }
        match &inner.status {
            _ if inner.was_whole && inner.is_out => Some(REMOVED.to_owned()),
            _ if inner.was_whole => {
                let waits = waits.as_ref();
                waits.map(|why| format!("lattice keys are not served: {why}"))
            }
            None if inner.went_back => Some(WENT_BACK.to_owned()),
            None => Some("no mapping of the cluster yet".to_owned()),
            Some(status) => Some(lacks(status)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is missing until the node is ready.
fn lacks(status: &Status) -> String {
    if status.serves_all() {
        return "this start of the node is not in the mapping yet".to_owned();
    }
    format!(
        "{} slots have too few copies, and {} are not served",
        status.slots_few,
        SLOTS - status.slots_served
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::status::tests::{alive, mapping, member};

    #[test]
    fn what_is_said_is_said_once() {
        let about = About::default();
        assert!(!about.change(|member| member.drains = true));
        about.begin(member(1));
        assert_eq!(about.news(), None);
        assert!(about.change(|member| member.drains = false));
        assert_eq!(about.news(), None, "nothing has changed");
        assert!(about.change(|member| member.drains = true));
        let news = about.news().expect("news");
        assert!(news.0.drains);
        // It changes again before the first change is announced.
        about.change(|member| member.weight = 7);
        about.was_said(&news);
        let news = about.news().expect("news");
        assert_eq!((news.0.drains, news.0.weight), (true, 7));
        about.was_said(&news);
        assert_eq!(about.news(), None);
    }

    #[test]
    fn ready_once_all_copies_were_there() {
        let about = About::default();
        about.begin(member(1));
        assert!(about.not_ready().is_some());
        let two = mapping(&[1, 2], 2);
        // The other node is down.
        about.see(&two, alive(&[1]), true);
        let why = about.not_ready().expect("not yet");
        assert!(why.contains("16384 slots have too few copies"), "{why}");
        // Slots wait for what others have of their transactions.
        let mut closed = alive(&[1, 2]);
        closed.get_mut(&member(2).id).expect("there").1.unserved = 7;
        about.see(&two, closed, true);
        let why = about.not_ready().expect("not yet");
        assert!(why.contains("7 are not served"), "{why}");
        about.see(&two, alive(&[1, 2]), true);
        assert_eq!(about.not_ready(), None);
        about.see(&two, alive(&[1]), true);
        assert_eq!(about.not_ready(), None, "it is ready as before");
    }

    #[test]
    fn not_ready_while_the_others_have_removed_it() {
        let about = About::default();
        about.begin(member(1));
        about.see(&mapping(&[1, 2], 2), alive(&[1, 2]), true);
        assert_eq!(about.not_ready(), None);
        let mut epoch = 1;
        let mut see = |ids: &[u8]| {
            epoch += 1;
            let mut others = mapping(ids, 1);
            others.epoch = epoch;
            about.see(&others, alive(ids), true);
            about.not_ready()
        };
        let why = see(&[2, 3]).expect("not now");
        assert!(why.contains("removed"), "{why}");
        assert_eq!(see(&[1, 2, 3]), None);
    }

    #[test]
    fn not_ready_while_lattice_keys_are_not_served() {
        let about = About::default();
        about.begin(member(1));
        let waits = Some("waits for the state of n2".to_owned());
        about.set_health(Health {
            waits,
            ..Health::default()
        });
        about.see(&mapping(&[1, 2], 2), alive(&[1, 2]), true);
        let why = about.not_ready().expect("not yet");
        assert!(why.ends_with("waits for the state of n2"), "{why}");
        about.set_health(Health::default());
        assert_eq!(about.not_ready(), None);
        about.set_health(Health {
            ails: Some("worker 0: no space".to_owned()),
            ..Health::default()
        });
        let why = about.not_ready().expect("not now");
        assert!(why.ends_with("worker 0: no space"), "{why}");
    }

    /// The mapping has all copies, but with this node's earlier incarnation.
    #[test]
    fn an_earlier_start_is_not_ready() {
        let about = About::default();
        about.begin(Member {
            incarnation: 2,
            ..member(1)
        });
        let two = mapping(&[1, 2], 2);
        about.see(&two, alive(&[1, 2]), true);
        assert!(about.not_ready().is_some());
    }
}
