//! Strict replication along chains: the head orders writes, they are passed down the chain, and
//! they are acknowledged when every member has them [Warp §2.5].
//!
//! Pure: no clock, socket, file or randomness, and no knowledge of what an effect means. One
//! [`Replica`] is one worker's part in chains: those of its own slots. Its inputs are chains that
//! take effect, messages and the time; its outputs are messages to be sent. It applies effects
//! through [`Store`].
//!
//! Chains name nodes; the slots of a node are spread over its workers, and nodes may have different
//! numbers of them. So a slot's chain is one of workers: at each named node the worker that has the
//! slot. Each worker applies an epoch when it is told of it, and until then acts by the earlier
//! one. What one [`Peer`] knows, has promised or was promised does not hold for the others of its
//! node.
//!
//! Invariants:
//! 1. An acknowledged write is at every member of the chain and, once it is synced, at its learner.
//! 2. Of two members of a chain the one nearer the head has all writes that the other has. So
//!    nothing is ever undone: after a change the new head adopts the writes of every member, and
//!    the others get them from it.
//! 3. A chain is identified by its epoch; messages of an earlier one have no effect. A message may
//!    be lost or arrive twice; those that arrive from one sender are in order.
//! 4. No node serves a slot whose ownership may have passed on: see [`lease`].
//!
//! | module | what it has |
//! |---|---|
//! | [`lease`] | which node may serve, and from when on |
//! | [`message`] | messages between replicas |
//! | [`peer`] | workers of other nodes |
//! | [`replica`] | all slots of a worker; `slot.rs` has the state of one slot in its chain, `slot/unsound.rs` handles slots whose data is incomplete or wrong |
//! | [`planted`] | deliberate faults, for the simulator |
//!
//! The simulator's world of chains (`sim/src/chains`) tests it.
#![forbid(unsafe_code)]

pub mod lease;
pub mod message;
pub mod peer;
pub mod replica;

pub mod planted;
mod slot;

pub use lease::Leases;
pub use message::{Envelope, Item, Message};
pub use peer::Peer;
pub use replica::{Refused, Replica, Store};
