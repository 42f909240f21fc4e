//! `cargo xtask demo types`: small programs as users write them, on the data types, through redis-py.
//!
//! Each program works with several clients at once, keeps its own account of what it did, and compares
//! it with what the store says; it ends with 1 where the two differ. They are Python beside this file:
//! `house.py` is what they share.

use crate::node::Node;
use crate::process::{self, cargo, line};
use crate::{install, project};
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

const PROGRAMS: [&str; 4] = ["leaderboard.py", "sessions.py", "jobs.py", "auction.py"];

/// What a program takes seconds for on a quiet machine.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run() -> Result<bool> {
    println!("1. Build, and get redis-py");
    process::run(cargo().args(["build", "--release", "--package", "rufous-node"]))?;
    let python = install::redis_py()?.python;
    println!("\n2. Start a node");
    let mut node = Node::start(&[])?;
    println!("\n3. Run programs on it");
    let mut failed = Vec::new();
    for program in PROGRAMS {
        let mut command = Command::new(&python);
        command
            .args(["-B", "-u"])
            .arg(project::root().join("xtask/src/types").join(program))
            .arg(node.port.to_string());
        let finished = process::watch(&mut command, LIMIT, true)?;
        if finished.status.is_none() {
            println!("{} did not end", line(&command));
        }
        if !finished.success() {
            failed.push(program);
        }
    }
    println!("\n4. Stop");
    node.stop()?;
    if failed.is_empty() {
        println!("All programs found what they had stored.");
    } else {
        println!("Checks failed in {}.", failed.join(", "));
    }
    Ok(failed.is_empty())
}
