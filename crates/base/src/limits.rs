//! Every bound of the system in one place, with the relations between them
//! checked when the project is compiled.

/// Numbered databases of `SELECT`.
pub const DATABASES: usize = 16;

/// The number of a shard's internal database, which no client can select: it has the books of
/// transactions, by slot.
pub const BOOKS: usize = DATABASES;

/// Databases of a shard: those of clients and the internal one.
pub const ALL_DATABASES: usize = DATABASES + 1;

/// Key slots, as in Redis Cluster.
pub const SLOTS: usize = 16384;

/// The most worker threads a node runs.
pub const MAX_WORKERS: usize = 256;

/// The largest bulk string a client may send, in bytes (Redis's
/// `proto-max-bulk-len`); also the largest string value.
pub const MAX_BULK: u64 = 512 * 1024 * 1024;

/// The most arguments one request may have.
pub const MAX_ARGS: u64 = 1024 * 1024;

/// Messages that fit in the ring from one worker to another.
pub const RING_MESSAGES: usize = 1024;

/// Commands of one connection that may be on their way to other workers.
/// Reading from the connection stops at this many.
pub const MAX_PIPELINE_IN_FLIGHT: usize = 4096;

/// Commands that are parsed and whose records are fetched into the cache
/// together, before the first of them runs.
pub const BATCH_COMMANDS: usize = 64;

/// Reading from a connection stops while this many reply bytes wait for it.
pub const OUTPUT_HIGH_WATER: usize = 1024 * 1024;

/// Reply bytes, large values sent by reference aside, that may wait for one
/// connection before it is dropped.
pub const OUTPUT_HARD_LIMIT: usize = 1024 * 1024 * 1024;

/// The same for all connections of a worker: the connection whose reply exceeds
/// it is dropped if its own output is above its high water. It bounds the memory
/// for clients that request large replies and do not read them.
pub const OUTPUT_TOTAL_LIMIT: usize = 2 * OUTPUT_HARD_LIMIT;

/// Bytes of a reply that are made at once: longer replies are made while they are sent, this many in a
/// turn.
pub const MADE_AT_ONCE: usize = 64 * 1024;

/// Elements drawn with repetition may have this many bytes as the reply to another node: it keeps the
/// whole reply until it has all of it.
pub const MADE_FOR_NODES: u64 = 64 * 1024 * 1024;

/// The first two before a client has authenticated: it has asked for next to nothing.
pub const STRANGER_HIGH_WATER: usize = 16 * 1024;
pub const STRANGER_HARD_LIMIT: usize = 256 * 1024;

/// Bytes that a worker keeps of what clients have seen of keys with causal order.
pub const CONTEXT_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that may wait for a client that is sent what others do (`MONITOR`).
pub const FEED_HARD_LIMIT: usize = 32 * 1024 * 1024;

const _: () = {
    assert!(SLOTS.is_power_of_two());
    assert!(MAX_WORKERS <= SLOTS);
    assert!(MAX_BULK < u32::MAX as u64, "spans count in 32 bits");
    assert!(OUTPUT_HIGH_WATER < OUTPUT_HARD_LIMIT);
    assert!(OUTPUT_HARD_LIMIT <= OUTPUT_TOTAL_LIMIT);
    assert!(MADE_AT_ONCE < OUTPUT_HIGH_WATER);
    assert!(MADE_FOR_NODES < OUTPUT_HARD_LIMIT as u64);
    assert!(STRANGER_HIGH_WATER < STRANGER_HARD_LIMIT);
    assert!(STRANGER_HARD_LIMIT <= OUTPUT_HARD_LIMIT);
    assert!(OUTPUT_HIGH_WATER < FEED_HARD_LIMIT && FEED_HARD_LIMIT <= OUTPUT_HARD_LIMIT);
    assert!(
        MAX_BULK as usize * 2 <= OUTPUT_HARD_LIMIT,
        "one reply of the largest value must fit"
    );
};

// How long a request waits in a cluster before it is refused, by what it waits for.

