//! What all nodes show when no client works. Each is asked over several connections, so that all of its workers are.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rufous_bench::client::{Client, Reply, encode};

use super::pool::Door;

/// All replicas must be equal within so long.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(50);

/// Connections to all workers of all nodes.
pub struct Quiet {
    open: Vec<(usize, Client)>,
}

/// What they show of some keys.
pub struct Shown {
    pub replies: Vec<Reply>,
    /// Keys of which they do not show the same, in words.
    pub unlike: Vec<String>,
}

impl Quiet {
    pub fn connect(doors: &[Door]) -> Result<Self> {
        let open = doors.iter().map(|door| {
            let client = Client::connect_within(door.address, PATIENCE)?;
            Ok((door.node, client))
        });
        Ok(Self {
            open: open.collect::<Result<_>>()?,
        })
    }

    /// Waits until what is added to a new set over each connection is visible over all of them.
    pub fn settle(&mut self, set: &str) -> Result<Duration> {
        let began = Instant::now();
        for (at, (node, client)) in self.open.iter_mut().enumerate() {
            let reply = client.call(&["SADD", set, &at.to_string()])?;
            ensure!(
                reply == Reply::Integer(1),
                "SADD {set} at node {node}: {reply:?}"
            );
        }
        let all = self.open.len();
        for (node, client) in &mut self.open {
            loop {
                let count = client.call(&["SCARD", set])?.integer()?;
                if count == all as i64 {
                    break;
                }
                ensure!(
                    began.elapsed() < PATIENCE,
                    "node {node} shows {count} of {all} elements of {set}"
                );
                thread::sleep(AGAIN);
            }
        }
        Ok(began.elapsed())
    }

    /// Asks over all connections until they show the same.
    pub fn look(&mut self, requests: &[[String; 2]]) -> Result<Shown> {
        let began = Instant::now();
        let mut bytes = Vec::new();
        for [command, key] in requests {
            encode(&mut bytes, &[command.as_bytes(), key.as_bytes()]);
        }
        loop {
            let mut all: Vec<(usize, Vec<Reply>)> = Vec::new();
            for (node, client) in &mut self.open {
                client.send(&bytes)?;
                let replies = requests.iter().map(|_| Ok(sorted(client.receive()?)));
                all.push((*node, replies.collect::<Result<_>>()?));
            }
            let Some((first, others)) = all.split_first() else {
                bail!("no node is there to be asked");
            };
            let same = others.iter().all(|(_, replies)| *replies == first.1);
            if !same && began.elapsed() < PATIENCE {
                thread::sleep(AGAIN);
                continue;
            }
            let unlike = unlike(requests, first, others);
            return Ok(Shown {
                unlike,
                replies: std::mem::take(&mut all[0].1),
            });
        }
    }
}

fn unlike(
    requests: &[[String; 2]],
    first: &(usize, Vec<Reply>),
    others: &[(usize, Vec<Reply>)],
) -> Vec<String> {
    let mut unlike = Vec::new();
    for (at, [_, key]) in requests.iter().enumerate() {
        let (here, mine) = (first.0, &first.1[at]);
        let other = others.iter().find(|(_, replies)| replies[at] != *mine);
        if let Some((there, replies)) = other {
            let theirs = &replies[at];
            unlike.push(format!(
                "{key} is {mine:?} at node {here} and {theirs:?} at node {there}"
            ));
        }
    }
    unlike
}

/// Sets have no order.
fn sorted(reply: Reply) -> Reply {
    match reply {
        Reply::Array(mut all) => {
            all.sort_by_key(|one| format!("{one:?}"));
            Reply::Array(all)
        }
        other => other,
    }
}
