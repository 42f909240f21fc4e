//! Where nodes of a cluster agree: the coordinator for development, in a thread of this process.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rufous_coordinator::loopback::Server;
use rufous_ports::free_port;
use tokio::sync::oneshot;

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends with this value.
pub struct Coordinator {
    place: String,
    ends: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Coordinator {
    /// For the cluster of this name; what is agreed on is kept in the folder.
    pub fn start(cluster: &str, folder: &Path) -> Result<Self> {
        let (cluster, folder) = (cluster.to_owned(), folder.join("agreed"));
        std::fs::create_dir_all(&folder)?;
        let port = free_port()?;
        let (listens, listening) = mpsc::channel();
        let (ends, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build()?;
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let at = (Ipv4Addr::LOCALHOST, port).into();
                let server = Server::start(at, &cluster, None, Some(&folder)).await;
                let address = server.as_ref().map(Server::address);
                let address = address.map_err(|error| error.to_string());
                if listens.send(address).is_ok() {
                    // The end of who waits for it is its end, too.
                    let _ = ended.await;
                }
            });
        });
        let address = listening.recv_timeout(PATIENCE).context("no coordinator")?;
        let address = address.map_err(|error| anyhow!("no coordinator: {error}"))?;
        Ok(Self {
            place: format!("rufous://{address}"),
            ends: Some(ends),
            thread: Some(thread),
        })
    }

    /// As the setting `cluster-coordinator` has it.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        drop(self.ends.take());
        // It does nothing that could fail.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::start("a", folder.path()).unwrap();
        let address = coordinator.place().strip_prefix("rufous://").unwrap();
        let address: std::net::SocketAddr = address.parse().unwrap();
        assert!(std::net::TcpStream::connect(address).is_ok());
        drop(coordinator);
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}
