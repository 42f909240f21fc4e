//! `rufous cluster drain`: a node is asked to say that it drains, and this waits
//! for what becomes of it.

use super::ask::{Connection, Password, find, status_at};
use anyhow::{Context, Result};
use clap::Args;
use rufous_server::cluster::status::Status;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Drain {
    /// The node: its address for clients, its number (n2), or how its id begins
    #[arg(value_name = "NODE")]
    node: String,
    /// Any node of the cluster; without it NODE has to be an address
    #[arg(long, value_name = "HOST:PORT")]
    at: Option<String>,
    /// Stop the node when it has no slot left
    #[arg(long, conflicts_with = "cancel")]
    stop: bool,
    /// Have the node keep its slots after all, and take more again
    #[arg(long)]
    cancel: bool,
    #[command(flatten)]
    password: Password,
}

/// The node by its id, where it is reached, and what all is like.
fn meant(name: &str, at: Option<&str>, password: &Password) -> Result<(String, String, Status)> {
    let status = status_at(at.unwrap_or(name), password)?;
    let node = find(&status, name)?;
    let (id, plain) = (node.id.clone(), node.plain.clone());
    Ok((id, plain, status))
}

pub(super) fn drain(drain: &Drain) -> Result<()> {
    let (id, plain, status) = meant(&drain.node, drain.at.as_deref(), &drain.password)?;
    let mut node = Connection::open(&plain, &drain.password)?;
    if drain.cancel {
        node.call(&["CLUSTER", "DRAIN", "OFF"])?;
        println!("{plain} keeps its slots and may receive more");
        return Ok(());
    }
    node.call(&["CLUSTER", "DRAIN", "ON"])?;
    let others: Vec<String> = status
        .nodes
        .iter()
        .filter(|other| other.id != id && other.is_alive)
        .map(|other| other.plain.clone())
        .collect();
    let mut told = None;
    loop {
        let status = ask_any(&others, &drain.password)?;
        let left = status.nodes.iter().find(|node| node.id == id);
        let Some(left) = left.filter(|left| !left.drains || left.copies + left.learns > 0) else {
            break;
        };
        if left.drains && told != Some(left.copies) {
            println!("{plain} has {} slots left", left.copies);
            told = Some(left.copies);
        }
        std::thread::sleep(PAUSE);
    }
    println!("{plain} has no slots left; it stays a member of the cluster until it stops");
    if drain.stop {
        // Its answer is that it is gone.
        let _gone = node.call(&["SHUTDOWN"]);
        println!("{plain} stops");
    } else {
        println!("it can be stopped now: redis-cli -p PORT shutdown, or SIGTERM");
    }
    Ok(())
}

fn ask_any(nodes: &[String], password: &Password) -> Result<Status> {
    let mut last = None;
    for node in nodes {
        match status_at(node, password) {
            Ok(status) => return Ok(status),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("no other node answered")?)
}
