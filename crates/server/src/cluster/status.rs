//! The state of a cluster, for operators: its nodes, and which slots have all their copies. As text
//! it is the reply to `CLUSTER STATUS`, which `rufous cluster` reads.
//!
//! A copy counts if the coordinator counts its node as alive, with the incarnation that the mapping
//! has, and the node announces that it can take writes. A slot is served if all nodes of its chain
//! are such nodes, and hear one another: its head needs all of them. Of these, a head announces how
//! many it does not serve all the same, as it lacks data or leases.

use rufous_base::limits::SLOTS;
use rufous_mapping::planner::Health;
use rufous_mapping::{Mapping, Member, NodeId, NodeNo, Phase, Was};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    pub epoch: u64,
    /// Whether the coordinator is reachable; otherwise this is the last known state.
    pub is_current: bool,
    /// Whether the coordinator was restored to an earlier state than this one.
    pub went_back: bool,
    /// Copies that a slot is to have.
    pub copies: usize,
    /// Slots whose nodes can serve them, slots with all copies, and slots with fewer.
    pub slots_served: usize,
    pub slots_whole: usize,
    pub slots_few: usize,
    /// Slots that a node is learning.
    pub slots_learning: usize,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    pub number: u16,
    pub id: String,
    pub incarnation: u64,
    pub is_alive: bool,
    pub drains: bool,
    /// Why it cannot take writes, if it announces that it cannot.
    pub ails: Option<String>,
    /// Why it serves no lattice key, if it announces that it has lattice keyspaces and does not.
    pub waits: Option<String>,
    /// What its data folder is, if it is not the one that the node had: "emptied" or "past".
    pub folder: Option<String>,
    /// The number of slots of which it is the head and which it announces not to serve.
    pub unserved: usize,
    /// Members that are alive and do not hear it, or that it does not hear.
    pub unheard: Vec<u16>,
    /// Its addresses for other nodes and for clients of both kinds.
    pub peer: String,
    pub plain: String,
    pub clients: String,
    pub zone: String,
    pub weight: u16,
    pub workers: u16,
    /// Its program, the versions of the messages between nodes that it speaks, and the one in use
    /// with the node that was asked: see [`super::versions`].
    pub program: Option<String>,
    pub wire_oldest: Option<u16>,
    pub wire_newest: Option<u16>,
    pub wire_used: Option<u16>,
    /// Slots that it is the head of, has a copy of that may still be needed, and learns.
    pub slots: usize,
    pub copies: usize,
    pub learns: usize,
}

impl Status {
    /// `alive` are nodes with their incarnations and what they announce of their health.
    pub fn of(mapping: &Mapping, alive: &Alive, is_current: bool) -> Self {
        let members = mapping.members.iter();
        let node =
            |(no, member): (&NodeNo, &Member)| (*no, Node::of((*no, member), mapping, alive));
        let mut nodes: BTreeMap<_, _> = members.map(node).collect();
        let ring = &mapping.ring;
        let mut status = Self {
            epoch: mapping.epoch,
            is_current,
            copies: ring.copies().min(ring.len()).max(1),
            ..Self::default()
        };
        let mut served: BTreeMap<NodeNo, usize> = BTreeMap::new();
        for (range, chain) in mapping.chains.ranges() {
            let slots = range.len();
            let mut there = 0;
            for no in chain.holders() {
                if let Some(node) = nodes.get_mut(&no) {
                    node.copies += slots;
                    there += usize::from(node.is_fit() && !chain.is_idle(no));
                }
            }
            let is_served = chain.head().is_some()
                && chain.phase == Phase::Acts
                && chain.named().all(|no| {
                    let node = nodes.get(&no);
                    node.is_some_and(|node| {
                        let hears = |other: NodeNo| !node.unheard.contains(&other.0);
                        node.is_fit() && chain.named().all(hears)
                    })
                });
            if let Some(node) = chain.head().and_then(|no| nodes.get_mut(&no)) {
                node.slots += slots;
            }
            if let Some(node) = chain.learner.and_then(|no| nodes.get_mut(&no)) {
                node.learns += slots;
                status.slots_learning += slots;
            }
            if let Some(head) = chain.head().filter(|_| is_served) {
                *served.entry(head).or_default() += slots;
            }
            if there >= status.copies {
                status.slots_whole += slots;
            }
        }
        let served = served.into_iter().map(|(no, slots)| {
            let node = nodes.get(&no);
            node.map_or(0, |node| {
                slots.min(node.slots.saturating_sub(node.unserved))
            })
        });
        status.slots_served = served.sum();
        status.slots_few = SLOTS - status.slots_whole;
        status.nodes = nodes.into_values().collect();
        status
    }

