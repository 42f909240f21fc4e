//! The number of a replica over all nodes, in stamps and messages.
//!
//! ```text
//! 16 bits of a stamp:  number of the node (10)   worker (6)
//! ```
//!
//! Numbers of nodes are never reused, so a replica's number is never one of two nodes. A node outside of a cluster
//! has number 0, and its replicas have the numbers of its workers.

use rufous_base::WorkerId;

const WORKER_BITS: u32 = 6;
/// Workers of a node that shares lattice keyspaces with others.
pub const MOST_WORKERS: usize = 1 << WORKER_BITS;
/// Numbers of such nodes, including nodes that were removed.
pub const MOST_NODES: usize = 1 << (u16::BITS - WORKER_BITS);

/// The first replica of a node; `None` if stamps cannot represent its number.
pub fn first_of(node: u16) -> Option<u16> {
    (usize::from(node) < MOST_NODES).then_some(node << WORKER_BITS)
}

/// The replica of a worker of a node in a cluster.
pub fn replica_of(node: u16, worker: WorkerId) -> Option<u16> {
    let is_one = worker.index() < MOST_WORKERS;
    first_of(node).filter(|_| is_one).map(|at| at | worker.0)
}

/// The node of a replica in a cluster.
pub fn node_of(replica: u16) -> u16 {
    replica >> WORKER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn replicas_of_all_nodes_differ() {
        let mut all = BTreeSet::new();
        for node in [0, 1, 2, 1023] {
            for worker in [0, 1, 63] {
                let replica = replica_of(node, WorkerId(worker)).unwrap();
                assert!(all.insert(replica));
                assert_eq!(node_of(replica), node);
            }
        }
        assert_eq!(replica_of(0, WorkerId(5)), Some(5));
        assert_eq!(replica_of(1024, WorkerId(0)), None);
        assert_eq!(replica_of(1, WorkerId(64)), None);
    }
}
