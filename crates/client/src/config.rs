//! Where to connect and how: from a URL or a builder.

use crate::client::Client;
use crate::error::{Error, Result};
use rufous_resp::ReplyLimits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr {
    host: Arc<str>,
    port: u16,
}

impl Addr {
    pub fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, an IPv6 address with brackets or, as servers write it, without. Where the host
    /// is empty it is `default`.
    pub(crate) fn parse(text: &str, default: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|&port| port > 0)?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host = match bare.unwrap_or(host) {
            "" => default,
            host => host,
        };
        // A name longer than names can be is no name.
        let sane = !host.is_empty() && host.len() <= 255 && !host.contains(char::is_whitespace);
        sane.then(|| Self::new(host, port))
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Which nodes answer reads in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The slot's owner.
    Owner,
    /// The owner or one of its replicas, by lot [Anna §VII-B]. What a replica answers may be older
    /// than what this client has read or written before.
    AnyReplica,
}

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) seeds: Vec<Addr>,
    pub(crate) db: u32,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) attempts: u32,
    pub(crate) pool: usize,
    pub(crate) read_from: ReadFrom,
    pub(crate) resp2: bool,
    pub(crate) tls: bool,
    pub(crate) max_reply: usize,
    #[cfg(feature = "tls")]
    pub(crate) tls_config: Option<Arc<rustls::ClientConfig>>,
}

impl Config {
    pub(crate) fn reply_limits(&self) -> ReplyLimits {
        ReplyLimits {
            max_bulk: self.max_reply as u64,
            ..ReplyLimits::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            db: 0,
            user: None,
            password: None,
            name: None,
            timeout: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(1),
            attempts: 64,
            pool: 16,
            read_from: ReadFrom::Owner,
            resp2: false,
            tls: false,
            max_reply: 512 << 20,
            #[cfg(feature = "tls")]
            tls_config: None,
        }
    }
}

/// How to connect.
///
/// ```no_run
/// # async fn example() -> rufous_client::Result<()> {
/// use rufous_client::{Builder, ReadFrom};
/// let client = Builder::new("rufous://db1:6379,db2:6379")?
///     .password("secret")
///     .read_from(ReadFrom::AnyReplica)
///     .connect()
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Builder {
    config: Config,
}

impl Builder {
    /// Reads `rufous://[[user]:password@]host[:port][,host[:port]…][/db][?option=value&…]`; also
    /// `redis://`, and with TLS `rufouss://` and `rediss://`. Options are `timeout_ms`,
    /// `attempt_timeout_ms`, `connect_timeout_ms`, `attempts`, `pool`, `name`, `protocol` (2 or 3)
    /// and `read` (`owner` or `replica`), as the methods of those names say.
    pub fn new(url: &str) -> Result<Self> {
        parse(url).map(|config| Self { config })
    }

    pub fn user(mut self, user: &str) -> Self {
        self.config.user = Some(user.into());
        self
    }

    pub fn password(mut self, password: &str) -> Self {
        self.config.password = Some(password.into());
        self
    }

    /// The name that `CLIENT LIST` shows.
    pub fn name(mut self, name: &str) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// How long a command may take with everything that is tried meanwhile; 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// How long one node may take to reply; 2 s. Then another is tried, if that is allowed,
    /// and the connection is closed if nothing at all has arrived on it meanwhile.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.config.attempt_timeout = timeout;
        self
    }

    /// How long connecting may take, greetings included; 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// How often a command is tried within its time; 64. 1 is: never again.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.config.attempts = attempts.max(1);
        self
    }

    /// Held connections per node, beside the shared one; 16.
    pub fn pool(mut self, connections: usize) -> Self {
        self.config.pool = connections.clamp(1, 10_000);
        self
    }

    pub fn read_from(mut self, read_from: ReadFrom) -> Self {
        self.config.read_from = read_from;
        self
    }

    /// Never asks for RESP3.
    pub fn resp2(mut self) -> Self {
        self.config.resp2 = true;
        self
    }

    /// The longest reply that is accepted, bytes on the wire; 512 MiB. A longer one closes the connection.
    pub fn max_reply(mut self, bytes: usize) -> Self {
        self.config.max_reply = bytes;
        self
    }

    /// Certificates and roots other than the system's; makes the connections TLS.
    #[cfg(feature = "tls")]
    pub fn tls_config(mut self, tls: Arc<rustls::ClientConfig>) -> Self {
        self.config.tls = true;
        self.config.tls_config = Some(tls);
        self
    }

    /// Connects to the first of the addresses that answers, and learns from it whether it is one of
    /// a cluster.
    pub async fn connect(self) -> Result<Client> {
        Client::start(self.config).await
    }
}