/// A node that serves its slot and can be reached.
pub const ROUTE_PATIENCE_US: u64 = 2_000_000;
/// This node's chain to serve its slot: a lease of a member that was lost has to run out.
pub const SLOT_PATIENCE_US: u64 = 5_000_000;
/// A copy with nothing but acknowledged writes; then the head is asked, as keys that are written
/// all the time may never be so.
pub const COPY_PATIENCE_US: u64 = 100_000;
/// All attempts to have another node execute it.
pub const FORWARD_PATIENCE_US: u64 = 5_000_000;
/// The outcome of a transaction over slots: longer than until a node that fails is replaced.
pub const TRANSACTION_PATIENCE_US: u64 = 10_000_000;
/// The number of these attempts.
pub const FORWARD_TRIES: u32 = 8;
/// The delay before the second attempt; doubled before each later one.
pub const FORWARD_PAUSE_US: u64 = 10_000;

// How far clocks may be ahead where lattice keys are written.

/// By how much stamps may lead the wall clock, and the wall clock the time that has passed.
pub const MAX_STAMP_LEAD_US: u64 = 10_000_000;
/// How long a wall clock that has jumped further ahead is watched before stamps follow it.
pub const CLOCK_TRIAL_US: u64 = 60_000_000;
/// A jump ahead that stamps never follow before a restart.
pub const MAX_CLOCK_JUMP_US: u64 = 86_400_000_000;

const _: () = assert!(MAX_STAMP_LEAD_US < MAX_CLOCK_JUMP_US);

// How long nodes of a cluster wait for one another, and how often they try.

/// How often a heartbeat is sent to each node.
pub const HEARTBEAT_US: u64 = 500_000;
/// A node that has sent nothing for this long is taken to be down.
pub const SILENCE_US: u64 = 4_000_000;
/// A node that has sent nothing for this long is announced as one that is not heard; others replace
/// it soon.
pub const HEARING_US: u64 = 1_500_000;
/// What is logged of a worker's reports to other nodes is ahead of them by this, so that few reports wait for a write of
/// their own. After a start the stamps lead the clock by as much.
pub const REPORT_RESERVE_US: u64 = 250_000;
/// A node that starts does not wait longer for lattice keys of a node without a session: longer than
/// the longest pause between two attempts to connect.
pub const GOSSIP_AWAY_US: u64 = 6_000_000;
/// The same for a node that has a session and sends nothing of lattice keys: it may be computing
/// checksums of all of them first.
pub const GOSSIP_SILENT_US: u64 = 30_000_000;
/// A connection without a handshake by then is closed.
pub const HANDSHAKE_PATIENCE_US: u64 = 10_000_000;
/// A refused connection that does not read the reason by then is closed.
pub const FAREWELL_US: u64 = 2_000_000;
/// Time limit for establishing a connection to a node.
pub const DIAL_PATIENCE_US: u64 = 3_000_000;
/// Delay between two attempts: doubled each time, from the first value to the second.
pub const DIAL_PAUSE_US: (u64, u64) = (50_000, 5_000_000);
/// A session that has lasted this long resets the delay.
pub const GOOD_SESSION_US: u64 = 2_000_000;
/// Duration of the leases between members of a chain: at most this long a slot is not served after
/// its chain has lost a node.
pub const LEASE_US: u64 = 1_000_000;
/// Least time between two epochs, unless a node has just failed. Progress of learners is reported
/// by node and by worker: an epoch for each report would keep all nodes busy with mappings, and
/// nodes that lag behind would lose their leases.
pub const EPOCHS_APART_US: u64 = 200_000;
/// How long a leader plans nothing once a coordinator that was restored has the last mapping again: nodes that see a later
/// one first do not know that it follows theirs.
pub const CAUGHT_UP_US: u64 = 10_000_000;
/// How long a stopping node waits until other nodes have its writes.
pub const STOP_PATIENCE_US: u64 = 5_000_000;
/// The same without a session with any of them, or since the node has left the coordinator: they
/// replace it.
pub const LEFT_PATIENCE_US: u64 = 500_000;

const _: () = assert!(HEARTBEAT_US < SILENCE_US);
const _: () = assert!(LEASE_US < SLOT_PATIENCE_US);
const _: () = assert!(DIAL_PAUSE_US.0 < DIAL_PAUSE_US.1);
const _: () = assert!(DIAL_PAUSE_US.1 < GOSSIP_AWAY_US && GOSSIP_AWAY_US < GOSSIP_SILENT_US);
const _: () = assert!(COPY_PATIENCE_US < ROUTE_PATIENCE_US);
const _: () = assert!(ROUTE_PATIENCE_US <= FORWARD_PATIENCE_US);
