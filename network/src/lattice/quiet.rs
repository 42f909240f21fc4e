//! What all nodes say when everything is healed and nobody writes any more. Each node is
//! asked over enough connections that all of its workers are.
//!
//! First something is added over each connection: once all of that is seen over all, changes
//! go everywhere again. A key that every worker of every node then says to be the same changes
//! no more.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rufous_bench::client::Reply;

use super::acts::Came;
use super::clients::{Connection, Door, Seen, Shared};

/// All have to say the same within so long.
const PATIENCE: Duration = Duration::from_secs(120);
const AGAIN: Duration = Duration::from_millis(100);
/// Connections to each door for a worker of its node. A new one goes to the worker that
/// has the fewest.
const FOR_A_WORKER: usize = 2;
/// What is added last.
const END: &str = "l:end";

pub(super) fn look(shared: &Shared, doors: &[Door], workers: usize) -> Result<Seen> {
    let began = Instant::now();
    let connections = workers * FOR_A_WORKER;
    let of = |door: &Door| {
        let door = *door;
        (0..connections).map(move |_| Connection::new(shared, door))
    };
    let mut all: Vec<Connection> = doors.iter().flat_map(of).collect();
    for (at, connection) in all.iter_mut().enumerate() {
        until(connection, began, &["SADD", END, &at.to_string()], |said| {
            *said == Reply::Integer(1)
        })?;
    }
    let count = all.len();
    for connection in &mut all {
        until(
            connection,
            began,
            &["SMEMBERS", END],
            |said| matches!(said, Reply::Array(members) if members.len() == count),
        )?;
    }
    for key in shared.keys.used() {
        loop {
            let mut said: Vec<Came> = Vec::new();
            for connection in &mut all {
                said.push(connection.act(key, key.kind.look()).came.clone());
            }
            let same = said[0].is_answer() && said.iter().all(|of| *of == said[0]);
            if same || began.elapsed() > PATIENCE {
                let last = all.iter_mut().filter_map(|of| of.seen.acts.last_mut());
                last.for_each(|act| act.is_last = true);
                break;
            }
            thread::sleep(AGAIN);
        }
    }
    let mut seen = Seen::default();
    all.into_iter().for_each(|of| seen.extend(of.seen));
    Ok(seen)
}

fn until(
    connection: &mut Connection,
    began: Instant,
    words: &[&str],
    is_it: impl Fn(&Reply) -> bool,
) -> Result<()> {
    let bytes: Vec<Vec<u8>> = words.iter().map(|word| (*word).into()).collect();
    loop {
        let node = connection.door.node;
        match connection.ask(&bytes) {
            Ok(reply) if is_it(&reply) => return Ok(()),
            // Only an error says that it was not added.
            Ok(Reply::Integer(_)) => bail!("node {node} had what {words:?} adds"),
            said => ensure!(
                began.elapsed() < PATIENCE,
                "{words:?} at node {node} is {said:?} after all is healed",
            ),
        }
        thread::sleep(AGAIN);
    }
}
