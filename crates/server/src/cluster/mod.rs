//! The server's part of a cluster. `crates/cluster` decides what follows from mappings and
//! sessions; this module has settings, files, the control thread, and the requests that nodes
//! run for one another.
//!
//! Invariants:
//! 1. A message to a node is sent on the session that its sender knew, or is lost; the same holds
//!    for received messages. A layer that resets its state when a session begins never gets
//!    messages of an earlier one.
//! 2. A worker is notified of a session before it gets any message of that session.
//! 3. Every queue to a node has a bound: a session whose node reads too slowly is ended.
//! 4. A node applies only valid mappings, and none that is older than the last one.
//! 5. While the coordinator is unavailable, the last mapping stays in force.
//! 6. A request is forwarded in one hop to the node that has its keys, or not at all; a write
//!    that may have been executed is never sent a second time.
//!
//! | module | what it has |
//! |---|---|
//! | [`settings`], [`identity`] | the configuration of a node, and its id |
//! | [`state`] | the state that all its threads share |
//! | `start` | how a node joins its cluster; `etcd`: with etcd as the coordinator |
//! | [`control`] | the control thread: it observes the coordinator and acts |
//! | `kept` | the last mapping, beside the data: a coordinator that went back is noticed |
//! | `unclaimed` | data that belongs to no cluster yet; [`past`]: whether the folder has everything of earlier starts |
//! | [`about`] | the node's announcement, and whether it is ready; [`status`]: the state of the cluster, [`versions`]: the programs of its nodes, [`preview`]: what other weights would move |
//! | [`tls`] | certificates between nodes |
//! | `redirect` | `MOVED` replies, for clients that know the cluster; `door`: the endpoints of both kinds |
//! | `way` | the nodes of a request's keys, for all other clients |
//! | `forward` | requests for other nodes; `split`: those of several nodes, or about all keys |
//! | `serve` | requests of other nodes; `jobs`: the receivers of their replies; `words`: requests as bytes |
//! | `gossip` | lattice keyspaces that other nodes share, and why they are not served |
//! | `peers` | sessions with other nodes, and the requests of both sides, at one worker; `letters`, `reporting`: what the kernel and the worker tell them |
//! | `front` | the border to the front of a worker |

pub mod about;
pub mod control;
pub(crate) mod door;
mod etcd;
pub(crate) mod forward;
pub(crate) mod front;
mod gossip;
pub mod identity;
pub(crate) mod jobs;
mod kept;
mod letters;
pub mod past;
pub(crate) mod peers;
pub mod preview;
pub(crate) mod redirect;
mod reporting;
mod serve;
pub mod settings;
mod split;
mod start;
pub mod state;
pub mod status;
pub mod tls;
pub mod unclaimed;
pub mod versions;
pub(crate) mod way;
mod words;

pub use rufous_cluster::links::clocks;
pub use rufous_cluster::peer::{Credit, Heard, PeerMessage, Session};
pub use rufous_cluster::{figures, links, reports, rooms};
pub use settings::Settings;
pub use start::{ClusterError, Joining};
pub use state::Cluster;
