//! What nodes may refuse: a request for a slot that no node serves waits first.

use rufous_base::limits::SLOT_PATIENCE_US;

/// How refusals begin for slots that no node has served for too long.
const UNSERVED: [&str; 5] = [
    "TRYAGAIN The transaction's keys ",
    "CLUSTERDOWN Hash slot not served",
    "CLUSTERDOWN The node has started",
    "CLUSTERDOWN A node with a copy of the slot was lost",
    "CLUSTERDOWN All copies of the slot have stopped",
];
/// The clocks of nodes may run faster.
const LEAST_US: u64 = SLOT_PATIENCE_US / 10 * 9;

/// Whether a node has refused a request, which was sent so long ago, too early. Only for clients that send one at a
/// time: one behind a request that has waited in vain does not wait again.
pub(super) fn is_early(text: &str, waited_us: Option<u64>) -> bool {
    let is_unserved = UNSERVED.iter().any(|begin| text.starts_with(begin));
    is_unserved && waited_us.is_some_and(|us| us < LEAST_US)
}
