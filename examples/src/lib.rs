//! What the example programs share: two connections that are with different workers of a node, and
//! so with different replicas of each key of a lattice keyspace.
//!
//! Nothing here is needed to *use* such a keyspace: a client connects and sends commands, as to
//! Redis. It is there so that one can watch. Replicas of a node usually know of each other's writes
//! after milliseconds; here they are asked to wait for a minute, and [`Replicas::merge`] lets them go on.

#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail, ensure};
use redis::{Commands, Connection, cmd};
use std::collections::HashMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Milliseconds of an epoch while the replicas are to work apart: the most that there may be.
const APART_MS: u32 = 60_000;
/// Likewise while they are to hear of each other.
const TOGETHER_MS: u32 = 10;
/// Connections are dealt out to workers in turn, unless others come and go meanwhile.
const ATTEMPTS: usize = 64;
/// Far more than hearing of each other takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The command line of an example.
#[derive(clap::Parser)]
pub struct Args {
    /// A node with two workers or more
    #[arg(long, default_value = "redis://127.0.0.1:6379")]
    pub url: String,
}

/// What an example works with.
pub struct Keyspace {
    pub name: &'static str,
    /// All keys with it are the example's: it begins by deleting them.
    pub prefix: &'static str,
    /// What is said of it in KEYSPACE CREATE, beside its regime.
    pub options: &'static [&'static str],
}

/// One client's connection, and the worker that it is with as long as it lives.
pub struct Client {
    pub name: &'static str,
    pub redis: Connection,
    pub worker: usize,
}

/// Two clients that are with different replicas.
pub struct Replicas {
    keyspace: Keyspace,
    /// Which of `merge`s this is.
    round: u64,
    pub one: Client,
    pub two: Client,
}

