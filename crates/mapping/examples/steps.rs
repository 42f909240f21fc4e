//! How long the planner takes, by the number of nodes:
//! `cargo run --profile bench -p rufous-mapping --example steps`.

use rufous_mapping::planner::{self, Copy, Limits, Report, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo, Phase};
use std::time::Instant;

fn node(n: u16, incarnation: u64) -> Member {
    let mut id = [0; 20];
    id[..2].copy_from_slice(&n.to_be_bytes());
    Member {
        id: NodeId(id),
        incarnation,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

struct Cluster {
    mapping: Mapping,
    seen: Seen,
}

impl Cluster {
    fn start(&mut self, n: u16, incarnation: u64) {
        let node = node(n, incarnation);
        self.seen.alive.insert(node.id, node);
    }

    /// Live members report that they have all of the chains that wait.
    fn confirm(&mut self) {
        for (no, member) in &self.mapping.members {
            let mut report = Report::new(member.incarnation, true, false);
            for (slots, chain) in self.mapping.chains.ranges() {
                if chain.phase != Phase::Acts && chain.holders().any(|holder| holder == *no) {
                    let (since, seq) = (chain.since, 0);
                    report.add(slots, Some(Copy { since, seq }));
                }
            }
            self.seen.held.hear(*no, report);
        }
    }

    /// Plans until nothing is to be done; whoever learns has all at once.
    fn settle(&mut self, what: &str) {
        let mut times = Vec::new();
        loop {
            self.seen.learned.clear();
            for (slots, chain) in self.mapping.chains.ranges() {
                if let Some(learner) = chain.learner {
                    self.seen.learned.add(slots, learner, chain.since);
                }
            }
            self.confirm();
            let start = Instant::now();
            let next = planner::next(&self.mapping, &self.seen, &Limits::default());
            times.push(start.elapsed().as_secs_f64() * 1e3);
            match next {
                Some(next) => self.mapping = next,
                None => break,
            }
        }
        let last = times[times.len() - 1];
        times.sort_by(f64::total_cmp);
        println!(
            "{what:16} {:4} steps, median {:7.3} ms, longest {:8.3} ms, nothing to do {last:6.3} ms, {:5} ranges",
            times.len(),
            times[times.len() / 2],
            times[times.len() - 1],
            self.mapping.chains.ranges().len(),
        );
    }
}

fn main() {
    for nodes in [3, 8, 32, 100, 300, 1000] {
        let mut cluster = Cluster {
            mapping: Mapping::new(3),
            seen: Seen::default(),
        };
        (0..nodes).for_each(|n| cluster.start(n, 1));
        cluster.settle(&format!("{nodes} nodes start"));
        cluster.start(nodes, 1);
        cluster.settle("  one joins");
        cluster.seen.alive.remove(&node(1, 1).id);
        cluster.settle("  one is gone");
        cluster.start(1, 2);
        cluster.settle("  it is back");
        cluster.seen.draining.insert(NodeNo(0));
        cluster.settle("  one drains");
    }
}
