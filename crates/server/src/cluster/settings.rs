//! Settings of a node's cluster.

use crate::config::tls::{AuthClients, Tls};
use rufous_coordinator::meeting::Meeting;
use rufous_mapping::ring::{MAX_COPIES, MAX_WEIGHT};
use rufous_wire::message::{ID, MAX_NAME};
use rufous_wire::proof::{Auth, Demand, MAX_SECRET, MIN_SECRET, Nonce, Secret};
use rufous_wire::version::{NEWEST, OLDEST};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Default limit for moving data, in bytes per second: clients have priority.
pub const MOVE_RATE: u64 = 16 << 20;

/// Ten days: a machine that is repaired within a week keeps what only it has.
pub const FORGET_AFTER_S: u64 = 864_000;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Nodes of other clusters are refused.
    pub name: String,
    /// This node's permanent id; without it one is generated and kept in the data folder.
    pub id: Option<[u8; ID]>,
    /// Where other nodes connect. Port 0: any free one.
    pub listen: SocketAddr,
    /// The redirecting endpoint: clients that know the cluster connect here, and are told which
    /// node has their keys. Port 0: any free one.
    pub clients: Option<SocketAddr>,
    /// The host under which others reach this node; without it the address
    /// that it listens on.
    pub advertise: Option<String>,
    pub coordinator: CoordinatorAddress,
    /// How the node authenticates to etcd.
    pub etcd: EtcdAccess,
    /// Certificates of nodes: that of this node, and the authority that signs all of them. Without
    /// them nodes talk unencrypted.
    pub tls: Option<PeerTls>,
    /// The secret that nodes prove to each other; `None`: any process that reaches the port is
    /// believed to be the node that it claims to be.
    pub secret: Option<ClusterSecret>,
    /// Whether nodes without that proof are refused.
    pub demand: Demand,
    /// Copies of a slot, if this node creates the cluster.
    pub copies: usize,
    pub weight: u16,
    /// Limit on the bytes per second that the node sends of copies of slots; 0: unlimited.
    pub move_rate: u64,
    /// Copies of a slot are in different zones if there are enough zones.
    pub zone: String,
    /// The newest version of the messages between nodes that is used.
    pub wire_version: u16,
    /// After all copies of a slot have stopped, the best that is there continues, although writes
    /// may be lost.
    pub accept_loss: bool,
    /// After how many seconds a member that is away leaves for good; 0: never.
    pub forget_after_s: u64,
}

/// Where the coordinator is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorAddress {
    /// A file of this node; the cluster has no other one.
    Local,
    /// `host:port` of some or all members of an etcd.
    Etcd(Vec<String>),
    /// `host:port` of a process on this machine, for development.
    Loopback(String),
    /// In this process, for several nodes of it.
    Meeting(Meeting),
}

/// PEM files, all of which are required: nodes show certificates to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerTls {
    pub cert_file: String,
    pub key_file: String,
    pub ca_cert_file: String,
}

/// Credentials for etcd: none, certificates, a name and a password, or all of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EtcdAccess {
    /// PEM files. The authority of etcd's certificate: with it nodes talk to etcd over TLS.
    pub ca_cert_file: String,
    /// The node's own certificate and its key.
    pub cert_file: String,
    pub key_file: String,
    pub user: String,
    pub password: String,
    /// Whether the password may be sent without TLS.
    pub in_clear: bool,
}

/// A cluster's secret, which is shown nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClusterSecret(String);

impl ClusterSecret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret")
    }
}

