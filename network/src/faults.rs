//! What goes wrong, by a seed: kinds in turn, in an order and with numbers of the seed.
//!
//! Clients reach a node that is cut off from other nodes: what it answers then is what
//! matters. With two copies of each slot one node at a time is in trouble, with three also two.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use rufous_sim::engine::random::Random;

use crate::demo::disk;
use crate::filters::{self, Cut, Tool};
use crate::lattice::acts::How;
use crate::nodes::Nodes;
use crate::space::Host;

/// All kinds, with the node that they happen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It reaches neither nodes nor etcd, and they do not reach it.
    Isolated,
    /// Nothing of other nodes comes to it; what it says goes out.
    Deaf,
    /// What it says goes nowhere; what others say comes.
    Mute,
    /// One other node and it do not reach each other. Both reach all else.
    Parted,
    /// The same in one direction only.
    HalfParted,
    /// It does not reach etcd.
    WithoutEtcd,
    /// No node reaches etcd.
    EtcdAway,
    /// Its cable is pulled: clients do not reach it either.
    Unplugged,
    /// It loses so many of a hundred packets that come.
    Lossy(u32),
    /// What other nodes and it say to each other takes so many milliseconds.
    Slow(u64),
    /// `kill -9`; it starts again from its folder when the time is over.
    Killed,
    /// It stands still.
    Paused,
    /// Its disk has no space left.
    FullDisk,
    /// Each write to its disk waits.
    HungDisk,
    /// Isolated again and again, for so many milliseconds.
    Flapping(u64),
    /// Every node is cut off from all others and from etcd. No strict key can be served
    /// then: it comes last, when nobody works on any.
    AllApart,
}

/// A fault, whom it befalls, with which tool, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    pub fault: Fault,
    pub node: usize,
    /// The other one, where there is one.
    pub other: usize,
    pub tool: Tool,
    pub time: Duration,
}

/// A fault, and sometimes another one that another node has meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub first: Round,
    pub second: Option<Round>,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match &self.second {
            Some(second) => write!(f, ", and {second}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, other, tool) = (self.node, self.other, self.tool);
        match self.fault {
            Fault::Isolated => write!(f, "node {node} is cut off from nodes and etcd ({tool})"),
            Fault::Deaf => write!(f, "node {node} hears no other node ({tool})"),
            Fault::Mute => write!(f, "node {node} is not heard by other nodes ({tool})"),
            Fault::Parted => write!(f, "nodes {node} and {other} are parted ({tool})"),
            Fault::HalfParted => write!(f, "node {other} does not hear node {node} ({tool})"),
            Fault::WithoutEtcd => write!(f, "node {node} is cut off from etcd ({tool})"),
            Fault::EtcdAway => write!(f, "all nodes are cut off from etcd ({tool})"),
            Fault::Unplugged => write!(f, "node {node} is unplugged"),
            Fault::Lossy(percent) => write!(f, "node {node} loses {percent} % of packets"),
            Fault::Slow(ms) => write!(f, "{ms} ms between node {node} and others"),
            Fault::Killed => write!(f, "node {node} is killed, and starts again"),
            Fault::Paused => write!(f, "node {node} stands still"),
            Fault::FullDisk => write!(f, "node {node} has a full disk"),
            Fault::HungDisk => write!(f, "node {node} has a disk that hangs"),
            Fault::Flapping(ms) => {
                write!(
                    f,
                    "node {node} is cut off every {ms} ms for as long ({tool})"
                )
            }
            Fault::AllApart => write!(f, "all nodes are cut off from each other ({tool})"),
        }?;
        write!(f, ", {:.1} s", self.time.as_secs_f64())
    }
}

/// What a machine and a run allow.
#[derive(Clone, Debug)]
pub struct Means {
    pub nodes: usize,
    pub tools: Vec<Tool>,
    /// Each node has a disk of its own.
    pub disks: bool,
    /// Nodes of a chain that may be in trouble at once.
    pub at_once: usize,
}

