//! The `rufous` program as its operator meets it, started for real on free
//! ports: its settings, its start and stop, its logs, metrics and health.
//!
//! - `program`: starting it, speaking to it
//! - `settings`: where settings come from and what is said of wrong ones
//! - `running`: from the start of a node to its end
//! - `tls`: the port for TLS
//! - `clusters`: several nodes on this machine
//! - `joining`: nodes have their data and keyspaces before they take their place
//! - `forgotten`: a node that is gone for good is removed
//! - `silent`: a node that has drained, and is silent for a while
//! - `through_etcd`: those that agree through a real etcd

mod backup;
mod clusters;
mod forgotten;
mod health;
mod joining;
mod program;
mod running;
mod secrets;
mod settings;
mod silent;
mod through_etcd;
mod tls;