impl Replicas {
    /// Connects, makes the keyspace where there is none of this name, and empties it.
    pub fn open(url: &str, keyspace: Keyspace, names: [&'static str; 2]) -> Result<Self> {
        let (one, two) = connect(url, names)?;
        let mut replicas = Self {
            keyspace,
            round: 0,
            one,
            two,
        };
        replicas.create()?;
        // What an earlier run has left may not be everywhere yet, nor is its removal at once.
        replicas.merge()?;
        let left: Vec<String> = replicas.one.redis.keys(replicas.key("*"))?;
        for key in left {
            // At level causal a session removes what it has read. Of a collection that is an error.
            let _: redis::RedisResult<redis::Value> = replicas.one.redis.get(&key);
            let _: u64 = replicas.one.redis.del(key)?;
        }
        replicas.merge()?;
        println!(
            "Keyspace {:?}: {} is with worker {}, {} with worker {}; each has its own replica.",
            replicas.keyspace.name, names[0], replicas.one.worker, names[1], replicas.two.worker,
        );
        Ok(replicas)
    }

    /// A key of the keyspace.
    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.keyspace.prefix)
    }

    /// Has each replica tell the other what it has changed, and returns when both have heard.
    ///
    /// What a replica sends arrives in the order in which it was first written since it last sent
    /// anything. So once the marks that are set here have arrived, all before them has.
    pub fn merge(&mut self) -> Result<()> {
        self.merge_watched(|_| Ok(()))
    }

    /// Likewise, while `watch` looks at the second replica again and again, before it has heard and
    /// at last when it has.
    pub fn merge_watched(
        &mut self,
        mut watch: impl FnMut(&mut Connection) -> Result<()>,
    ) -> Result<()> {
        self.round += 1;
        let (marks, run, round) = (self.key("heard"), std::process::id(), self.round);
        let mark = |client: &Client| format!("{}:{run}:{round}", client.name);
        let (first, second) = (mark(&self.one), mark(&self.two));
        let _: u64 = self.one.redis.sadd(&marks, &first)?;
        let _: u64 = self.two.redis.sadd(&marks, &second)?;
        watch(&mut self.two.redis)?;
        self.set_epoch(TOGETHER_MS)?;
        let deadline = Instant::now() + PATIENCE;
        while !(self.one.redis.sismember(&marks, &second)?
            && self.two.redis.sismember(&marks, &first)?)
        {
            ensure!(
                Instant::now() < deadline,
                "the replicas do not hear of each other"
            );
            watch(&mut self.two.redis)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        watch(&mut self.two.redis)?;
        self.set_epoch(APART_MS)
    }

    /// Shows what a read replies at each replica, and returns both.
    pub fn look<T: Debug, E: Into<anyhow::Error>>(
        &mut self,
        mut read: impl FnMut(&mut Connection) -> Result<T, E>,
    ) -> Result<(T, T)> {
        let one = read(&mut self.one.redis).map_err(Into::into)?;
        let two = read(&mut self.two.redis).map_err(Into::into)?;
        println!("    {:8} sees {one:?}", self.one.name);
        println!("    {:8} sees {two:?}", self.two.name);
        Ok((one, two))
    }

    fn create(&mut self) -> Result<()> {
        let Keyspace {
            name,
            prefix,
            options,
        } = self.keyspace;
        let names: Vec<String> = cmd("KEYSPACE").arg("LIST").query(&mut self.one.redis)?;
        let is_there = names.iter().any(|there| there == name);
        let change = if is_there { "ALTER" } else { "CREATE" };
        let made: redis::RedisResult<()> = cmd("KEYSPACE")
            .arg(change)
            .arg(name)
            .arg(&["PREFIX", prefix, "REGIME", "lattice"])
            .arg(options)
            .query(&mut self.one.redis);
        made.with_context(|| format!("KEYSPACE {change} {name}"))?;
        // The shortest epoch is that of all.
        for other in names.iter().filter(|other| *other != name) {
            let said: HashMap<String, String> = cmd("KEYSPACE")
                .arg("DESCRIBE")
                .arg(other)
                .query(&mut self.one.redis)?;
            let of = |option: &str| said.get(option).map_or("", String::as_str);
            let epoch: u32 = of("gossip-ms").parse().unwrap_or_default();
            ensure!(
                of("regime") != "lattice" || epoch >= APART_MS,
                "keyspace '{other}' has replicas tell one another every {epoch} ms, and these \
                 would, too. Try another node, or: KEYSPACE ALTER {other} GOSSIP {APART_MS}"
            );
        }
        Ok(())
    }

    fn set_epoch(&mut self, milliseconds: u32) -> Result<()> {
        cmd("KEYSPACE")
            .arg(&["ALTER", self.keyspace.name, "GOSSIP"])
            .arg(milliseconds)
            .query::<()>(&mut self.one.redis)?;
        Ok(())
    }
}

/// Connects until two connections are with different workers.
fn connect(url: &str, names: [&'static str; 2]) -> Result<(Client, Client)> {
    let node = redis::Client::open(url).context("--url")?;
    let open = |name| -> Result<Client> {
        let connected = node.get_connection();
        let mut redis = connected.with_context(|| format!("cannot connect to {url}"))?;
        let worker = worker_of(&mut redis)?;
        Ok(Client {
            name,
            redis,
            worker,
        })
    };
    let one = open(names[0])?;
    // They are kept open, or the next might be dealt to the same worker.
    let mut same = Vec::new();
    for _ in 0..ATTEMPTS {
        let other = open(names[1])?;
        if other.worker != one.worker {
            return Ok((one, other));
        }
        same.push(other);
    }
    bail!(
        "{ATTEMPTS} connections were all with worker {}: start the node with --workers 2 or more",
        one.worker
    )
}

/// The field `worker` of CLIENT INFO.
fn worker_of(redis: &mut Connection) -> Result<usize> {
    let info: String = cmd("CLIENT").arg("INFO").query(redis)?;
    let field = info
        .split_whitespace()
        .find_map(|field| field.strip_prefix("worker="));
    let field = field.context("CLIENT INFO names no worker: is this a Rufous node?")?;
    Ok(field.parse()?)
}
