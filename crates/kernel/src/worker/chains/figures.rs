//! Settings, counters and messages of a chain host, for the embedder.

use crate::worker::lattice::Past;
use rufous_base::figures;
use rufous_chain::{Envelope, Peer};

/// A worker's settings for its node's part in chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// The number of this start of the node.
    pub incarnation: u64,
    /// The duration of leases.
    pub lease_us: u64,
    /// The node may have granted leases before this start.
    pub has_run: bool,
    /// The limit of all the node's workers for copies of slots, in bytes per second; 0: no limit.
    pub move_rate: u64,
    /// Whether the files have everything that earlier starts have sent to other nodes.
    pub past: Past,
}

figures! {
    /// A worker's counters of chains.
    pub struct ChainFigures {
        served("cluster_slots_served", "rufous_slots_served"):
            "Slots whose requests the node answers.";
        member("cluster_slots_member", "rufous_slots_member"): "Slots whose chain the node is in.";
        whole("cluster_slots_whole", "rufous_slots_whole"): "Slots of which the node has all data.";
        broken("cluster_slots_broken", "rufous_slots_broken"):
            "Slots whose data on the node is damaged: their writes wait until the node leaves their chains.";
        appended("cluster_chain_writes", "rufous_chain_writes_total"): "Writes sent along chains.";
        lost("cluster_chain_writes_lost", "rufous_chain_writes_lost_total"):
            "Times that a slot moved away while writes to it waited for its chain.";
        waiting("cluster_chain_frames_waiting", "rufous_chain_frames_waiting"):
            "Frames that wait for chains.";
        withheld("cluster_replies_waiting", "rufous_replies_waiting_for_copies"):
            "Replies and messages that wait until other nodes have the writes that they depend on.";
        late("cluster_slots_late", "rufous_slots_late"):
            "Slots whose writes other nodes have not acknowledged for 3 s: requests for them wait, and are refused then.";
        unacknowledged("cluster_writes_waiting_bytes", "rufous_writes_waiting_for_copies_bytes"):
            "Size of the writes that other nodes have not acknowledged: beyond 64 MiB at a worker, with replies that wait, their slots take no more requests.";
        held("cluster_chain_messages_waiting", "rufous_chain_messages_waiting"):
            "Chain messages that wait for the log.";
        parked("cluster_requests_waiting", "rufous_requests_waiting_for_slots"):
            "Requests for slots that no node answers for at the moment.";
        overdue("cluster_requests_overdue", "rufous_requests_overdue_total"):
            "Requests refused because no node answered for their slot in time, or because too many waited for that.";
        refused_mappings("cluster_chain_mappings_refused"):
            "Mappings that could not follow the one in force.";
        refused_effects("cluster_chain_effects_refused"):
            "Effects of other nodes that could not be applied.";
        spread("cluster_chain_changes_of_many_slots"): "Changes that no chain can carry.";
    }
}

/// A message for a worker of another node.
#[derive(Clone, Debug)]
pub struct Said {
    pub to: Peer,
    /// Sender or receiver is a learner of the slot concerned.
    pub learning: bool,
    pub envelope: Envelope,
}
