//! Settings of a node that is one of several.
//!
//! They are kept as they were given until all of them are known: only together
//! they make sense. [`Clustering::settings`] is what a node is told then.

use super::Config;
use super::params::{Param, Set};
use super::secrets;
use super::values::{integer, memory};
use crate::cluster::Settings;
use crate::cluster::settings::{
    self, ClusterSecret, CoordinatorAddress, EtcdAccess, FORGET_AFTER_S, MOVE_RATE, PeerTls,
};
use rufous_kernel::keyspace::Keyspace;
use rufous_kernel::replicate::member::MOST_WORKERS;
use rufous_mapping::ring::{MAX_COPIES, MAX_WEIGHT};
use rufous_wire::proof::Demand;
use rufous_wire::version::{NEWEST, OLDEST};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

/// So far from the port for clients is the one for nodes, where none is given.
const PORTS_BETWEEN: u16 = 10_000;

/// Copies of a slot, where several nodes agree and nothing else is said.
const COPIES: usize = 2;

/// With less, a node would send one part of a copy in a second or more, and drop nothing meanwhile.
const SLOWEST_MOVE: u64 = 64 << 10;

/// As operators wrote it; each is sound in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clustering {
    /// Empty: the node is in no cluster.
    pub name: String,
    /// Empty: one is made.
    pub id: String,
    /// Empty: see [`Clustering::listens`].
    pub listen: String,
    /// Empty: none.
    pub clients: String,
    /// Empty: the address that it listens on.
    pub advertise: String,
    pub coordinator: String,
    /// `None`: as many as fit the coordinator.
    pub copies: Option<usize>,
    pub weight: u16,
    pub move_rate: u64,
    pub zone: String,
    /// `None`: the newest.
    pub wire_version: Option<u16>,
    pub accept_loss: bool,
    pub forget_after_s: u64,
    pub tls: PeerTls,
    /// Empty: none.
    pub secret: ClusterSecret,
    pub secret_file: String,
    pub demand: Demand,
    pub etcd: EtcdAccess,
    /// Instead of the password in `etcd`.
    pub etcd_password_file: String,
}

impl Default for Clustering {
    fn default() -> Self {
        Self {
            name: String::new(),
            id: String::new(),
            listen: String::new(),
            clients: String::new(),
            advertise: String::new(),
            coordinator: "local".into(),
            copies: None,
            weight: 100,
            move_rate: MOVE_RATE,
            zone: String::new(),
            wire_version: None,
            accept_loss: false,
            forget_after_s: FORGET_AFTER_S,
            tls: PeerTls::default(),
            secret: ClusterSecret::default(),
            secret_file: String::new(),
            demand: Demand::Required,
            etcd: EtcdAccess::default(),
            etcd_password_file: String::new(),
        }
    }
}

