//! `rufous cluster`: several nodes on this machine, and what operators ask of a
//! cluster, wherever it is.
//!
//! - [`start`]: `rufous cluster start`, a process that has nodes as its children
//! - [`layout`]: their folders and ports, and `add`
//! - [`agreeing`]: their coordinator; [`coordinator`]: `rufous cluster coordinator`
//! - [`ports`]: which ports are taken, and by what
//! - [`secret`]: what the nodes prove to each other
//! - [`status`]: `rufous cluster status`
//! - [`drain`]: `rufous cluster drain`
//! - [`forget`]: `rufous cluster forget`
//! - [`rebalance`]: `rufous cluster rebalance`
//! - [`ask`]: a connection to a node

mod agreeing;
mod ask;
mod coordinator;
mod drain;
mod forget;
mod layout;
mod ports;
mod rebalance;
mod secret;
mod start;
mod status;

use super::fail;
use clap::Subcommand;
use std::process::ExitCode;

pub(super) const EXAMPLES: &str = "\
`start` is for one machine: for development, tests and a first look. Nodes on several
machines are started as `rufous server` each, with the settings of a cluster
(`rufous server --help`, under Cluster).

Examples:
  rufous cluster start
      Three nodes in ./rufous-cluster, at ports 7001, 7002 and 7003; Ctrl-C stops them.
  rufous cluster start --nodes 5 --copies 3 --dir /tmp/birds --port 7101
  rufous cluster start --coordinator etcd://10.0.0.8:2379 --name birds
      They agree through an etcd that is there. Certificates, or a name and a password,
      for it are settings in ./rufous-cluster/rufous.toml.
  rufous cluster add
      One node more for the cluster in ./rufous-cluster, while it runs.
  rufous cluster status 127.0.0.1:7001
      Exit code 0: every slot has all its copies. 1: not, or no answer.
  rufous cluster drain 127.0.0.1:7003 --stop
      That node gives all its slots away, and is stopped then.
  rufous cluster forget n2 --at 127.0.0.1:7001
      That node has died and does not come back: the others go on without it.
  rufous cluster rebalance --weight n1=50 --dry-run
      What would move if that node took half of what it does.";

#[derive(Clone, Debug, Subcommand)]
pub(super) enum Cluster {
    /// Run a cluster on this machine, for development
    Start(start::Start),
    /// Run the development coordinator of a cluster on this machine; `start` does it
    Coordinator(coordinator::Coordinate),
    /// Start one more node of a cluster that runs on this machine
    Add(layout::Add),
    /// Show the nodes of a cluster, and whether every slot has all its copies
    Status(status::Show),
    /// Have a node give all its slots to others
    Drain(drain::Drain),
    /// Remove a node that is away and does not come back
    Forget(forget::Forget),
    /// Have nodes take more or less than others, or show what would move
    Rebalance(rebalance::Rebalance),
}

pub(super) fn run(command: Cluster) -> ExitCode {
    let done = match command {
        Cluster::Start(start) => start::run(&start),
        Cluster::Coordinator(coordinate) => coordinator::run(&coordinate),
        Cluster::Add(add) => layout::add(&add),
        Cluster::Status(show) => return status::run(&show),
        Cluster::Drain(drain) => drain::drain(&drain),
        Cluster::Forget(forget) => forget::run(&forget),
        Cluster::Rebalance(rebalance) => rebalance::run(&rebalance),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("{error:#}")),
    }
}
