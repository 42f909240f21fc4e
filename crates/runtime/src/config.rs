//! The configuration of a node's runtime.

use crate::tls::{DialTls, Tls};
use rufous_base::limits::{
    OUTPUT_HARD_LIMIT, OUTPUT_HIGH_WATER, OUTPUT_TOTAL_LIMIT, RING_MESSAGES,
};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Port 0 takes a free one; [`crate::Handle::addresses`] returns it.
    Tcp(SocketAddr),
    /// The same by TLS; see [`Config::tls`].
    Tls(SocketAddr),
    /// Permission bits as for `chmod`; without them the process's umask decides.
    Unix { path: PathBuf, mode: Option<u32> },
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Tls(address) => write!(f, "{address} (TLS)"),
            Self::Unix { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Config {
    /// Worker threads, 1 to `limits::MAX_WORKERS`.
    pub workers: usize,
    /// Pin each worker to a core of its own, where there are enough.
    pub pin: bool,
    pub listen: Vec<Listen>,
    /// Addresses for clients that follow redirections to other nodes.
    pub listen_redirected: Vec<Listen>,
    /// What [`Listen::Tls`] shows its clients, and asks of them.
    pub tls: Option<Tls>,
    /// Where other nodes connect: they do not count among the clients.
    pub listen_peers: Vec<Listen>,
    /// What [`Listen::Tls`] shows them.
    pub peer_tls: Option<Tls>,
    /// How this node makes itself known where its actors dial; without it they
    /// do so in the clear.
    pub dial_tls: Option<DialTls>,
    /// Connections the kernel keeps until they are accepted.
    pub backlog: u32,
    /// The most clients from outside this process.
    pub max_clients: usize,
    /// Silence after which TCP asks whether the peer is still there.
    pub keepalive: Option<Duration>,
    /// Bytes that one turn of a worker reads at most, over all its connections.
    pub turn_bytes: usize,
    /// Bytes that one turn reads from one connection at most.
    pub read_bytes: usize,
    /// Messages that fit in each ring between two workers.
    pub ring_messages: usize,
    /// Reading from a connection stops while more reply bytes wait for it.
    pub output_high_water: usize,
    /// A connection with more reply bytes waiting is dropped.
    pub output_hard_limit: usize,
    /// The limit for all connections of a worker together: a connection whose reply
    /// exceeds it is dropped if its own output is above its high water.
    pub output_total_limit: usize,
    /// Where the files lie that actors ask for; without it every request to
    /// the disk fails. The caller holds a [`crate::DirLock`] of it until
    /// [`crate::Runtime::join`] has returned.
    pub data_dir: Option<PathBuf>,
    /// How long a node that stops serves as before, so that its actors can close the connections of
    /// clients between two requests; it ends earlier without clients.
    pub farewell: Duration,
    /// How long stopping waits after that for actors to finish and for replies to leave.
    pub drain: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
            pin: true,
            listen: Vec::new(),
            listen_redirected: Vec::new(),
            tls: None,
            listen_peers: Vec::new(),
            peer_tls: None,
            dial_tls: None,
            backlog: 511,
            max_clients: 10_000,
            keepalive: Some(Duration::from_secs(300)),
            turn_bytes: 1024 * 1024,
            read_bytes: 64 * 1024,
            ring_messages: RING_MESSAGES,
            output_high_water: OUTPUT_HIGH_WATER,
            output_hard_limit: OUTPUT_HARD_LIMIT,
            output_total_limit: OUTPUT_TOTAL_LIMIT,
            data_dir: None,
            farewell: Duration::ZERO,
            drain: Duration::from_secs(10),
        }
    }
}