/// Leaves out the password.
impl fmt::Debug for EtcdAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("EtcdAccess");
        shown.field("ca_cert_file", &self.ca_cert_file);
        shown.field("cert_file", &self.cert_file);
        shown.field("key_file", &self.key_file);
        shown.field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a cluster's settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("a cluster name needs 1 to {MAX_NAME} printable bytes without a slash")]
    Name,
    #[error("a node id needs {} hexadecimal digits", 2 * ID)]
    Id,
    #[error(
        "a coordinator is 'local', 'etcd://host:port' with further 'host:port' behind commas, or 'rufous://host:port' on this machine"
    )]
    Coordinator,
    #[error(
        "cluster-listen is a wildcard address: set cluster-advertise to the address that other nodes can reach"
    )]
    NoAddress,
    #[error("cluster-advertise is a host name or address without a port")]
    Address,
    #[error("a slot has 1 to {MAX_COPIES} copies")]
    Copies,
    #[error("a node's weight is 1 to {MAX_WEIGHT}")]
    Weight,
    #[error("a zone's name has at most {} bytes", rufous_mapping::member::MAX_NAME)]
    Zone,
    #[error("this program supports wire versions {OLDEST} to {NEWEST}")]
    WireVersion,
    #[error(
        "the secret of a cluster has {MIN_SECRET} to {MAX_SECRET} bytes; `openssl rand -hex 32` prints a good one"
    )]
    Secret,
    #[error(
        "other machines reach {0}, and without a secret any process there can act as a node of the cluster: set cluster-secret-file to a file with the same secret on all nodes (`openssl rand -hex 32` prints a good one), or RUFOUS_CLUSTER_SECRET, or TLS between nodes (cluster-tls-cert-file, cluster-tls-key-file, cluster-tls-ca-cert-file)"
    )]
    Open(SocketAddr),
    #[error(
        "the password for etcd would be sent without TLS: set cluster-etcd-ca-cert-file, or cluster-etcd-password-in-clear yes if the network to etcd is trusted"
    )]
    PasswordInClear,
}

impl Settings {
    /// A cluster of that name, on any free port of the loopback interface.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: None,
            listen: ([127, 0, 0, 1], 0).into(),
            clients: None,
            advertise: None,
            coordinator: CoordinatorAddress::Local,
            etcd: EtcdAccess::default(),
            tls: None,
            secret: None,
            demand: Demand::Required,
            copies: 1,
            weight: 100,
            move_rate: MOVE_RATE,
            zone: String::new(),
            wire_version: NEWEST,
            accept_loss: false,
            forget_after_s: FORGET_AFTER_S,
        }
    }

    /// See [`Settings::forget_after_s`], in milliseconds.
    pub fn absence_ms(&self) -> Option<u64> {
        (self.forget_after_s > 0).then(|| self.forget_after_s.saturating_mul(1_000))
    }

    pub fn check(&self) -> Result<(), Wrong> {
        let name = &self.name;
        let is_plain = |c: char| c != '/' && !c.is_control();
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            return Err(Wrong::Name);
        }
        match &self.coordinator {
            CoordinatorAddress::Etcd(hosts) if hosts.is_empty() => return Err(Wrong::Coordinator),
            _ => {}
        }
        match &self.advertise {
            None if [Some(self.listen), self.clients]
                .iter()
                .flatten()
                .any(|at| at.ip().is_unspecified()) =>
            {
                return Err(Wrong::NoAddress);
            }
            Some(host) if !is_host(host) => return Err(Wrong::Address),
            _ => {}
        }
        self.check_access()?;
        if !(1..=MAX_COPIES).contains(&self.copies) {
            return Err(Wrong::Copies);
        }
        if !(1..=MAX_WEIGHT).contains(&self.weight) {
            return Err(Wrong::Weight);
        }
        if self.zone.len() > rufous_mapping::member::MAX_NAME {
            return Err(Wrong::Zone);
        }
        if !(OLDEST..=NEWEST).contains(&self.wire_version) {
            return Err(Wrong::WireVersion);
        }
        Ok(())
    }

    /// That only nodes of the cluster act as such, and its passwords stay secret.
    fn check_access(&self) -> Result<(), Wrong> {
        let EtcdAccess {
            user,
            ca_cert_file,
            in_clear,
            ..
        } = &self.etcd;
        if !user.is_empty() && ca_cert_file.is_empty() && !in_clear {
            return Err(Wrong::PasswordInClear);
        }
        match &self.secret {
            Some(secret) if Secret::new(secret.0.as_bytes()).is_none() => Err(Wrong::Secret),
            Some(_) => Ok(()),
            None if self.listen.ip().is_loopback() || self.tls.is_some() => Ok(()),
            None if self.demand == Demand::Optional => Ok(()),
            None => Err(Wrong::Open(self.listen)),
        }
    }

    /// What sessions need to prove the secret. `entropy` is random and new with every start.
    pub fn auth(&self, entropy: Nonce) -> Option<Auth> {
        let secret = Secret::new(self.secret.as_ref()?.0.as_bytes())?;
        Some(Auth::new(secret, self.demand, entropy))
    }

    /// `host:port` under which others reach this node.
    pub fn address(&self, port: u16) -> String {
        match &self.advertise {
            Some(host) if host.parse::<std::net::Ipv6Addr>().is_ok() => format!("[{host}]:{port}"),
            Some(host) => format!("{host}:{port}"),
            None => SocketAddr::new(self.listen.ip(), port).to_string(),
        }
    }
}