/// The troubles of a seed: each kind of fault once before any comes again. In every third one, where copies allow
/// it, two nodes have one each.
pub fn plan(seed: u64, rounds: usize, means: &Means) -> Vec<Trouble> {
    let mut random = Random::new(seed, "faults");
    let mut plan = Vec::new();
    while plan.len() < rounds {
        let mut kinds = kinds(&mut random, means);
        while let (false, true) = (kinds.is_empty(), plan.len() < rounds) {
            let fault = kinds.swap_remove(random.index(kinds.len()));
            let node = 1 + random.index(means.nodes);
            let first = round(&mut random, fault, node, means);
            let second = (means.at_once > 1 && random.chance(0.3)).then(|| {
                let fault = *random.pick(&SECOND);
                round(&mut random, fault, first.other, means)
            });
            plan.push(Trouble { first, second });
        }
    }
    plan
}

/// Faults that may come to a second node.
const SECOND: [Fault; 5] = [
    Fault::Killed,
    Fault::Paused,
    Fault::Isolated,
    Fault::Deaf,
    Fault::Mute,
];

fn round(random: &mut Random, fault: Fault, node: usize, means: &Means) -> Round {
    Round {
        fault,
        node,
        other: 1 + (node + random.index(means.nodes - 1)) % means.nodes,
        tool: *random.pick(&means.tools),
        // Shorter and longer than what it takes to be given up by others.
        time: Duration::from_millis(random.between(500, 6_000)),
    }
}

/// What comes after them.
pub fn last(seed: u64, tools: &[Tool]) -> Trouble {
    let mut random = Random::new(seed, "the last fault");
    let first = Round {
        fault: Fault::AllApart,
        node: 1,
        other: 2,
        tool: *random.pick(tools),
        time: Duration::from_millis(random.between(500, 6_000)),
    };
    Trouble {
        first,
        second: None,
    }
}

fn kinds(random: &mut Random, means: &Means) -> Vec<Fault> {
    let mut kinds = vec![
        Fault::Isolated,
        Fault::Deaf,
        Fault::Mute,
        Fault::Parted,
        Fault::HalfParted,
        Fault::WithoutEtcd,
        Fault::EtcdAway,
        Fault::Unplugged,
        Fault::Slow(random.between(5, 250)),
        Fault::Killed,
        Fault::Paused,
        Fault::Flapping(random.between(50, 900)),
    ];
    if means.disks {
        kinds.extend([Fault::FullDisk, Fault::HungDisk]);
    }
    if means.tools.contains(&Tool::Iptables) {
        kinds.push(Fault::Lossy(random.between(2, 30) as u32));
    }
    kinds
}

impl Trouble {
    /// Has it happen, holds it for the time of the first fault, and heals, also where holding fails.
    pub fn happen(&self, nodes: &mut Nodes, hold: impl Fn(Duration) -> Result<()>) -> Result<()> {
        let Some(second) = &self.second else {
            return self.first.happen(nodes, hold);
        };
        second.begin(nodes)?;
        let held = self.first.happen(nodes, hold);
        second.end(nodes).and(held)
    }

    /// The nodes that run and that clients reach without loss, and how they are.
    pub fn reached(&self, nodes: usize) -> Vec<(usize, How)> {
        let reached = self.first.reached(nodes);
        let Some(second) = &self.second else {
            return reached;
        };
        // With two faults it is not known how a node with one of them is.
        let sound = |no: usize| no != second.node && no != self.first.node;
        reached.into_iter().filter(|(no, _)| sound(*no)).collect()
    }
}

impl Round {
    fn happen(&self, nodes: &mut Nodes, hold: impl Fn(Duration) -> Result<()>) -> Result<()> {
        let Fault::Flapping(ms) = self.fault else {
            self.begin(nodes)?;
            let held = hold(self.time);
            return self.end(nodes).and(held);
        };
        let half = Duration::from_millis(ms);
        let times = self.time.as_millis() / (2 * half.as_millis()).max(1) + 1;
        (0..times).try_for_each(|_| {
            self.begin(nodes)?;
            let held = hold(half);
            self.end(nodes).and(held)?;
            std::thread::sleep(half);
            Ok(())
        })
    }

