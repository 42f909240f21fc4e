//! Free ports for the servers that tests, benchmarks and `xtask` start.
//!
//! Who binds port 0 and lets it go again learns of a port that was free a moment ago: the next to ask
//! may get the same one, and so may any outgoing connection of the machine. The ports here
//! stay with the process that was given them until it ends, none is given twice, and none is among
//! those that the system takes for outgoing connections.
//!
//! It never keeps a port bound: what is given is for another to listen on. Needs Linux.
//!
//! Map, in reading order:
//! - `given`: which port is next, in this process
//! - `page`: ports side by side that one process has, and whether somebody listens on them
//! - `system`: where the system's own ports begin
#![forbid(unsafe_code)]

mod given;
mod page;
mod system;

use given::Given;
use std::io;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// A port that nobody listens on, and that no other call gives while this process lives, here or in
/// another process.
pub fn free_port() -> io::Result<u16> {
    given().port()
}

/// As [`free_port`], several.
pub fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free_port()?;
    }
    Ok(ports)
}

/// The first of `count` ports in a row that are all free at each of these distances above: for
/// clusters, whose nodes have several ports that follow from one. Whoever wants the row itself names
/// distance 0 as well. Free means the same as for [`free_port`].
pub fn free_block(count: u16, distances: &[u16]) -> io::Result<u16> {
    given().block(count, distances)
}

fn given() -> MutexGuard<'static, Given> {
    static GIVEN: LazyLock<Mutex<Given>> =
        LazyLock::new(|| Mutex::new(Given::new(system::first_own_port(), std::process::id())));
    // What is left after a panic of another thread is whole: pages are kept before they are used.
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
