//! How the curves go on to more processors than there are here: a model whose constants are measured.
//!
//! One processor serves requests one after the other, `request` ns each. What limits many of them:
//! - *shared map*: updates of one key exclude each other. Where the last was made by another
//!   processor, (n - 1) / n of the times, its lock and its value have to come over first. So no more
//!   than 1 / (share of the hottest key × time that one update holds it) updates can be. A lock that
//!   its last holder may take again comes over less often: it is not taken to do worse than two
//!   processors were measured to do.
//! - *replicas*: every processor has n / (its replicas) of the work on a key, so none holds back
//!   another. In every epoch it sends each key that it has changed once, however often that was, and
//!   merges what the others of the key have sent.
//!
//! What the model leaves out: bandwidth of memory and of caches, which all stores share alike, and
//! distances between processors larger than that of these two. Both make it too kind to the shared map.

use serde::Serialize;

use super::constants::Constants;
use super::requests::Popularity;

/// Constants of a mix, in ns.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Costs {
    /// Of an update of a private map.
    pub private_request: f64,
    /// Of one of a shared map, on one thread.
    pub shared_request: f64,
    /// Of one at a worker, its looks at clock and rings included.
    pub request: f64,
    /// Which part of requests changes its key.
    pub writes: f64,
    /// Of a key that has changed, once an epoch.
    pub send: f64,
    /// Of a key of one message.
    pub merge: f64,
    /// Keys in one message.
    pub batch: f64,
    pub epoch: f64,
}

/// Million updates per second.
pub(crate) fn ideal(processors: f64, costs: &Costs) -> f64 {
    processors * 1e3 / costs.private_request
}

/// `two` is what two processors were measured to do together.
pub(crate) fn shared(
    processors: f64,
    two: f64,
    popularity: &Popularity,
    constants: &Constants,
    costs: &Costs,
) -> f64 {
    let all = processors * 1e3 / costs.shared_request;
    let away = (processors - 1.0) / processors;
    let hottest = popularity.shares().next().unwrap_or(0.0);
    let handover = constants.handover.max(costs.shared_request);
    let hold = costs.shared_request * (1.0 - away) + handover * away;
    all.min(two.max(1e3 / (hottest * hold)))
}

/// With so many replicas of each key; all processors where that is more than there are.
pub(crate) fn replicated(
    processors: f64,
    replicas: f64,
    popularity: &Popularity,
    constants: &Constants,
    costs: &Costs,
) -> f64 {
    let replicas = replicas.min(processors);
    // The most that processors with the hottest key may serve of all requests.
    let hottest = popularity.shares().next().unwrap_or(0.0);
    let busiest = (hottest / replicas).max(1.0 / processors);
    let others = replicas - 1.0;
    // Requests of an epoch that leave no time over, by bisection: what they take grows with them.
    let takes = |requests: f64| {
        // Keys have `replicas` of `processors`, and so has each processor of all keys.
        let keys = popularity.distinct(costs.writes * requests / busiest / replicas)
            * (replicas / processors);
        let gossip = if others > 0.0 {
            keys * (costs.send + others * costs.merge)
                + others * (1.0 + keys / costs.batch) * constants.ring
        } else {
            0.0
        };
        requests * costs.request + gossip
    };
    let (mut low, mut high) = (0.0, costs.epoch / costs.request);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if takes(middle) < costs.epoch {
            low = middle;
        } else {
            high = middle;
        }
    }
    low * 1e3 / costs.epoch / busiest
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: Constants = Constants {
        line: 50.0,
        handover: 400.0,
        ring: 30.0,
    };
    const COSTS: Costs = Costs {
        private_request: 25.0,
        shared_request: 25.0,
        request: 25.0,
        writes: 1.0,
        send: 500.0,
        merge: 500.0,
        batch: 240.0,
        epoch: 1e8,
    };

    #[test]
    fn hot_keys_stop_shared_maps_and_single_replicas_but_not_full_ones() {
        let steep = Popularity::new(100_000, 4.0);
        let one = shared(1.0, 0.0, &steep, &CONSTANTS, &COSTS);
        assert!(shared(64.0, 0.0, &steep, &CONSTANTS, &COSTS) < one);
        assert_eq!(shared(64.0, 30.0, &steep, &CONSTANTS, &COSTS), 30.0);
        let at = |n: f64, replicas: f64| replicated(n, replicas, &steep, &CONSTANTS, &COSTS);
        assert!(at(64.0, 1.0) < 1.1 * one);
        assert!((at(64.0, 3.0) / at(64.0, 1.0) - 3.0).abs() < 0.1);
        assert!(at(64.0, f64::INFINITY) > 0.9 * ideal(64.0, &COSTS));
    }

    #[test]
    fn full_replication_does_not_pay_where_no_key_is_hot() {
        let flat = Popularity::new(100_000, 0.5);
        let at = |n: f64, replicas: f64| replicated(n, replicas, &flat, &CONSTANTS, &COSTS);
        assert!(at(64.0, 1.0) > 0.9 * ideal(64.0, &COSTS));
        assert!(at(64.0, 3.0) < at(64.0, 1.0));
        assert!(at(64.0, f64::INFINITY) < at(64.0, 3.0));
    }
}