    fn begin(&self, nodes: &mut Nodes) -> Result<()> {
        match self.fault {
            Fault::Unplugged => Host::of_node(self.node).plug(false),
            Fault::Lossy(percent) => filters::lose(&Host::of_node(self.node), percent),
            Fault::Slow(ms) => nodes.delay(self.node, Duration::from_millis(ms)),
            Fault::Killed => nodes.kill(self.node),
            Fault::Paused => nodes.pause(self.node, true),
            Fault::FullDisk => disk::fill(nodes.folder(self.node)?),
            Fault::HungDisk => disk::freeze(nodes.folder(self.node)?),
            _ => {
                let cuts = self.cuts(nodes.all().len());
                cuts.iter().try_for_each(Cut::close)
            }
        }
    }

    fn end(&self, nodes: &mut Nodes) -> Result<()> {
        match self.fault {
            Fault::Unplugged => Host::of_node(self.node).plug(true),
            Fault::Lossy(percent) => filters::stop_losing(&Host::of_node(self.node), percent),
            Fault::Slow(_) => nodes.delay(self.node, Duration::ZERO),
            Fault::Killed => nodes.start_again(self.node),
            Fault::Paused => nodes.pause(self.node, false),
            Fault::FullDisk => disk::free(nodes.folder(self.node)?),
            Fault::HungDisk => disk::thaw(nodes.folder(self.node)?),
            _ => {
                let cuts = self.cuts(nodes.all().len());
                cuts.iter().try_for_each(Cut::open)
            }
        }
    }

    /// The nodes that run and that clients reach without loss, and how they are.
    pub fn reached(&self, nodes: usize) -> Vec<(usize, How)> {
        let (others, own) = match self.fault {
            Fault::AllApart => (How::Alone, Some(How::Alone)),
            Fault::Isolated | Fault::Deaf | Fault::Mute | Fault::Flapping(_) => {
                (How::Met, Some(How::Alone))
            }
            Fault::Unplugged
            | Fault::Lossy(_)
            | Fault::Killed
            | Fault::Paused
            | Fault::FullDisk
            | Fault::HungDisk => (How::Met, None),
            _ => (How::Met, Some(How::Met)),
        };
        let how = |no| if no == self.node { own } else { Some(others) };
        (1..=nodes).filter_map(|no| Some((no, how(no)?))).collect()
    }

