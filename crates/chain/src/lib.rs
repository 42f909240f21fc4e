//! Strict replication along chains: writes get one order at the head, go down
//! the chain, and are acknowledged when every member has them [Warp §2.5].
//!
//! Pure: no clock, socket, file or randomness, and no knowledge of what an
//! effect means. One [`Replica`] is what one worker has to do with chains: those
//! of its own slots. It is told of chains that come into force, of messages and of
//! the time, and leaves messages to be sent. What it applies goes through
//! [`Store`].
//!
//! Chains name nodes; the slots of a node are spread over its workers, and nodes
//! may have different numbers of them. So a slot's chain is one of workers, each
//! the one that has the slot at a node that is named, and each is on its own: it
//! takes up an epoch when it is told, and until then acts by the one before.
//! What one [`Peer`] knows, has promised or was promised holds for no other one
//! of its node.
//!
//! Invariants:
//! 1. What is acknowledged is at every member of the chain and, once it is
//!    synced, at its learner.
//! 2. Of two members of a chain the one nearer the head has all that the other
//!    has. So nothing is ever undone: after a change the new head takes over
//!    what any member has, and the others get it from there.
//! 3. A chain is known by its epoch; what is said of an earlier one has no
//!    effect. A message may be lost or come twice; those of one sender that
//!    come are in order.
//! 4. Nobody answers for a slot whose ownership may have passed on: see
//!    [`lease`].
//!
//! | module | what it has |
//! |---|---|
//! | [`lease`] | who may answer, and from when on |
//! | [`message`] | what replicas say to one another |
//! | [`peer`] | workers of other nodes |
//! | [`replica`] | all slots of a worker; `slot.rs` has one slot's place in its chain, `slot/unsound.rs` what becomes of one whose data is not what it ought to be |
//! | [`planted`] | what is made wrong on purpose, in the simulator |
//!
//! The simulator's world of chains (`sim/src/chains`) tries it.
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
