//! The runtime with real sockets, files and threads. One binary, so that the package is linked once.
//! What needs a process for itself has a file beside this folder.

mod clock;
#[path = "../common/mod.rs"]
mod common;
mod contract;
mod dial;
mod disk;
mod gate;
mod leaving;
mod made;
mod mail;
mod slow_readers;
mod sockets;
mod tls;
mod workers;
