//! The faults of the demonstration, one after the other. Each begins with a whole cluster, and ends with one.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::account::FOLLOWS;
use super::disk;
use crate::filters::{Cut, Tool};
use crate::nodes::Nodes;
use crate::space::Host;
use std::sync::atomic::{AtomicBool, Ordering};

/// The node that faults happen to, and another one.
const IT: usize = 2;
const OTHER: usize = 3;
/// How long a fault lasts: longer than any lease.
const LASTS: Duration = Duration::from_secs(6);
/// The shim with which a node sees another time of day.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    Calm,
    LargeTransactions,
    FullDisk,
    HungDisk,
    Stopped,
    Parted,
    Deaf,
    Unreached,
    Killed,
    Forgotten,
    Drained,
    ClockAhead,
    AllKilled,
    EmptyFolder,
    Joined,
}

impl Scene {
    pub const ALL: [Self; 14] = [
        Self::Calm,
        Self::LargeTransactions,
        Self::FullDisk,
        Self::HungDisk,
        Self::Stopped,
        Self::Parted,
        Self::Deaf,
        Self::Unreached,
        Self::Killed,
        Self::Forgotten,
        Self::Drained,
        Self::ClockAhead,
        Self::AllKilled,
        Self::EmptyFolder,
    ];

    /// Those of the bank.
    pub const OF_BANK: [Self; 9] = [
        Self::Calm,
        Self::Killed,
        Self::Parted,
        Self::Deaf,
        Self::FullDisk,
        Self::Stopped,
        Self::Joined,
        Self::Drained,
        Self::AllKilled,
    ];

    /// The nodes whose own clients are not counted: a promise to them would need the node. In two scenes
    /// no node runs for a while.
    pub fn sick(self) -> &'static [usize] {
        match self {
            Self::Calm
            | Self::LargeTransactions
            | Self::Unreached
            | Self::Forgotten
            | Self::Joined => &[],
            // The clients that are bound to a drained node lose it when it stops, not before.
            Self::FullDisk
            | Self::HungDisk
            | Self::Stopped
            | Self::Killed
            | Self::Drained
            | Self::ClockAhead
            | Self::Deaf => &[IT],
            Self::Parted => &[IT, OTHER],
            Self::AllKilled | Self::EmptyFolder => &[FOLLOWS, 1, 2, 3],
        }
    }

    /// Whether a client of a healthy node may get an error: not where the fault is planned, or harms no
    /// node that holds a key.
    pub fn allows_errors(self) -> bool {
        !matches!(
            self,
            Self::Calm
                | Self::LargeTransactions
                | Self::Unreached
                | Self::Forgotten
                | Self::Drained
                | Self::Joined
        )
    }

    /// The nodes that do nothing while the scene lasts, so that nothing is promised to their own clients.
    pub fn still(self) -> &'static [usize] {
        match self {
            Self::Stopped | Self::HungDisk => &[IT],
            _ => &[],
        }
    }

    /// What keeps this machine from it.
    pub fn obstacle(self) -> Option<&'static str> {
        match self {
            Self::ClockAhead if !Path::new(FAKETIME).exists() => {
                Some("no libfaketime: apt-get install faketime")
            }
            _ => None,
        }
    }

    /// Has the fault happen, and ends it. Clients write large values while `large` is set.
    pub fn happen(self, nodes: &mut Nodes, large: &AtomicBool) -> Result<()> {
        match self {
            Self::Calm => hold(),
            Self::LargeTransactions => {
                large.store(true, Ordering::Relaxed);
                hold();
                large.store(false, Ordering::Relaxed);
            }
            Self::FullDisk => {
                disk::fill(nodes.folder(IT)?)?;
                hold();
                disk::free(nodes.folder(IT)?)?;
            }
            Self::HungDisk => {
                let folder = nodes.folder(IT)?.to_owned();
                disk::freeze(&folder)?;
                hold();
                disk::thaw(&folder)?;
            }
            Self::Stopped => {
                nodes.pause(IT, true)?;
                hold();
                nodes.pause(IT, false)?;
            }
            Self::Parted => closed(&[(IT, OTHER), (OTHER, IT)])?,
            Self::Deaf => closed(&[(1, IT), (OTHER, IT)])?,
            Self::Unreached => unreached(nodes)?,
            Self::Killed => {
                nodes.kill(IT)?;
                hold();
                nodes.start_again(IT)?;
            }
            Self::Forgotten => forgotten(nodes)?,
            Self::Drained => {
                nodes.drain(IT)?;
                nodes.stop(IT)?;
                nodes.start_again(IT)?;
            }
            Self::ClockAhead => clock_ahead(nodes)?,
            Self::AllKilled => {
                for no in 1..=3 {
                    nodes.kill(no)?;
                }
                nodes.start_all(&[3, 2, 1])?;
            }
            Self::EmptyFolder => {
                for no in 1..=3 {
                    nodes.stop(no)?;
                }
                nodes.empty(1)?;
                // The node without data is the first that the coordinator hears of.
                nodes.launch(1, &[])?;
                std::thread::sleep(LASTS);
                nodes.start_all(&[2, 3])?;
            }
            Self::Joined => joined(nodes)?,
        }
        Ok(())
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calm => "no fault",
            Self::LargeTransactions => "transactions of 2.1 MB",
            Self::FullDisk => "node 2: disk full",
            Self::HungDisk => "node 2: disk hangs",
            Self::Stopped => "node 2: stopped (SIGSTOP)",
            Self::Parted => "nodes 2 and 3 parted",
            Self::Deaf => "node 2 hears no other",
            Self::Unreached => "new node that is not reached",
            Self::Killed => "node 2: kill -9",
            Self::Forgotten => "dead new node is forgotten",
            Self::Drained => "node 2: drained, stopped, added",
            Self::ClockAhead => "node 2: clock 600 s ahead",
            Self::AllKilled => "kill -9 of all nodes",
            Self::EmptyFolder => "all stopped, node 1 back empty",
            Self::Joined => "node 4: joins, drained, stopped",
        })
    }
}

