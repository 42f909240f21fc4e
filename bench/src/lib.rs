//! Rufous measured: a load generator, comparisons with its peers, YCSB, and instruction counts.
//!
//! It drives servers from outside over sockets and knows nothing of their insides, so that Redis,
//! Valkey and Rufous are measured by the very same code. The papers' figures (`bench/figures`) are a
//! program of their own: they drive shards in process, where the papers do.
//!
//! | module | concept |
//! |---|---|
//! | [`loadgen`] | closed-loop and paced load, replies checked |
//! | [`servers`], [`client`], [`procfs`] | servers under test, questions to them, their CPU and memory |
//! | [`measure`], [`stats`] | interleaved windows, medians, ratios, targets |
//! | [`sections`], [`options`] | the parts of `bench-peers` |
//! | [`ycsb`] | YCSB's workloads A–F |
//! | [`callgrind`] | instructions per command |
//! | [`adhoc`] | one load against a running server |
//! | [`nodes`], [`elastic`] | clusters of processes; one under clients that remember, while nodes come and go |
//! | [`report`], [`table`], [`plot`], [`progress`], [`date`] | pages, charts, the terminal |
#![forbid(unsafe_code)]

pub mod adhoc;
pub mod callgrind;
pub mod client;
pub mod date;
pub mod elastic;
pub mod loadgen;
pub mod measure;
pub mod nodes;
pub mod options;
pub mod plot;
pub mod procfs;
pub mod progress;
pub mod report;
pub mod sections;
pub mod servers;
pub mod stats;
pub mod table;
pub mod ycsb;