    /// The directions that are closed.
    pub fn cuts(&self, nodes: usize) -> Vec<Cut> {
        let (it, etcd) = (Host::of_node(self.node), Host::of_etcd());
        let others = (1..=nodes).filter(|no| *no != self.node);
        let others: Vec<Host> = others.map(Host::of_node).collect();
        let cut = |from: &Host, to: &Host| Cut {
            from: from.clone(),
            to: to.clone(),
            tool: self.tool,
        };
        let both = |one: &Host, two: &Host| [cut(one, two), cut(two, one)];
        let other = Host::of_node(self.other);
        match self.fault {
            Fault::Isolated | Fault::Flapping(_) => {
                let all = others.iter().chain([&etcd]);
                all.flat_map(|other| both(&it, other)).collect()
            }
            Fault::Deaf => others.iter().map(|other| cut(other, &it)).collect(),
            Fault::Mute => others.iter().map(|other| cut(&it, other)).collect(),
            Fault::Parted => both(&it, &other).into(),
            Fault::HalfParted => vec![cut(&it, &other)],
            Fault::WithoutEtcd => both(&it, &etcd).into(),
            Fault::EtcdAway => {
                let all = others.iter().chain([&it]);
                all.flat_map(|node| both(node, &etcd)).collect()
            }
            Fault::AllApart => {
                let all: Vec<Host> = others.into_iter().chain([it, etcd]).collect();
                let pairs = all
                    .iter()
                    .flat_map(|from| all.iter().map(move |to| (from, to)));
                let apart = pairs.filter(|(from, to)| from != to);
                apart.map(|(from, to)| cut(from, to)).collect()
            }
            Fault::Unplugged
            | Fault::Lossy(_)
            | Fault::Slow(_)
            | Fault::Killed
            | Fault::Paused
            | Fault::FullDisk
            | Fault::HungDisk => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn means(nodes: usize, tools: &[Tool]) -> Means {
        Means {
            nodes,
            tools: tools.to_vec(),
            disks: tools.contains(&Tool::Iptables),
            at_once: 1,
        }
    }

    const TOOLS: [Tool; 2] = [Tool::Routes, Tool::Iptables];

    #[test]
    fn a_seed_is_a_plan_and_another_one_another() {
        let of = |seed| plan(seed, 40, &means(3, &TOOLS));
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn two_nodes_are_in_trouble_only_where_copies_allow_it() {
        let of = |at_once| {
            let means = Means {
                at_once,
                ..means(3, &TOOLS)
            };
            plan(3, 60, &means)
        };
        assert!(of(1).iter().all(|trouble| trouble.second.is_none()));
        let two: Vec<_> = { of(2).into_iter() }
            .filter_map(|trouble| Some((trouble, trouble.second?)))
            .collect();
        assert!(two.len() > 5);
        for (trouble, second) in two {
            assert_ne!(trouble.first.node, second.node);
            let reached = trouble.reached(3);
            assert!(
                reached.iter().all(|(no, _)| *no != second.node),
                "{trouble}"
            );
        }
    }

    #[test]
    fn each_kind_comes_before_any_comes_again() {
        for seed in 0..50 {
            let rounds = |rounds, means: &Means| {
                let plan = plan(seed, rounds, means).into_iter();
                plan.map(|trouble| trouble.first).collect::<Vec<_>>()
            };
            let kind = |round: &Round| std::mem::discriminant(&round.fault);
            let without = rounds(12, &means(3, &TOOLS[..1]));
            let rounds = rounds(30, &means(4, &TOOLS));
            for turn in rounds.chunks(15) {
                let kinds: std::collections::HashSet<_> = turn.iter().map(kind).collect();
                assert_eq!(kinds.len(), 15, "{turn:?}");
            }
            assert!(rounds.iter().all(|round| round.node != round.other
                && (1..=4).contains(&round.node)
                && (1..=4).contains(&round.other)));
            assert!(without.iter().all(|round| round.tool == Tool::Routes));
            assert!(!without.iter().any(|r| matches!(r.fault, Fault::Lossy(_))));
        }
    }

    #[test]
    fn whom_clients_reach_is_known_and_who_of_them_is_alone() {
        let of = |fault| {
            let round = Round {
                fault,
                node: 2,
                other: 3,
                tool: Tool::Routes,
                time: Duration::ZERO,
            };
            round.reached(3)
        };
        let alone = [(1, How::Met), (2, How::Alone), (3, How::Met)];
        let none_alone = [1, 2, 3].map(|no| (no, How::Met));
        let not_two = [(1, How::Met), (3, How::Met)];
        assert_eq!(of(Fault::Deaf), alone);
        assert_eq!(of(Fault::Flapping(60)), alone);
        assert_eq!(of(Fault::Parted), none_alone);
        assert_eq!(of(Fault::EtcdAway), none_alone);
        assert_eq!(of(Fault::Killed), not_two);
        assert_eq!(of(Fault::Unplugged), not_two);
        let all_alone = [1, 2, 3].map(|no| (no, How::Alone));
        assert_eq!(of(Fault::AllApart), all_alone);
    }

    #[test]
    fn directions_are_those_that_the_name_says() {
        let of = |fault| {
            let round = Round {
                fault,
                node: 2,
                other: 3,
                tool: Tool::Routes,
                time: Duration::ZERO,
            };
            let cuts = round.cuts(3).into_iter();
            let cuts: BTreeSet<_> = cuts
                .map(|cut| format!("{} {}", cut.from.name, cut.to.name))
                .collect();
            cuts.into_iter().collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of(Fault::Deaf), "node1 node2, node3 node2");
        assert_eq!(of(Fault::Mute), "node2 node1, node2 node3");
        assert_eq!(of(Fault::HalfParted), "node2 node3");
        assert_eq!(of(Fault::Parted), "node2 node3, node3 node2");
        assert_eq!(of(Fault::WithoutEtcd), "etcd node2, node2 etcd");
        assert_eq!(
            of(Fault::Isolated),
            "etcd node2, node1 node2, node2 etcd, node2 node1, node2 node3, node3 node2"
        );
        assert_eq!(
            of(Fault::AllApart),
            "etcd node1, etcd node2, etcd node3, node1 etcd, node1 node2, node1 node3, \
             node2 etcd, node2 node1, node2 node3, node3 etcd, node3 node1, node3 node2"
        );
        assert_eq!(
            of(Fault::EtcdAway),
            "etcd node1, etcd node2, etcd node3, node1 etcd, node2 etcd, node3 etcd"
        );
    }
}
