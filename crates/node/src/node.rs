//! A running server: the runtime with one front per worker.

use crate::process;
use rufous::runtime::{
    DirError, DirLock, Handle, Listen, LocalConnection, Runtime, StartError, Untold, lock_data_dir,
    start,
};
use rufous_base::WorkerId;
use rufous_resp::reply::{Reply, ReplyParser};
use rufous_server::cluster::{ClusterError, Joining};
use rufous_server::config::Config;
use rufous_server::front::shared::Shared;
use rufous_server::front::{Front, Message};
use rufous_server::tls::{self, Certificates, TlsError};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files that a node needs beside those of its clients.
const FILES_BESIDE_CLIENTS: u64 = 128;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("cannot resolve the address '{address}' to listen on: {source}")]
    Resolve { address: String, source: io::Error },
    #[error("the operating system gave no random numbers: {0}")]
    Random(String),
    #[error(
        "{limit} open files are too few for even one client: raise the limit (ulimit -n, or LimitNOFILE in systemd)"
    )]
    TooFewFiles { limit: u64 },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Folder(#[from] DirError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// How long a node that stops waits for its clients' last requests.
const FAREWELL: Duration = Duration::from_secs(1);
/// Delay before a worker is told something again.
const UNTOLD: Duration = Duration::from_millis(5);

/// A server with its threads. Dropping it stops them.
pub struct Node {
    runtime: Runtime<Front>,
    pub shared: Arc<Shared>,
    /// Of its port for TLS.
    pub certificates: Option<Arc<Certificates>>,
    /// Held until the threads have ended: what is below is dropped last.
    folder: Option<DirLock>,
}

/// What tells the files in a folder from those in others, also after a restart.
fn files_in(folder: Option<&DirLock>) -> Option<u64> {
    let metadata = folder?.path().metadata().ok()?;
    Some(metadata.ino())
}

impl Node {
    /// Starts listening and serving. With port 0 the system chooses one; with
    /// neither addresses nor a Unix socket only [`Node::connect`] reaches the node.
    pub fn start(config: &Config) -> Result<Node, NodeError> {
        let config = Config {
            maxclients: possible_clients(config.maxclients)?,
            folder: config.wants_folder(),
            ..config.clone()
        };
        let certificates = match config.tls.port {
            0 => None,
            _ => Some(Arc::new(Certificates::load(&config.tls)?)),
        };
        let folder = config
            .folder
            .then(|| lock_data_dir(Path::new(&config.dir)))
            .transpose()?;
        let mut random = [0u8; 28];
        getrandom::fill(&mut random).map_err(|e| NodeError::Random(e.to_string()))?;
        let (seed, id) = random.split_at(8);
        let seed = u64::from_le_bytes(seed.try_into().unwrap_or_default());
        let run_id = id.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_micros() as u64;
        let joining = config.cluster.as_ref().map(|settings| {
            Joining::prepare(settings, folder.as_ref().map(|folder| folder.path()))
        });
        let joining = joining.transpose()?;
        let mut shared = Shared::new(config.workers, seed, run_id, started, config.port);
        shared.cluster = joining.as_ref().map(|joining| Arc::clone(&joining.cluster));
        shared.files = files_in(folder.as_ref()).unwrap_or(seed);
        let shared = Arc::new(shared);
        if folder.is_some() || !config.keyspaces.is_empty() {
            shared.loading.begin(config.workers);
        }
        let mut runtime_config = rufous::runtime::Config {
            workers: config.workers,
            pin: config.pin,
            listen: listen(&config)?,
            tls: certificates.as_ref().map(|all| all.tls()),
            backlog: config.tcp_backlog,
            max_clients: config.maxclients,
            keepalive: (config.tcp_keepalive_s > 0)
                .then(|| Duration::from_secs(config.tcp_keepalive_s)),
            data_dir: folder.as_ref().map(|folder| folder.path().to_path_buf()),
            farewell: FAREWELL,
            ..Default::default()
        };
        if let Some(joining) = &joining {
            joining.configure(&mut runtime_config);
        }
        let for_fronts = (Arc::clone(&shared), Arc::new(config));
        let runtime = start(runtime_config, move |id| {
            Front::new(id, Arc::clone(&for_fronts.0), Arc::clone(&for_fronts.1))
        })?;
        first_steps(&runtime, shared.workers);
        process::watch(&runtime, Arc::clone(&shared));
        take_leave(&runtime);
        if let Some(certificates) = &certificates {
            tls::watch(&runtime, Arc::clone(certificates), Arc::clone(&shared));
        }
        if let Some(joining) = joining {
            joining.join(&runtime, &shared)?;
        }
        Ok(Node {
            runtime,
            shared,
            certificates,
            folder,
        })
    }

    pub fn handle(&self) -> Handle {
        self.runtime.handle()
    }

    /// A client inside this process. Passwords and limits on clients are not for it.
    pub fn connect(&self) -> io::Result<Client> {
        Ok(Client {
            connection: self.runtime.connect()?,
            parser: ReplyParser::default(),
            received: Vec::new(),
        })
    }

    /// Waits until the node has stopped, whoever stops it.
    pub fn join(self) {
        self.runtime.join();
        if let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_in_place()) {
            let path = folder.path().display();
            self.shared.lose_data(&format!(
                "the data folder {path} was removed or renamed while the node ran"
            ));
        }
    }
}

