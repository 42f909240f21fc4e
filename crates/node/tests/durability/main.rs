//! Nothing acknowledged is lost: the real program is killed, stopped, put on
//! disks that fill up or fail and on damaged folders, and every key is compared
//! with what its client was told.
//!
//! - `crashes`: kill -9 under load in each mode, with fewer and more workers
//! - `stops`: stops in good order; logging switched off and on
//! - `switches`: what INFO shows of a log that is switched on or off holds
//! - `full`: disks that fill up; `failing`: disks that do worse
//! - `gone`: folders that are moved or removed while the node runs, files that are shortened
//! - `keyspaces`: replicas that all take writes
//! - `retention`: earlier saves, kept and gone back to
//! - `starts`: folders on which a node must not start, and says why
//! - `audit`: the clients that remember; `node` and `mount`: what they work on

#[path = "../common/mod.rs"]
mod common;

mod audit;
mod crashes;
mod failing;
mod full;
mod gone;
mod keyspaces;
mod mount;
mod node;
mod retention;
mod starts;
mod stops;
mod switches;