/// A setting, and why it does not go with others.
type Wrong = (&'static str, String);

impl Clustering {
    /// What a node is told, if it is in a cluster.
    pub fn settings(&self, config: &Config) -> Result<Option<Settings>, Wrong> {
        if self.name.is_empty() {
            return match self.first_given() {
                None => Ok(None),
                Some(given) => Err((
                    given,
                    "without cluster-name the node is in no cluster: give the name that all nodes of the cluster have".into(),
                )),
            };
        }
        let coordinator = CoordinatorAddress::parse(&self.coordinator)
            .map_err(|why| ("cluster-coordinator", why.to_string()))?;
        let copies = match coordinator {
            CoordinatorAddress::Local => 1,
            _ => COPIES,
        };
        let settings = Settings {
            name: self.name.clone(),
            id: match self.id.as_str() {
                "" => None,
                id => Some(settings::parse_id(id).map_err(|why| ("cluster-id", why.to_string()))?),
            },
            listen: self.listens(config)?,
            clients: self.listens_to_clients(config)?,
            advertise: (!self.advertise.is_empty()).then(|| self.advertise.clone()),
            etcd: self.etcd_access(&coordinator)?,
            coordinator,
            tls: self.tls()?,
            secret: self.secret()?,
            demand: self.demand,
            copies: self.copies.unwrap_or(copies),
            weight: self.weight,
            move_rate: self.move_rate,
            zone: self.zone.clone(),
            wire_version: self.wire_version.unwrap_or(NEWEST),
            accept_loss: self.accept_loss,
            forget_after_s: self.forget_after_s,
        };
        self.check(&settings)?;
        let shares = config.keyspaces.iter().any(Keyspace::is_lattice);
        if shares && config.workers > MOST_WORKERS {
            let what = format!(
                "the nodes of a cluster share lattice keyspaces with {MOST_WORKERS} workers each at most"
            );
            return Err(("workers", what));
        }
        Ok(Some(settings))
    }

    fn check(&self, settings: &Settings) -> Result<(), Wrong> {
        let at = match settings.check() {
            Ok(()) => return Ok(()),
            Err(settings::Wrong::NoAddress) => {
                let what = "the node listens on all addresses: say with cluster-advertise by which name or address others reach it";
                return Err(("cluster-advertise", what.into()));
            }
            Err(why) => why,
        };
        let setting = match at {
            settings::Wrong::Name => "cluster-name",
            settings::Wrong::Id => "cluster-id",
            settings::Wrong::Coordinator => "cluster-coordinator",
            settings::Wrong::NoAddress | settings::Wrong::Address => "cluster-advertise",
            settings::Wrong::Copies => "cluster-copies",
            settings::Wrong::Weight => "cluster-weight",
            settings::Wrong::Zone => "cluster-zone",
            settings::Wrong::WireVersion => "cluster-wire-version",
            settings::Wrong::Secret | settings::Wrong::Open(_) => "cluster-secret",
            settings::Wrong::PasswordInClear => "cluster-etcd-password",
        };
        Err((setting, at.to_string()))
    }

    /// Any setting that is not as it is by itself.
    fn first_given(&self) -> Option<&'static str> {
        let usual = Self::default();
        let differs = [
            ("cluster-id", self.id != usual.id),
            ("cluster-listen", self.listen != usual.listen),
            ("cluster-clients", self.clients != usual.clients),
            ("cluster-advertise", self.advertise != usual.advertise),
            ("cluster-coordinator", self.coordinator != usual.coordinator),
            ("cluster-copies", self.copies != usual.copies),
            ("cluster-weight", self.weight != usual.weight),
            ("cluster-move-rate", self.move_rate != usual.move_rate),
            ("cluster-zone", self.zone != usual.zone),
            (
                "cluster-wire-version",
                self.wire_version != usual.wire_version,
            ),
            ("cluster-accept-loss", self.accept_loss != usual.accept_loss),
            (
                "cluster-forget-after",
                self.forget_after_s != usual.forget_after_s,
            ),
            ("cluster-tls-cert-file", self.tls != usual.tls),
            ("cluster-secret", self.secret != usual.secret),
            ("cluster-secret-file", self.secret_file != usual.secret_file),
            ("cluster-auth", self.demand != usual.demand),
            ("cluster-etcd-ca-cert-file", self.etcd != usual.etcd),
            (
                "cluster-etcd-password-file",
                self.etcd_password_file != usual.etcd_password_file,
            ),
        ];
        differs
            .iter()
            .find(|(_, differs)| *differs)
            .map(|(name, _)| *name)
    }

    /// Where other nodes connect: as given, or beside the first port for clients.
    fn listens(&self, config: &Config) -> Result<SocketAddr, Wrong> {
        const NAME: &str = "cluster-listen";
        if !self.listen.is_empty() {
            let at = address(&self.listen).map_err(|why| (NAME, why))?;
            return not_the_port(NAME, at, config);
        }
        let beside = match config.port {
            0 => config.tls.port,
            port => port,
        };
        let port = match beside {
            0 => 0,
            _ => beside.checked_add(PORTS_BETWEEN).ok_or_else(|| {
                let what = format!(
                    "{beside} and {PORTS_BETWEEN} is no port: give the address that other nodes connect to"
                );
                (NAME, what)
            })?,
        };
        let host = config.bind.first().map_or("127.0.0.1", String::as_str);
        let host = match host.strip_prefix('-').unwrap_or(host) {
            "*" => "0.0.0.0",
            host => host,
        };
        let found = (host, port).to_socket_addrs().ok();
        let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Ok(found.and_then(|mut all| all.next()).unwrap_or(loopback))
    }

    fn listens_to_clients(&self, config: &Config) -> Result<Option<SocketAddr>, Wrong> {
        const NAME: &str = "cluster-clients";
        if self.clients.is_empty() {
            return Ok(None);
        }
        let at = address(&self.clients).map_err(|why| (NAME, why))?;
        let at = not_the_port(NAME, at, config)?;
        if at.port() != 0 && at.port() == self.listens(config)?.port() {
            let what = format!("{} is already the port for other nodes", at.port());
            return Err((NAME, what));
        }
        Ok(Some(at))
    }

    fn tls(&self) -> Result<Option<PeerTls>, Wrong> {
        let files = [
            ("cluster-tls-cert-file", &self.tls.cert_file),
            ("cluster-tls-key-file", &self.tls.key_file),
            ("cluster-tls-ca-cert-file", &self.tls.ca_cert_file),
        ];
        let missing = files.iter().find(|(_, file)| file.is_empty());
        match missing {
            None => Ok(Some(self.tls.clone())),
            Some(_) if self.tls == PeerTls::default() => Ok(None),
            Some((name, _)) => Err((
                name,
                "nodes show certificates to each other: give cluster-tls-cert-file, cluster-tls-key-file and cluster-tls-ca-cert-file, or none of them".into(),
            )),
        }
    }
}