/// A client in the same process as the node, which blocks its thread while it
/// waits for replies. Dropping it closes its connection.
#[derive(Debug)]
pub struct Client {
    connection: LocalConnection,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl Client {
    /// Sends one command and waits for its reply, which may be an error of the command's.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Reply> {
        let mut request = Vec::new();
        rufous_resp::encode::request(&mut request, args);
        self.connection.send_blocking(&request)?;
        loop {
            let (done, reply) = self
                .parser
                .parse(&self.received)
                .map_err(io::Error::other)?;
            self.received.drain(..done);
            if let Some(reply) = reply {
                return Ok(reply);
            }
            if self.connection.receive_blocking(&mut self.received)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Has every worker take a first step, after which it looks after itself: it
/// can tell its figures before its first client comes.
fn first_steps(handle: &Handle, workers: usize) {
    // Each goes to the worker with the fewest connections: one for everybody.
    // A node that stops already needs none.
    let all: Vec<_> = (0..workers).filter_map(|_| handle.connect().ok()).collect();
    drop(all);
}

/// Has the workers close the connections of clients, between two requests, once the node stops.
fn take_leave(runtime: &Runtime<Front>) {
    let (handle, teller) = (runtime.handle(), runtime.teller());
    handle.clone().spawn(async move {
        handle.stopping().await;
        for worker in 0..teller.workers() {
            let worker = WorkerId(worker as u16);
            while let Err(Untold::Full(_)) = teller.tell(worker, Message::Farewell) {
                tokio::time::sleep(UNTOLD).await;
            }
        }
    });
}

/// How many clients there are files for.
fn possible_clients(wanted: usize) -> Result<usize, NodeError> {
    let Some(limit) = process::most_open_files() else {
        return Ok(wanted);
    };
    let possible =
        usize::try_from(limit.saturating_sub(FILES_BESIDE_CLIENTS)).unwrap_or(usize::MAX);
    if possible == 0 {
        return Err(NodeError::TooFewFiles { limit });
    }
    if possible < wanted {
        tracing::warn!(
            maxclients = possible,
            wanted,
            open_files = limit,
            "too few open files for so many clients: maxclients is lowered; raise the limit (ulimit -n, or LimitNOFILE in systemd)"
        );
    }
    Ok(wanted.min(possible))
}

/// Where to listen. Of the addresses that this machine may lack, those that it
/// does lack are left out.
fn listen(config: &Config) -> Result<Vec<Listen>, NodeError> {
    let mut all: Vec<Listen> = Vec::new();
    for address in &config.bind {
        let (address, optional) = match address.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (address.as_str(), false),
        };
        let address = if address == "*" { "0.0.0.0" } else { address };
        let found: Vec<SocketAddr> = (address, 0)
            .to_socket_addrs()
            .map_err(|source| NodeError::Resolve {
                address: address.into(),
                source,
            })?
            .collect();
        for socket in found {
            if optional && std::net::TcpListener::bind((socket.ip(), 0)).is_err() {
                continue;
            }
            let at = |port| SocketAddr::new(socket.ip(), port);
            let plain = config
                .has_plain_port()
                .then(|| Listen::Tcp(at(config.port)));
            let secret = (config.tls.port != 0).then(|| Listen::Tls(at(config.tls.port)));
            for listen in plain.into_iter().chain(secret) {
                if !all.contains(&listen) {
                    all.push(listen);
                }
            }
        }
    }
    if !config.unixsocket.is_empty() {
        let mode = (config.unixsocketperm != 0).then_some(config.unixsocketperm);
        all.push(Listen::Unix {
            path: PathBuf::from(&config.unixsocket),
            mode,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::{ConnInfo, Origin};

    fn config(bind: &[&str]) -> Config {
        Config {
            bind: bind.iter().map(|a| (*a).to_owned()).collect(),
            port: 7,
            ..Config::in_memory()
        }
    }

    #[test]
    fn where_to_listen() {
        let check = |bind: &[&str], expected: &[&str]| {
            let found = listen(&config(bind)).expect("addresses");
            let expected: Vec<_> = expected
                .iter()
                .map(|a| Listen::Tcp(a.parse().expect("an address")))
                .collect();
            assert_eq!(found, expected);
        };
        check(&["127.0.0.1"], &["127.0.0.1:7"]);
        check(&["*"], &["0.0.0.0:7"]);
        check(&["127.0.0.1", "127.0.0.1"], &["127.0.0.1:7"]);
        // Of a range for documentation: no machine has it.
        check(&["-192.0.2.1", "127.0.0.1"], &["127.0.0.1:7"]);
        check(&[], &[]);
        let with_tls = |port, expected: &[Listen]| {
            let mut config = Config {
                port,
                ..config(&["127.0.0.1"])
            };
            config.tls.port = 8;
            assert_eq!(listen(&config).expect("addresses"), expected);
        };
        let tls = Listen::Tls(([127, 0, 0, 1], 8).into());
        with_tls(7, &[Listen::Tcp(([127, 0, 0, 1], 7).into()), tls.clone()]);
        with_tls(0, &[tls]);
        assert!(listen(&config(&["no such host"])).is_err());
    }

    #[test]
    fn protected_mode_is_for_others_machines_and_nodes_without_a_password() {
        let check = |protected_mode, password: &str, is_local, refused| {
            let config = Config {
                protected_mode,
                requirepass: password.into(),
                ..Config::in_memory()
            };
            let info = ConnInfo {
                peer: String::new(),
                local: String::new(),
                is_local,
                origin: Origin::Client,
                certificate: None,
            };
            assert_eq!(config.protected_mode_refuses(&info), refused);
        };
        check(true, "", false, true);
        check(true, "", true, false);
        check(true, "secret", false, false);
        check(false, "", false, false);
    }
}
