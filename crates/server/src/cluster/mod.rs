//! A node among others: the server's part. What follows from mappings and sessions is decided
//! in `crates/cluster`; here are settings, files, the control thread, and the requests that
//! nodes run for one another.
//!
//! Invariants of the whole:
//! 1. A message to a node leaves on the session that its sender knew, or is lost; the same holds
//!    for what arrives. A layer that starts afresh when it hears of a session never meets what
//!    was left of an earlier one.
//! 2. A worker hears of a session before anything that came on it.
//! 3. Every queue to a node has a bound: a session whose node reads too slowly is ended.
//! 4. No mapping is acted by that is not valid, or that is older than the last one.
//! 5. Without the coordinator everything goes on by the last mapping.
//! 6. A request is forwarded in one hop to the node that has its keys, or not at all; a write
//!    that may have been executed is never sent a second time.
//!
//! | module | what it has |
//! |---|---|
//! | [`settings`], [`identity`] | what a node is configured with, and its name |
//! | [`state`] | what all its threads share |
//! | `start` | how a node joins its cluster; `etcd` where that is the coordinator |
//! | [`control`] | the control thread: it observes the coordinator and acts |
//! | `unclaimed` | data that belongs to no cluster yet |
//! | [`about`] | what the node announces, and whether it is ready; [`status`] the state of the cluster, [`versions`] the programs of its nodes, [`preview`] what other weights would move |
//! | [`tls`] | certificates between nodes |
//! | `redirect` | replies to clients that go to other nodes themselves |
//! | `way` | the nodes of a request's keys, for all other clients |
//! | [`forward`] | requests for other nodes; `again` those to be sent again, `returned` those whose keys left before they ran here, `split` those of several nodes, `wide` those about all keys |
//! | `serve` | requests of other nodes; `jobs` on whose behalf a request runs; `words` requests as bytes |
//! | `gossip` | lattice keyspaces that other nodes have, too |
//! | `front` | where the front of a worker meets all this |

pub mod about;
mod again;
pub mod control;
#[cfg(feature = "etcd")]
mod etcd;
pub mod forward;
pub(crate) mod front;
mod gossip;
pub mod identity;
pub(crate) mod jobs;
pub mod preview;
pub(crate) mod redirect;
pub(crate) mod returned;
pub(crate) mod serve;
pub mod settings;
pub(crate) mod split;
mod start;
pub mod state;
pub mod status;
pub mod tls;
pub mod unclaimed;
pub mod versions;
pub(crate) mod way;
mod wide;
mod words;

pub use rufous_cluster::links::clocks;
pub use rufous_cluster::peer::{Credit, Heard, PeerMessage, Session};
pub use rufous_cluster::{figures, links, reports, rooms};
pub use settings::Settings;
pub use start::{ClusterError, Joining};
pub use state::Cluster;