/// `address:port`, or a name of this machine for the address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = match text.strip_prefix("*:") {
        Some(port) => format!("0.0.0.0:{port}"),
        None => text.to_owned(),
    };
    let mut found = text.to_socket_addrs().map_err(|_| {
        format!("'{text}' is not an address with a port such as 10.0.0.1:16379 or [::1]:16379")
    })?;
    found
        .next()
        .ok_or_else(|| format!("'{text}' is not an address of this machine"))
}

fn not_the_port(name: &'static str, at: SocketAddr, config: &Config) -> Result<SocketAddr, Wrong> {
    match [config.port, config.tls.port].contains(&at.port()) && at.port() != 0 {
        true => {
            let what = format!("{} is already the port for clients", at.port());
            Err((name, what))
        }
        false => Ok(at),
    }
}

/// A setting of a cluster, fixed at the start.
macro_rules! setting {
    ($param:ident, $set:ident, $name:literal, $get:expr, $take:expr, $help:literal) => {
        pub const $param: Param = Param {
            name: $name,
            get: |config| {
                let get: fn(&Clustering) -> String = $get;
                get(&config.clustering)
            },
            set: None,
            help: $help,
        };
        pub const $set: Set = |config, value| {
            let take: fn(&mut Clustering, &str) -> Result<(), String> = $take;
            take(&mut config.clustering, value.trim())
        };
    };
}

/// The same of a text that is taken as it is.
macro_rules! text {
    ($param:ident, $set:ident, $name:literal, $($field:ident).+, $help:literal) => {
        setting!(
            $param,
            $set,
            $name,
            |all| all.$($field).+.clone(),
            |all, value| {
                all.$($field).+ = value.into();
                Ok(())
            },
            $help
        );
    };
}

pub const ENABLED: Param = Param {
    name: "cluster-enabled",
    get: |config| super::values::yes_no(config.cluster.is_some()),
    set: None,
    help: "Whether the node is in a cluster, which it is if cluster-name is set.",
};

pub const ATOMIC_READS: Param = Param {
    name: "cluster-atomic-reads",
    get: |config| super::values::yes_no(config.cluster_atomic_reads),
    set: Some(|config, value| {
        config.cluster_atomic_reads = super::values::parse_yes_no(value)?;
        Ok(())
    }),
    help: "Whether MGET, EXISTS and TOUCH read keys of several nodes at one instant, for which each node is asked twice; otherwise each node's keys are read at an instant of their own.",
};

