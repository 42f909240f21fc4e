//! A running server: the runtime with one front per worker.

use crate::config::Config;
use crate::front::Front;
use crate::front::shared::Shared;
use rufous::runtime::{Handle, Listen, Runtime, StartError, start};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("cannot resolve the address '{address}' to listen on: {source}")]
    Resolve { address: String, source: std::io::Error },
    #[error("the operating system gave no random numbers: {0}")]
    Random(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A server with its threads. Dropping it stops them.
pub struct Node {
    runtime: Runtime<Front>,
    pub shared: Arc<Shared>,
}

impl Node {
    /// Starts listening and serving.
    pub fn start(config: &Config) -> Result<Node, NodeError> {
        let mut random = [0u8; 28];
        getrandom::fill(&mut random).map_err(|e| NodeError::Random(e.to_string()))?;
        let (seed, id) = random.split_at(8);
        let seed = u64::from_le_bytes(seed.try_into().unwrap_or_default());
        let run_id = id.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let shared = Arc::new(Shared::new(config.workers, seed, run_id, started, config.port));
        let runtime_config = rufous::runtime::Config {
            workers: config.workers,
            listen: listen(config)?,
            max_clients: config.maxclients,
            ..Default::default()
        };
        let for_fronts = (Arc::clone(&shared), Arc::new(config.clone()));
        let runtime = start(runtime_config, move |id| {
            Front::new(id, Arc::clone(&for_fronts.0), Arc::clone(&for_fronts.1))
        })?;
        Ok(Node { runtime, shared })
    }

    pub fn handle(&self) -> Handle {
        self.runtime.handle()
    }

    /// Waits until the node has stopped, whoever stops it.
    pub fn join(self) {
        self.runtime.join();
    }
}

/// The addresses to listen on. Of the defaults, one that this machine does not
/// have is left out.
fn listen(config: &Config) -> Result<Vec<Listen>, NodeError> {
    let mut all: Vec<Listen> = Vec::new();
    if config.port == 0 && config.bind.is_empty() {
        return Ok(all);
    }
    for address in &config.bind {
        let (address, optional) = match address.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (address.as_str(), false),
        };
        let address = if address == "*" { "0.0.0.0" } else { address };
        let found: Vec<SocketAddr> = (address, config.port)
            .to_socket_addrs()
            .map_err(|source| NodeError::Resolve { address: address.into(), source })?
            .collect();
        for socket in found {
            if optional && std::net::TcpListener::bind((socket.ip(), 0)).is_err() {
                continue;
            }
            let listen = Listen::Tcp(socket);
            if !all.contains(&listen) {
                all.push(listen);
            }
        }
    }
    Ok(all)
}