    /// Whether every slot has all its copies.
    pub fn is_whole(&self) -> bool {
        self.slots_whole == SLOTS
    }

    /// Whether every slot has all its copies and is served, and every live node serves lattice keys; none of that is
    /// known without the coordinator.
    pub fn is_well(&self) -> bool {
        let waits = |node: &Node| node.is_alive && node.waits.is_some();
        self.is_current && self.serves_all() && !self.nodes.iter().any(waits)
    }

    /// Whether every slot has all its copies and is served.
    pub fn serves_all(&self) -> bool {
        self.is_whole() && self.slots_served == SLOTS
    }

    /// A line for each figure and for each node.
    pub fn text(&self) -> String {
        let coordinator = match (self.went_back, self.is_current) {
            (true, _) => "behind",
            (false, true) => "current",
            (false, false) => "away",
        };
        let mut out = format!(
            "epoch:{}\r\ncoordinator:{coordinator}\r\ncopies:{}\r\nslots_served:{}\r\nslots_whole:{}\r\nslots_few:{}\r\nslots_learning:{}\r\n",
            self.epoch,
            self.copies,
            self.slots_served,
            self.slots_whole,
            self.slots_few,
            self.slots_learning
        );
        for node in &self.nodes {
            // Of a node's announcement only the zone may be any text: it is the last field.
            let zone: String = node.zone.chars().filter(|c| !c.is_control()).collect();
            let _ = write!(
                out,
                "node:number={},id={},incarnation={},alive={},drains={},peer={},plain={},clients={},weight={},workers={},slots={},copies={},learns={}",
                node.number,
                node.id,
                node.incarnation,
                u8::from(node.is_alive),
                u8::from(node.drains),
                node.peer,
                node.plain,
                node.clients,
                node.weight,
                node.workers,
                node.slots,
                node.copies,
                node.learns,
            );
            node.versions(&mut out);
            node.health(&mut out);
            let _ = write!(out, ",zone={zone}\r\n");
        }
        out
    }

    /// The same, parsed from text; unknown fields are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut status = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(':')?;
            match name {
                "epoch" => status.epoch = value.parse().ok()?,
                "coordinator" => {
                    status.is_current = value != "away";
                    status.went_back = value == "behind";
                }
                "copies" => status.copies = value.parse().ok()?,
                "slots_served" => status.slots_served = value.parse().ok()?,
                "slots_whole" => status.slots_whole = value.parse().ok()?,
                "slots_few" => status.slots_few = value.parse().ok()?,
                "slots_learning" => status.slots_learning = value.parse().ok()?,
                "node" => status.nodes.push(Node::parse(value)?),
                _ => {}
            }
        }
        (status.epoch > 0).then_some(status)
    }
}

impl Node {
    /// A member, without its slots.
    fn of((no, member): (NodeNo, &Member), mapping: &Mapping, alive: &Alive) -> Self {
        Self {
            number: no.0,
            id: member.id.to_string(),
            incarnation: member.incarnation,
            is_alive: is_alive(member, alive),
            drains: member.drains,
            ails: alive
                .get(&member.id)
                .and_then(|(_, health)| health.ails.clone()),
            waits: alive
                .get(&member.id)
                .and_then(|(_, health)| health.waits.clone()),
            unserved: alive
                .get(&member.id)
                .map_or(0, |(_, health)| health.unserved),
            folder: member.folder.was().map(|was| match was {
                Was::Empty => "emptied".to_owned(),
                Was::Past => "past".to_owned(),
            }),
            unheard: unheard(no, mapping, alive),
            peer: member.peer.clone(),
            plain: member.plain.clone(),
            clients: member.cluster.clone(),
            zone: member.zone.clone(),
            weight: member.weight,
            workers: member.workers,
            ..Self::default()
        }
    }

