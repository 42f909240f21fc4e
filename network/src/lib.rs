//! Clusters of real processes in network namespaces of their own, with real faults between
//! them: routes, packet filters, links and processes that go down. Clients write and read
//! registers meanwhile, and counters, sets and texts of a lattice keyspace, and their histories
//! are judged.
//!
//! Everything runs in namespaces that end with this program, however it ends: see [`space`].
//! A seed decides which faults come, in which order, to whom and for how long; what nodes and
//! clients make of it is up to the machine.
//!
//! | module | concept |
//! |---|---|
//! | [`space`] | namespaces, links, and what does not come through |
//! | [`filters`] | two ways to drop packets |
//! | [`delay`] | a slow way to a node |
//! | [`nodes`] | processes: nodes, and the etcd through which they agree |
//! | [`faults`] | what goes wrong, by a seed |
//! | [`clients`] | who writes and reads |
//! | [`door`] | a client's connection |
//! | [`appends`] | transactions that read lists and append to them: clients and verdict |
//! | [`registers`] | which keys, and how long |
//! | [`lattice`] | the same of lattice keys: clients, history, verdict |
//! | [`history`] | what was asked and answered, and as a file |
//! | [`verdict`] | whether it can be |
//! | [`run`] | one run |
//! | [`bank`] | money that moves between accounts of several nodes, under each fault in turn |
//! | [`levels`] | a panel for each level of keyspaces, whose clients' history is judged |
//! | [`demo`] | each fault in turn, and a table of what clients saw |
#![forbid(unsafe_code)]

pub mod appends;
pub mod bank;
pub mod clients;
pub mod delay;
pub mod demo;
pub mod door;
pub mod faults;
pub mod filters;
pub mod history;
pub mod lattice;
pub mod levels;
pub mod nodes;
pub mod registers;
pub mod run;
pub mod space;
pub mod verdict;