fn parse(url: &str) -> Result<Config> {
    let bad = |what: &str| Error::Config(format!("{what} in the URL"));
    let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
    let mut config = Config {
        tls: match scheme {
            "rufous" | "redis" => false,
            "rufouss" | "rediss" => true,
            _ => return Err(bad("a scheme other than rufous, rufouss, redis, rediss")),
        },
        ..Config::default()
    };
    if config.tls && cfg!(not(feature = "tls")) {
        let text = "TLS needs the feature `tls` of rufous-client";
        return Err(Error::Config(text.into()));
    }
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, db) = rest.split_once('/').unwrap_or((rest, ""));
    if !db.is_empty() {
        config.db = db
            .parse()
            .map_err(|_| bad("a database that is no number"))?;
    }
    let hosts = match authority.rsplit_once('@') {
        Some((who, hosts)) => {
            // As in Redis's URLs, a single word is a user; a password alone is written after a `:`.
            let (user, password) = who.split_once(':').unwrap_or((who, ""));
            let text = |part: &str| match part {
                "" => Ok(None),
                part => decode(part).map(Some).ok_or_else(|| bad("a bad escape")),
            };
            (config.user, config.password) = (text(user)?, text(password)?);
            hosts
        }
        None => authority,
    };
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        config
            .seeds
            .push(seed(host).ok_or_else(|| bad("a bad address"))?);
    }
    if config.seeds.is_empty() {
        return Err(bad("no address"));
    }
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decode(value).ok_or_else(|| bad("a bad escape"))?;
        set(&mut config, key, &value).ok_or_else(|| bad(&format!("a bad option '{key}'")))?;
    }
    Ok(config)
}

fn seed(host: &str) -> Option<Addr> {
    let has_port = match host.rsplit_once(']') {
        Some((_, rest)) => rest.starts_with(':'),
        None => host.contains(':'),
    };
    if has_port {
        Addr::parse(host, "")
    } else {
        Addr::parse(&format!("{host}:6379"), "")
    }
}

fn set(config: &mut Config, key: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u64>().ok().filter(|&n| n > 0);
    let duration = || number().map(Duration::from_millis);
    match key {
        "timeout_ms" => config.timeout = duration()?,
        "attempt_timeout_ms" => config.attempt_timeout = duration()?,
        "connect_timeout_ms" => config.connect_timeout = duration()?,
        "attempts" => config.attempts = u32::try_from(number()?).ok()?,
        "pool" => config.pool = usize::try_from(number()?).ok().filter(|&n| n <= 10_000)?,
        "name" => config.name = Some(value.to_owned()),
        "protocol" => config.resp2 = ["3", "2"].iter().position(|&p| p == value)? == 1,
        "read" => {
            config.read_from = match value {
                "owner" => ReadFrom::Owner,
                "replica" => ReadFrom::AnyReplica,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

/// Undoes percent escapes.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_say_it_all() {
        let config = parse(
            "rufous://ann:p%40ss@db1,db2:7000,[::1]:7001/3?timeout_ms=500&pool=4&name=web&read=replica&protocol=2",
        )
        .unwrap();
        let seeds: Vec<String> = config.seeds.iter().map(Addr::to_string).collect();
        assert_eq!(seeds, ["db1:6379", "db2:7000", "[::1]:7001"]);
        assert_eq!(config.db, 3);
        assert_eq!(config.user.as_deref(), Some("ann"));
        assert_eq!(config.password.as_deref(), Some("p@ss"));
        assert_eq!(config.timeout, Duration::from_millis(500));
        assert_eq!((config.pool, config.resp2), (4, true));
        assert_eq!(config.read_from, ReadFrom::AnyReplica);
        assert_eq!(config.name.as_deref(), Some("web"));
    }

    #[test]
    fn bad_urls_are_refused_with_the_reason() {
        let check = |url: &str, text: &str| match parse(url) {
            Ok(_) => panic!("{url} is accepted"),
            Err(error) => assert!(error.to_string().contains(text), "{url}: {error}"),
        };
        check("db1:6379", "no scheme");
        check("http://db1", "a scheme other");
        check("rufous://", "no address");
        check("rufous://db1:x", "a bad address");
        check("rufous://db1:0", "a bad address");
        check("rufous://db1/x", "no number");
        check("rufous://db1?speed=9", "'speed'");
        check("rufous://db1?timeout_ms=0", "'timeout_ms'");
        check("rufous://:%zz@db1", "a bad escape");
        if cfg!(not(feature = "tls")) {
            check("rediss://db1", "the feature `tls`");
        }
    }

    proptest! {
        #[test]
        fn no_url_makes_it_panic(rest in "\\PC{0,60}") {
            let _ = parse(&rest);
            let _ = parse(&format!("rufous://{rest}"));
            let _ = Addr::parse(&rest, "h");
        }
    }
}