    /// Writes the known versions.
    fn versions(&self, out: &mut String) {
        if let Some(program) = &self.program {
            let _ = write!(out, ",program={program}");
        }
        let numbers = [
            ("wire_oldest", self.wire_oldest),
            ("wire_newest", self.wire_newest),
            ("wire_used", self.wire_used),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                let _ = write!(out, ",{name}={number}");
            }
        }
    }

    /// Whether it is alive and can take writes.
    pub fn is_fit(&self) -> bool {
        self.is_alive && self.ails.is_none()
    }

    fn health(&self, out: &mut String) {
        let why = [
            ("ails", &self.ails),
            ("waits", &self.waits),
            ("folder", &self.folder),
        ];
        for (name, why) in why {
            if let Some(why) = why {
                let is_plain = |c: &char| !c.is_control() && !matches!(c, ',' | '=');
                let why: String = why.chars().filter(is_plain).collect();
                let _ = write!(out, ",{name}={why}");
            }
        }
        if self.unserved > 0 {
            let _ = write!(out, ",unserved={}", self.unserved);
        }
        if !self.unheard.is_empty() {
            let all: Vec<String> = self.unheard.iter().map(u16::to_string).collect();
            let _ = write!(out, ",unheard={}", all.join("+"));
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (text, zone) = text.split_once(",zone=")?;
        let mut node = Self {
            zone: zone.to_owned(),
            ..Self::default()
        };
        for field in text.split(',') {
            let (name, value) = field.split_once('=')?;
            match name {
                "number" => node.number = value.parse().ok()?,
                "id" => node.id = value.to_owned(),
                "incarnation" => node.incarnation = value.parse().ok()?,
                "alive" => node.is_alive = value == "1",
                "drains" => node.drains = value == "1",
                "ails" => node.ails = Some(value.to_owned()),
                "unserved" => node.unserved = value.parse().ok()?,
                "folder" => node.folder = Some(value.to_owned()),
                "waits" => node.waits = Some(value.to_owned()),
                "unheard" => {
                    let all = value.split('+').map(str::parse);
                    node.unheard = all.collect::<Result<_, _>>().ok()?;
                }
                "peer" => node.peer = value.to_owned(),
                "plain" => node.plain = value.to_owned(),
                "clients" => node.clients = value.to_owned(),
                "weight" => node.weight = value.parse().ok()?,
                "workers" => node.workers = value.parse().ok()?,
                "slots" => node.slots = value.parse().ok()?,
                "copies" => node.copies = value.parse().ok()?,
                "learns" => node.learns = value.parse().ok()?,
                "program" => node.program = Some(value.to_owned()),
                "wire_oldest" => node.wire_oldest = Some(value.parse().ok()?),
                "wire_newest" => node.wire_newest = Some(value.parse().ok()?),
                "wire_used" => node.wire_used = Some(value.parse().ok()?),
                _ => {}
            }
        }
        Some(node)
    }
}

/// Live nodes: the incarnation of each, and its health.
pub type Alive = BTreeMap<NodeId, (u64, Health)>;

fn is_alive(member: &Member, alive: &Alive) -> bool {
    let now = alive.get(&member.id);
    now.is_some_and(|(incarnation, _)| *incarnation == member.incarnation)
}

