//! What drives the actors in a real process: threads, sockets, rings, clocks.
//!
//! One worker thread per actor, each with a tokio current-thread runtime that
//! does nothing but turn the worker's loop; up to three disk threads per
//! worker; one control thread that accepts connections and runs what the caller
//! spawns; one reaper.
//!
//! It never looks into the bytes it moves, knows no command, key or data type,
//! and decides nothing that the contract in `rufous_base::actor` leaves to the
//! actor. No lock is held while an actor runs, and no request costs an
//! allocation, a channel or a task here.
//!
//! Map, in reading order:
//! - [`config`]: what a node is told at start
//! - [`runtime`]: starting, stopping, handles
//! - `worker`: a worker's loop of turns; the contract is kept here
//! - `sockets`: a worker's connections: reading, sending, closing. The one
//!   module to replace for another way to do so
//! - `ring`: messages between workers, wake-ups, back-pressure
//! - `gate`: replies that wait until what they tell of is on disk
//! - `disk`: what actors ask of their files, done on threads of its own
//! - `inbox`: readiness, new connections, orders and answers for a worker
//! - [`mail`]: messages to workers from other threads
//! - [`data_dir`]: one process alone uses a data folder
//! - `control`, `listen`, `dial`: accepting, connecting, and the stop of a node
//! - [`tls`]: what makes connections secret
//! - [`local`]: connections inside the process
//! - `reaper`, `clock`, `fd_limit`, [`stats`]: what their names say
#![forbid(unsafe_code)]

mod clock;
pub mod config;
mod control;
pub mod data_dir;
mod dial;
mod disk;
mod fd_limit;
mod gate;
mod inbox;
mod listen;
pub mod local;
pub mod mail;
mod reaper;
mod ring;
pub mod runtime;
mod shared;
mod sockets;
pub mod stats;
mod thread;
pub mod tls;
mod worker;

pub use config::{Config, Listen};
pub use data_dir::{DirError, DirLock, lock_data_dir};
pub use fd_limit::FdLimit;
pub use local::LocalConnection;
pub use mail::{Teller, Untold};
pub use runtime::{Handle, Runtime, StartError, start};
pub use stats::{Snapshot, WorkerSnapshot};
pub use tls::{DialTls, Tls};
