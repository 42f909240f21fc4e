//! YCSB's core workloads A–F with their published mixes and distributions (Cooper et al.,
//! "Benchmarking cloud serving systems with YCSB", SoCC 2010).
//!
//! A record is ten fields of 100 B. There are no hashes here yet, so a record is one string of
//! 1,000 B under `user<hash of its number>`: a read gets all of it, an update writes one field in its
//! place (SETRANGE), and since keys have no order, a scan is an MGET of the records inserted after
//! the first one, in order of insertion. Figures of workload E are therefore not comparable with
//! those of stores that have an ordered index.

pub mod records;
pub mod run;
pub mod source;
pub mod workload;