/// Live members that do not hear a live one, or that it does not hear.
fn unheard(no: NodeNo, mapping: &Mapping, alive: &Alive) -> Vec<u16> {
    let health = |member: &Member| {
        let is_there = is_alive(member, alive);
        alive
            .get(&member.id)
            .filter(|_| is_there)
            .map(|(_, health)| health)
    };
    let hears = |health: &Health, other: NodeNo| {
        let hears = health.hears.as_ref();
        hears.is_none_or(|hears| hears.contains(&other))
    };
    let Some(own) = mapping.members.get(&no).and_then(health) else {
        return Vec::new();
    };
    let others = mapping.members.iter().filter(|(other, _)| **other != no);
    let unheard = others.filter(|(other, member)| {
        health(member).is_some_and(|theirs| !hears(own, **other) || !hears(theirs, no))
    });
    unheard.map(|(other, _)| other.0).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rufous_mapping::planner::{self, Limits, Seen};

    pub(crate) fn member(id: u8) -> Member {
        Member {
            id: NodeId([id; 20]),
            incarnation: 1,
            peer: format!("10.0.0.{id}:16379"),
            plain: format!("10.0.0.{id}:6379"),
            cluster: String::new(),
            zone: "here, and there=1".into(),
            weight: 100,
            workers: 2,
            drains: false,
            folder: Default::default(),
        }
    }

    /// A mapping of nodes that joined together, so that all slots have all copies.
    pub(crate) fn mapping(ids: &[u8], copies: usize) -> Mapping {
        let alive = ids.iter().map(|id| (NodeId([*id; 20]), member(*id)));
        let seen = Seen {
            alive: alive.collect(),
            ..Seen::default()
        };
        planner::next(&Mapping::new(copies), &seen, &Limits::default()).expect("a mapping")
    }

    pub(crate) fn alive(ids: &[u8]) -> Alive {
        let node = |id: &u8| (NodeId([*id; 20]), (1, Health::default()));
        ids.iter().map(node).collect()
    }

    #[test]
    fn copies_count_where_their_nodes_are_alive() {
        let three = mapping(&[1, 2, 3], 2);
        let all = Status::of(&three, &alive(&[1, 2, 3]), true);
        assert!(all.is_whole());
        assert_eq!((all.slots_served, all.slots_few, all.copies), (SLOTS, 0, 2));
        let sum = |of: fn(&Node) -> usize| all.nodes.iter().map(of).sum::<usize>();
        assert_eq!((sum(|n| n.slots), sum(|n| n.copies)), (SLOTS, 2 * SLOTS));

        let two = Status::of(&three, &alive(&[1, 2]), true);
        let gone = two.nodes.iter().find(|node| !node.is_alive).expect("one");
        // Its slots are served again when the others have replaced it.
        let served = SLOTS - gone.copies;
        assert_eq!((two.slots_served, two.slots_few), (served, gone.copies));
        assert!(!two.is_whole());

        // It has restarted, and the mapping has its earlier incarnation.
        let mut again = alive(&[1, 2, 3]);
        again.insert(NodeId([3; 20]), (2, Health::default()));
        assert_eq!(Status::of(&three, &again, true).slots_few, gone.copies);

        let none = Status::of(&three, &alive(&[]), false);
        assert_eq!((none.slots_served, none.slots_few), (0, SLOTS));
        // With fewer nodes than copies, each node has one copy.
        assert!(Status::of(&mapping(&[1], 3), &alive(&[1]), true).is_whole());
    }

    #[test]
    fn a_slot_that_its_head_does_not_serve_is_not_shown_as_served() {
        let three = mapping(&[1, 2, 3], 2);
        let mut all = alive(&[1, 2, 3]);
        all.get_mut(&NodeId([1; 20])).expect("there").1.unserved = 7;
        let status = Status::of(&three, &all, true);
        assert_eq!(status.slots_served, SLOTS - 7);
        assert!(status.is_whole() && !status.is_well());
        let read = Status::parse(&status.text()).expect("a status");
        assert_eq!((read.nodes[0].unserved, read.is_well()), (7, false));
        // It says so of more than it is the head of: none of the others' are lost by that.
        all.get_mut(&NodeId([1; 20])).expect("there").1.unserved = SLOTS;
        let heads = status.nodes[0].slots;
        assert_eq!(Status::of(&three, &all, true).slots_served, SLOTS - heads);
    }

    #[test]
    fn a_slot_is_served_by_nodes_that_take_writes_and_hear_one_another() {
        let three = mapping(&[1, 2, 3], 2);
        let mut all = alive(&[1, 2, 3]);
        let of = |status: &Status, no: usize| (status.nodes[no].copies, status.nodes[no].slots);
        all.get_mut(&NodeId([1; 20])).expect("there").1.ails = Some("its disk is full".into());
        let status = Status::of(&three, &all, true);
        let (copies, _) = of(&status, 0);
        assert_eq!(
            (status.slots_served, status.slots_few),
            (SLOTS - copies, copies)
        );
        assert!(!status.nodes[0].is_fit() && status.nodes[0].is_alive);

        let mut all = alive(&[1, 2, 3]);
        let hears = [NodeNo(0)].into_iter().collect();
        all.get_mut(&NodeId([2; 20])).expect("there").1.hears = Some(hears);
        let status = Status::of(&three, &all, true);
        assert_eq!(
            (&status.nodes[1].unheard, &status.nodes[2].unheard),
            (&vec![2], &vec![1])
        );
        assert!(status.nodes[0].unheard.is_empty() && status.is_whole());
        assert!(status.slots_served < SLOTS);
    }

    #[test]
    fn it_comes_back_from_its_text() {
        let mut status = Status::of(&mapping(&[1, 2], 2), &alive(&[1]), true);
        status.nodes[0].ails = Some("worker 0: its log cannot be written: no space".into());
        status.nodes[1].unheard = vec![0, 7];
        status.nodes[1].folder = Some("past".into());
        let text = status.text();
        assert_eq!(Status::parse(&text).as_ref(), Some(&status));
        let mut told = status.clone();
        told.nodes[0].wire_oldest = Some(1);
        told.nodes[0].wire_newest = Some(2);
        told.nodes[1] = Node {
            program: Some("0.1.0".into()),
            wire_used: Some(2),
            ..told.nodes[0].clone()
        };
        assert_eq!(Status::parse(&told.text()), Some(told));
        let more = format!("{text}later:1\r\n");
        assert_eq!(Status::parse(&more), Some(status));
        for wrong in ["", "epoch", "epoch:x\r\n", "epoch:1\r\nnode:a\r\n"] {
            assert_eq!(Status::parse(wrong), None, "{wrong}");
        }
    }
}