/// An address, or a name as DNS has them.
fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !text.is_empty() && text.len() <= 250 && text.chars().all(plain);
    text.parse::<IpAddr>().is_ok() || is_name
}

impl CoordinatorAddress {
    /// Parses the form that operators write.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        if text == "local" {
            return Ok(Self::Local);
        }
        let is_socket = |host: &str| {
            let (name, port) = host.rsplit_once(':')?;
            let name = name.trim_start_matches('[').trim_end_matches(']');
            (is_host(name) && port.parse::<u16>().is_ok_and(|port| port != 0)).then_some(())
        };
        if let Some(host) = text.strip_prefix("rufous://") {
            return match is_socket(host) {
                Some(()) => Ok(Self::Loopback(host.to_owned())),
                None => Err(Wrong::Coordinator),
            };
        }
        let hosts = text.strip_prefix("etcd://").ok_or(Wrong::Coordinator)?;
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        match hosts.iter().all(|host| is_socket(host).is_some()) {
            true => Ok(Self::Etcd(hosts)),
            false => Err(Wrong::Coordinator),
        }
    }
}

/// The form that operators write.
impl fmt::Display for CoordinatorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => write!(f, "local"),
            Self::Etcd(hosts) => write!(f, "etcd://{}", hosts.join(",")),
            Self::Loopback(at) => write!(f, "rufous://{at}"),
            Self::Meeting(_) => write!(f, "in this process"),
        }
    }
}

/// Parses a node's id as operators write it.
pub fn parse_id(text: &str) -> Result<[u8; ID], Wrong> {
    let mut id = [0; ID];
    if text.len() != 2 * ID || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Wrong::Id);
    }
    for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| Wrong::Id)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| Wrong::Id)?;
    }
    Ok(id)
}