fn hold() {
    std::thread::sleep(LASTS);
}

/// Packets of these directions are dropped for a while.
fn closed(ways: &[(usize, usize)]) -> Result<()> {
    let cuts = ways.iter().map(|(from, to)| Cut {
        from: Host::of_node(*from),
        to: Host::of_node(*to),
        tool: Tool::Routes,
    });
    let cuts: Vec<_> = cuts.collect();
    cuts.iter().try_for_each(Cut::close)?;
    hold();
    cuts.iter().try_for_each(Cut::open)
}

/// The clock of a running node jumps ahead, and back.
fn clock_ahead(nodes: &mut Nodes) -> Result<()> {
    let file = nodes.folder(IT)?.with_extension("clock");
    std::fs::write(&file, "+0")?;
    nodes.stop(IT)?;
    let path = file.to_string_lossy().into_owned();
    nodes.start_in(
        IT,
        &[
            ("LD_PRELOAD", FAKETIME),
            ("FAKETIME_TIMESTAMP_FILE", &path),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ],
    )?;
    // The first readings of a process are trusted.
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(&file, "+600")?;
    hold();
    std::fs::write(&file, "+0")?;
    Ok(())
}

/// One more node takes its share of slots, and gives it back.
fn joined(nodes: &mut Nodes) -> Result<()> {
    let no = nodes.join()?;
    nodes.until_whole()?;
    hold();
    nodes.drain(no)?;
    nodes.stop(no)?;
    nodes.leave(no);
    Ok(())
}

/// The node of [`unreached`] does not come back, and an operator says so.
fn forgotten(nodes: &mut Nodes) -> Result<()> {
    if !nodes.has_unreached()? {
        unreached(nodes)?;
        hold();
    }
    nodes.forget_unreached()
}

/// A node joins under an address that no one reaches, and gives up. It is a member until it is forgotten: the
/// starts of the next scene meet a dead one.
fn unreached(nodes: &mut Nodes) -> Result<()> {
    nodes.start_unreached()?;
    hold();
    let status = nodes.status(1)?;
    let served = status.lines().any(|line| line == "slots_served:16384");
    nodes.end_unreached();
    ensure!(
        served,
        "a slot waited for a node that no one reaches:\n{status}"
    );
    Ok(())
}
