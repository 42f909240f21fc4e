//! Every bound of the system in one place, with the relations between them
//! checked when the project is compiled.

/// Numbered databases of `SELECT`.
pub const DATABASES: usize = 16;

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

const _: () = assert!(COPY_PATIENCE_US < ROUTE_PATIENCE_US);
const _: () = assert!(ROUTE_PATIENCE_US <= FORWARD_PATIENCE_US);