impl PeerTls {
    /// Both sides show a certificate.
    pub fn settings(&self) -> Tls {
        Tls {
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
            ca_cert_file: self.ca_cert_file.clone(),
            auth_clients: AuthClients::Yes,
            ..Tls::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let check = |wrong: Result<(), Wrong>, change: fn(&mut Settings)| {
            let mut settings = Settings::new("birds");
            change(&mut settings);
            assert_eq!(settings.check(), wrong, "{settings:?}");
        };
        check(Ok(()), |_| {});
        check(Err(Wrong::Name), |s| s.name.clear());
        check(Err(Wrong::Name), |s| s.name = "a/b".into());
        check(Err(Wrong::Name), |s| s.name = "a\nb".into());
        check(Err(Wrong::Name), |s| s.name = "n".repeat(256));
        check(Err(Wrong::Copies), |s| s.copies = 0);
        check(Err(Wrong::Copies), |s| s.copies = 6);
        check(Err(Wrong::Weight), |s| s.weight = 0);
        check(Err(Wrong::Weight), |s| s.weight = 1001);
        check(Err(Wrong::Zone), |s| s.zone = "z".repeat(257));
        check(Err(Wrong::WireVersion), |s| s.wire_version = OLDEST - 1);
        check(Err(Wrong::WireVersion), |s| s.wire_version = NEWEST + 1);
        check(Ok(()), |s| s.wire_version = OLDEST);
        check(Err(Wrong::NoAddress), |s| {
            s.listen = ([0, 0, 0, 0], 1).into()
        });
        let everywhere = |s: &mut Settings| {
            s.listen = ([0, 0, 0, 0], 1).into();
            s.advertise = Some("db-1.example.org".into());
        };
        let open = Wrong::Open(([0, 0, 0, 0], 1).into());
        check(Err(open), everywhere);
        check(Err(Wrong::Open(([10, 0, 0, 1], 1).into())), |s| {
            s.listen = ([10, 0, 0, 1], 1).into()
        });
        let with = |change: fn(&mut Settings), expected| {
            let mut settings = Settings::new("birds");
            everywhere(&mut settings);
            change(&mut settings);
            assert_eq!(settings.check(), expected);
        };
        with(|s| s.demand = Demand::Optional, Ok(()));
        with(|s| s.tls = Some(PeerTls::default()), Ok(()));
        let secret = |len| Some(ClusterSecret::new("x".repeat(len)));
        let mut settings = Settings::new("birds");
        everywhere(&mut settings);
        for (len, expected) in [
            (15, Err(Wrong::Secret)),
            (16, Ok(())),
            (1025, Err(Wrong::Secret)),
        ] {
            settings.secret = secret(len);
            assert_eq!(settings.check(), expected, "{len}");
        }
        assert!(!format!("{settings:?}").contains("xxx"));
        check(Err(Wrong::Address), |s| s.advertise = Some("db:1".into()));
        check(Err(Wrong::Address), |s| s.advertise = Some(String::new()));
        check(Ok(()), |s| s.advertise = Some("::1".into()));
    }

    #[test]
    fn addresses_for_others() {
        let mut settings = Settings::new("birds");
        assert_eq!(settings.address(7), "127.0.0.1:7");
        settings.advertise = Some("::1".into());
        assert_eq!(settings.address(7), "[::1]:7");
        settings.advertise = Some("db".into());
        assert_eq!(settings.address(7), "db:7");
    }

    #[test]
    fn places_and_ids_as_operators_write_them() {
        assert_eq!(
            CoordinatorAddress::parse("local"),
            Ok(CoordinatorAddress::Local)
        );
        let two = vec!["a:1".to_owned(), "[::1]:2".to_owned()];
        assert_eq!(
            CoordinatorAddress::parse("etcd://a:1,[::1]:2"),
            Ok(CoordinatorAddress::Etcd(two.clone()))
        );
        assert_eq!(
            CoordinatorAddress::Etcd(two).to_string(),
            "etcd://a:1,[::1]:2"
        );
        assert_eq!(CoordinatorAddress::Local.to_string(), "local");
        let one = CoordinatorAddress::Loopback("127.0.0.1:17000".into());
        assert_eq!(
            CoordinatorAddress::parse("rufous://127.0.0.1:17000"),
            Ok(one.clone())
        );
        assert_eq!(one.to_string(), "rufous://127.0.0.1:17000");
        for wrong in [
            "",
            "etcd",
            "etcd://",
            "etcd://a",
            "etcd://a:0",
            "etcd://a:1,",
            "etcd://a b:1",
            "zk://a:1",
            "rufous://a",
            "rufous://a:1,b:2",
            "etcd://a:99999",
        ] {
            assert_eq!(
                CoordinatorAddress::parse(wrong),
                Err(Wrong::Coordinator),
                "{wrong}"
            );
        }
        assert_eq!(parse_id(&"0a".repeat(20)), Ok([10; 20]));
        for wrong in [
            "",
            "0a",
            &"0a".repeat(21),
            &"0g".repeat(20),
            &"+a".repeat(20),
        ] {
            assert_eq!(parse_id(wrong), Err(Wrong::Id), "{wrong}");
        }
    }
}
