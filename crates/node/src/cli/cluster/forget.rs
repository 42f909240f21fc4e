//! `rufous cluster forget`: a node that is gone for good is removed, and this waits for that.

use super::ask::{Connection, Password, find};
use anyhow::{Result, ensure};
use clap::Args;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Forget {
    /// The node: its address for clients, its number (n2), or how its id begins
    #[arg(value_name = "NODE")]
    node: String,
    /// Any node of the cluster that is alive
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7001")]
    at: String,
    /// How long to wait until it is removed
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    #[command(flatten)]
    password: Password,
}

pub(super) fn run(forget: &Forget) -> Result<()> {
    let mut asked = Connection::open(&forget.at, &forget.password)?;
    let status = asked.status()?;
    let node = find(&status, &forget.node)?;
    let name = format!("n{} ({})", node.number, node.plain);
    asked.call(&["CLUSTER", "FORGET", &node.id])?;
    let until = Instant::now() + Duration::from_secs(forget.wait);
    loop {
        let status = asked.status()?;
        let Some(left) = status.nodes.iter().find(|other| other.id == node.id) else {
            break;
        };
        ensure!(
            !left.is_alive,
            "{name} is alive again and stays a member: use `rufous cluster drain` to remove it"
        );
        ensure!(
            Instant::now() < until,
            "{name} still has {} slots after {} s: see the log of {} and `rufous cluster status`",
            left.copies,
            forget.wait,
            forget.at
        );
        std::thread::sleep(PAUSE);
    }
    println!("{name} is no longer a member of the cluster");
    println!(
        "started again from its folder it joins as a new node: it drops its lattice keys and copies all data from the others"
    );
    Ok(())
}