text!(
    NAME,
    SET_NAME,
    "cluster-name",
    name,
    "Name of the cluster, the same on all its nodes; empty: the node is in none."
);
setting!(
    ID,
    SET_ID,
    "cluster-id",
    |all| all.id.clone(),
    |all, value| {
        if !value.is_empty() {
            settings::parse_id(value).map_err(|why| why.to_string())?;
        }
        all.id = value.to_ascii_lowercase();
        Ok(())
    },
    "Permanent id of the node, 40 hexadecimal digits; empty: one is generated and kept in the data folder."
);
text!(
    LISTEN,
    SET_LISTEN,
    "cluster-listen",
    listen,
    "Address for other nodes; empty: the first address for clients, with their port plus 10000."
);
text!(
    CLIENTS,
    SET_CLIENTS,
    "cluster-clients",
    clients,
    "Address for cluster clients, which are redirected to the node of a key (MOVED); empty: none."
);
text!(
    ADVERTISE,
    SET_ADVERTISE,
    "cluster-advertise",
    advertise,
    "Host name or address by which others reach this node; empty: the address of cluster-listen."
);
text!(
    COORDINATOR,
    SET_COORDINATOR,
    "cluster-coordinator",
    coordinator,
    "Coordinator of the cluster: local (a cluster of one node), an etcd, or a process on this machine for development."
);
setting!(
    COPIES_OF_SLOTS,
    SET_COPIES,
    "cluster-copies",
    |all| match all.copies {
        Some(copies) => copies.to_string(),
        None => "auto".into(),
    },
    |all, value| {
        all.copies = match value {
            "auto" => None,
            _ => Some(integer(value, 1..=MAX_COPIES as i64)? as usize),
        };
        Ok(())
    },
    "Copies of each key, used when this node creates the cluster; auto: 2, and 1 with the local coordinator."
);
setting!(
    WEIGHT,
    SET_WEIGHT,
    "cluster-weight",
    |all| all.weight.to_string(),
    |all, value| {
        all.weight = integer(value, 1..=i64::from(MAX_WEIGHT))? as u16;
        Ok(())
    },
    "Share of the data that the node takes, relative to the weights of other nodes."
);
setting!(
    MOVE_RATE_OF_NODE,
    SET_MOVE_RATE,
    "cluster-move-rate",
    |all| all.move_rate.to_string(),
    |all, value| {
        let rate = memory(value, 0, u64::MAX)?;
        if (1..SLOWEST_MOVE).contains(&rate) {
            return Err(format!("minimum {SLOWEST_MOVE} bytes/s; 0 means unlimited"));
        }
        all.move_rate = rate;
        Ok(())
    },
    "Maximum bytes per second that the node sends of data that moves to other nodes; minimum 65536; 0: unlimited."
);
text!(
    ZONE,
    SET_ZONE,
    "cluster-zone",
    zone,
    "Zone of the machine; copies of a key are placed in different zones if there are enough."
);
setting!(
    WIRE_VERSION,
    SET_WIRE_VERSION,
    "cluster-wire-version",
    |all| match all.wire_version {
        Some(version) => version.to_string(),
        None => "auto".into(),
    },
    |all, value| {
        all.wire_version = match value {
            "auto" => None,
            _ => Some(integer(value, i64::from(OLDEST)..=i64::from(NEWEST))? as u16),
        };
        Ok(())
    },
    "Newest version of messages between nodes that the node uses; auto: the newest that it knows. Set an older one during an upgrade."
);
text!(
    TLS_CERT_FILE,
    SET_TLS_CERT_FILE,
    "cluster-tls-cert-file",
    tls.cert_file,
    "Certificate that the node presents to other nodes (PEM); empty: no TLS between nodes."
);
text!(
    TLS_KEY_FILE,
    SET_TLS_KEY_FILE,
    "cluster-tls-key-file",
    tls.key_file,
    "Private key of that certificate (PEM, without a password)."
);
text!(
    TLS_CA_CERT_FILE,
    SET_TLS_CA_CERT_FILE,
    "cluster-tls-ca-cert-file",
    tls.ca_cert_file,
    "Certificates of the authorities that sign node certificates (PEM)."
);

pub mod absence;
pub mod etcd;
pub mod secret;
