//! A node in this process, and what it tells of itself.

use rufous::runtime::Listen;
use rufous_coordinator::meeting::Meeting;
use rufous_node::node::{Client, Node as Server};
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use rufous_server::cluster::settings::CoordinatorAddress;
use rufous_server::config::Config;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What never happens fails a test after so long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Node {
    server: Server,
    client: Client,
    pub(crate) id: String,
    sessions: u64,
}

/// The fields of `INFO cluster`.
pub(crate) type Info = BTreeMap<String, String>;

pub(crate) fn settings(meeting: &Meeting) -> Settings {
    Settings {
        coordinator: CoordinatorAddress::Meeting(meeting.clone()),
        ..Settings::new("birds")
    }
}

pub(crate) fn config(workers: usize, cluster: Settings) -> Config {
    Config {
        workers,
        pin: false,
        port: 0,
        bind: vec!["127.0.0.1".into()],
        cluster: Some(cluster),
        ..Config::in_memory()
    }
}

impl Node {
    pub(crate) fn start(workers: usize, cluster: Settings) -> Self {
        Self::of(&config(workers, cluster))
    }

    pub(crate) fn of(config: &Config) -> Self {
        let server = Server::start(config).expect("starts");
        let client = server.connect().expect("connected");
        let cluster = server.shared.cluster.as_ref().expect("in a cluster");
        let id = rufous_server::cluster::identity::hex(&cluster.common.local.id);
        Self {
            server,
            client,
            id,
            sessions: 0,
        }
    }

    pub(crate) fn call(&mut self, words: &[&str]) -> Reply {
        self.client.call(words).expect("answered")
    }

    pub(crate) fn info(&mut self) -> Info {
        let Reply::Bulk(text) = self.call(&["INFO", "cluster"]) else {
            panic!("no text");
        };
        let text = String::from_utf8(text).expect("text");
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Why the admin port says that it is not ready.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let cluster = self.server.shared.cluster.as_ref();
        cluster.expect("in a cluster").about.not_ready()
    }

    /// Waits for what must happen in the end.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Info) -> bool) -> Info {
        let begun = Instant::now();
        loop {
            let info = self.info();
            if is_so(&info) {
                return info;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}: {info:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Checks that none has ended or begun since they were remembered.
    pub(crate) fn has_the_same_sessions(&mut self) {
        let has = number(&self.info(), "cluster_sessions");
        assert_eq!(has, self.sessions, "the same sessions");
    }

    /// Where other nodes reach it.
    pub(crate) fn peer_address(&self) -> SocketAddr {
        match self.server.handle().peer_addresses() {
            [Listen::Tcp(at) | Listen::Tls(at)] => *at,
            other => panic!("no address for nodes: {other:?}"),
        }
    }

    /// Where clients connect that know the cluster.
    pub(crate) fn door(&self) -> SocketAddr {
        match self.server.handle().redirected_addresses() {
            [Listen::Tcp(at)] => *at,
            other => panic!("no address for them: {other:?}"),
        }
    }

    pub(crate) fn local(&self) -> rufous_wire::Local {
        let cluster = self.server.shared.cluster.as_ref();
        cluster.expect("in a cluster").common.local.clone()
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        match self.server.handle().addresses() {
            [Listen::Tcp(at), ..] => *at,
            other => panic!("no address: {other:?}"),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().port()
    }

    /// Waits until somebody else stops it.
    pub(crate) fn join(self) {
        self.server.join();
    }

    /// TLS handshakes with it that did not succeed.
    pub(crate) fn handshake_errors(&self) -> u64 {
        self.server.handle().stats().handshake_errors
    }

    pub(crate) fn stop(self) {
        self.server.handle().stop();
        self.server.join();
    }
}

/// Whether a node is a copy of each slot. One that only learns a slot may have all of its data, and does not take over
/// when its other copy goes.
pub(crate) fn has_all_copies(info: &Info) -> bool {
    ["cluster_slots_whole", "cluster_slots_member"]
        .iter()
        .all(|name| info[*name] == "16384")
}

pub(crate) fn number(info: &Info, name: &str) -> u64 {
    let value = info.get(name).unwrap_or_else(|| panic!("no {name}"));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

/// Waits until each of these has a session with each other.
pub(crate) fn connect_all(nodes: &mut [Node]) {
    let others = nodes.len() as u64 - 1;
    remember_sessions(nodes, |node| {
        node.until("connected to all", |info| {
            number(info, "cluster_members") == others + 1
                && number(info, "cluster_connected_nodes") == others
        });
    });
}

/// Has each remember how many sessions it has had, once it is connected for good:
/// see [`Node::has_the_same_sessions`].
///
/// Who dials may be let in for a moment by a node that does not know of it yet, is
/// refused then, and dials again. When the last of these is connected, that is
/// over, and so each is asked a second time.
pub(crate) fn remember_sessions(nodes: &mut [Node], connected: impl Fn(&mut Node)) {
    for _ in 0..2 {
        nodes.iter_mut().for_each(&connected);
    }
    for node in nodes {
        node.sessions = number(&node.info(), "cluster_sessions");
    }
}
