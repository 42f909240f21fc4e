//! Stores as clients see them: one server process, or several that make up a cluster; and windows of
//! load on them, with the CPU time that each thread of theirs took.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;
use serde::Serialize;

use rufous_bench::client::{Client, Reply};
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::keys;
use rufous_bench::loadgen::load::{Load, Stop};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::loadgen::template::{Command, Shape, Template};
use rufous_bench::procfs;
use rufous_bench::sections;
use rufous_bench::servers::{Server, ServerSpec};
use rufous_bench::stats::Summary;

/// Keys and values as in the paper's comparisons with other servers [Anna §VIII-B].
pub(crate) const SHAPE: Shape = Shape {
    key_bytes: 25,
    value_bytes: 1024,
};
/// Clients that fill a store, and their pipeline.
const LOADING: (usize, usize) = (8, 32);
/// How long cluster nodes may take to find one another.
const MEETING: Duration = Duration::from_secs(30);
/// A server that has used less than this in a pause has come to rest.
const RESTS_MS: (u64, u64) = (200, 4);
const RESTLESS: Duration = Duration::from_secs(60);
/// After a window, until what its last epoch changed has arrived: it belongs to the window.
const SETTLE: Duration = Duration::from_millis(120);

/// Which of several servers has a key, as cluster clients know it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub nodes: usize,
    node_of: Arc<[u8]>,
}

impl Route {
    pub(crate) fn new(keys: u64, nodes: usize) -> Self {
        let mut name = keys::prefix(SHAPE.key_bytes);
        let digits_at = name.len();
        name.extend_from_slice(&keys::digits(0));
        let node_of = (0..keys).map(|number| {
            name[digits_at..].copy_from_slice(&keys::digits(number));
            node_of_slot(usize::from(slot_of(&name)), nodes) as u8
        });
        Self {
            nodes,
            node_of: node_of.collect(),
        }
    }

    #[inline]
    pub(crate) fn is_at(&self, number: u32, node: usize) -> bool {
        self.nodes == 1 || usize::from(self.node_of[number as usize]) == node
    }
}

/// Slots lie with nodes in equal ranges.
fn node_of_slot(slot: usize, nodes: usize) -> usize {
    slot * nodes / SLOTS
}

/// The slots of a node, first and last.
fn slots_of(node: usize, nodes: usize) -> (usize, usize) {
    let first = |node: usize| (node * SLOTS).div_ceil(nodes);
    (first(node), first(node + 1) - 1)
}

/// Writes every key once.
struct Loading {
    route: Route,
    /// Where each node's keys go on.
    next: Vec<u32>,
    keys: u32,
    set: Template,
}

impl Source for Loading {
    fn fill(&mut self, conn: usize, batch: &mut Batch) {
        let node = conn % self.route.nodes;
        let next = &mut self.next[node];
        while *next < self.keys && batch.expects.len() < LOADING.1 {
            if self.route.is_at(*next, node) {
                self.set.emit_from(&mut batch.out, u64::from(*next));
                batch.expects.push(Expect::completing(Check::Simple, 0));
            }
            *next += 1;
        }
    }
}

/// A store with its clients.
pub(crate) struct Service {
    pub name: String,
    pub servers: Vec<Server>,
    /// So many threads can each take any request.
    pub alike: Option<usize>,
    route: Route,
    load: Load,
}

/// What one window gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    pub operations: f64,
    /// Seconds.
    pub elapsed: f64,
    pub kops: f64,
    /// CPU time of all servers' threads, and of the clients.
    pub cpu_us: f64,
    pub load_us: f64,
    /// What the thread takes of that which bounds the store: the busiest, or where clients may go to
    /// any thread an equal part.
    pub bound_us: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub others_cores: f64,
}

impl Sample {
    /// Thousands a second, had each thread of the servers its processor and the clients others.
    pub(crate) fn kops_by_cpu(&self) -> f64 {
        1e3 / self.bound_us
    }
}

/// Of the windows of one store.
pub(crate) fn summary(samples: &[Sample], field: impl Fn(&Sample) -> f64) -> Summary {
    Summary::of(samples.iter().map(field))
}

/// Of windows side by side.
pub(crate) fn ratio(of: &[Sample], to: &[Sample], field: impl Fn(&Sample) -> f64) -> Summary {
    Summary::of(of.iter().zip(to).map(|(a, b)| field(a) / field(b)))
}

impl Service {
    /// One server, told `commands` before its first key.
    pub(crate) fn start(
        name: &str,
        spec: &ServerSpec,
        commands: &[&[&str]],
        clients: usize,
    ) -> Result<Self> {
        let server = Server::start(spec)?;
        let mut client = server.client()?;
        for words in commands {
            client
                .call(words)?
                .text()
                .with_context(|| words.join(" "))?;
        }
        Self::over(name, vec![server], clients)
    }

    /// So many instances that share the slots.
    pub(crate) fn cluster(
        name: &str,
        spec: &ServerSpec,
        nodes: usize,
        clients: usize,
    ) -> Result<Self> {
        let words = ["--cluster-enabled", "yes", "--cluster-port", "{admin}"];
        let spec = spec.with(&words);
        let servers: Result<Vec<_>> = (0..nodes).map(|_| Server::start(&spec)).collect();
        let servers = servers?;
        join(&servers).context("making a cluster")?;
        Self::over(name, servers, clients)
    }

    fn over(name: &str, servers: Vec<Server>, clients: usize) -> Result<Self> {
        let load = Load::connect_each(&addrs(&servers), clients)?;
        Ok(Self {
            name: name.to_owned(),
            alike: None,
            route: Route::new(0, servers.len()),
            servers,
            load,
        })
    }

    /// Writes `keys` keys, and waits until all is quiet.
    pub(crate) fn fill(&mut self, keys: u64) -> Result<()> {
        self.route = Route::new(keys, self.servers.len());
        let mut loading = Loading {
            next: vec![0; self.servers.len()],
            route: self.route.clone(),
            keys: u32::try_from(keys)?,
            set: Template::new(Command::Set, SHAPE),
        };
        let mut load = Load::connect_each(&addrs(&self.servers), LOADING.0)?;
        load.run(&mut loading, Stop::Exhausted)?;
        self.rest()
    }

    /// Waits until nothing is done any more.
    fn rest(&self) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < RESTLESS {
            let before = self.cpu()?;
            std::thread::sleep(Duration::from_millis(RESTS_MS.0));
            if self.cpu()? - before < Duration::from_millis(RESTS_MS.1) {
                return Ok(());
            }
        }
        bail!("{} does not come to rest", self.name)
    }

    /// Where each key is.
    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    fn cpu(&self) -> Result<Duration> {
        self.servers.iter().map(Server::cpu_time).sum()
    }

    /// The CPU time of each thread of each server.
    fn threads(&self) -> Result<Vec<((usize, u32), Duration)>> {
        let mut all = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            let times = procfs::thread_times(server.pid())?;
            all.extend(times.into_iter().map(|(thread, time)| ((at, thread), time)));
        }
        Ok(all)
    }

    /// One window of load. What the servers still do afterwards is charged to it.
    pub(crate) fn window(&mut self, source: &mut dyn Source, time: Duration) -> Result<Sample> {
        let own = std::process::id();
        let before = (self.threads()?, procfs::cpu_time(own)?);
        let busy = procfs::machine_busy_time()?;
        let window = self.load.run(source, Stop::After(time))?;
        let load = (procfs::cpu_time(own)? - before.1).as_secs_f64();
        let served = self.cpu()? - before.0.iter().map(|(_, time)| *time).sum::<Duration>();
        let busy = procfs::machine_busy_time()? - busy;
        std::thread::sleep(SETTLE);
        let known: std::collections::BTreeMap<_, _> = before.0.into_iter().collect();
        let threads = self.threads()?.into_iter().map(|(thread, time)| {
            let before = known.get(&thread).copied().unwrap_or_default();
            time.saturating_sub(before).as_secs_f64()
        });
        let threads: Vec<f64> = threads.collect();
        let (all, busiest) = (
            threads.iter().sum::<f64>(),
            threads.iter().copied().fold(0.0, f64::max),
        );
        let bound = self.alike.map_or(busiest, |threads| all / threads as f64);
        let operations = window.operations() as f64;
        ensure!(operations > 0.0, "{} completed nothing", self.name);
        let (elapsed, latency) = (window.elapsed.as_secs_f64(), window.latency()?);
        let others = busy.as_secs_f64() - served.as_secs_f64() - load;
        Ok(Sample {
            operations,
            elapsed,
            kops: operations / elapsed / 1e3,
            cpu_us: all * 1e6 / operations,
            load_us: load * 1e6 / operations,
            bound_us: bound * 1e6 / operations,
            p50_ms: latency.percentile_ms(50.0),
            p99_ms: latency.percentile_ms(99.0),
            others_cores: (others / elapsed).max(0.0),
        })
    }

    /// Numbers of a section of INFO, summed up over the servers.
    pub(crate) fn info(&self, section: &str, field: &str) -> Result<f64> {
        let mut sum = 0.0;
        for server in &self.servers {
            let text = server.client()?.call(&["INFO", section])?.text()?;
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(name, _)| *name == field);
            let (_, value) = found.with_context(|| format!("INFO has no {field}"))?;
            sum += value.trim().parse::<f64>()?;
        }
        Ok(sum)
    }

    /// What the first server calls its version.
    pub(crate) fn version(&self) -> Result<String> {
        let info = self.servers[0]
            .client()?
            .call(&["INFO", "server"])?
            .text()?;
        Ok(sections::version(&info))
    }
}

fn addrs(servers: &[Server]) -> Vec<SocketAddr> {
    servers.iter().map(|server| server.addr).collect()
}

/// Gives every instance its slots, and waits until all know of all.
fn join(servers: &[Server]) -> Result<()> {
    let clients: Result<Vec<Client>> = servers.iter().map(Server::client).collect();
    let mut clients = clients?;
    for (node, client) in clients.iter_mut().enumerate() {
        let (first, last) = slots_of(node, servers.len());
        let (first, last) = (first.to_string(), last.to_string());
        let epoch = (node + 1).to_string();
        client
            .call(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?
            .text()?;
        client
            .call(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?
            .text()?;
    }
    for node in 1..servers.len() {
        let Reply::Array(words) = clients[node].call(&["CONFIG", "GET", "cluster-port"])? else {
            bail!("it does not tell its port for other nodes");
        };
        let bus = words.into_iter().next_back().context("no port")?.text()?;
        let (ip, port) = (servers[node].addr.ip(), servers[node].addr.port());
        let words = ["CLUSTER", "MEET", &ip.to_string(), &port.to_string(), &bus];
        clients[0].call(&words)?.text()?;
    }
    let began = Instant::now();
    loop {
        let mut met = 0;
        for client in &mut clients {
            let text = client.call(&["CLUSTER", "INFO"])?.text()?;
            let knows = format!("cluster_known_nodes:{}\r", servers.len());
            met += usize::from(text.contains("cluster_state:ok") && text.contains(&knows));
        }
        if met == servers.len() {
            return Ok(());
        }
        ensure!(
            began.elapsed() < MEETING,
            "the nodes do not find each other"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_the_node_whose_range_it_is_in() {
        for nodes in 1..5 {
            let mut next = 0;
            for node in 0..nodes {
                let (first, last) = slots_of(node, nodes);
                assert_eq!(first, next);
                assert!((first..=last).all(|slot| node_of_slot(slot, nodes) == node));
                next = last + 1;
            }
            assert_eq!(next, SLOTS);
        }
    }

    #[test]
    fn every_key_is_written_to_its_node() {
        let (route, nodes) = (Route::new(1000, 2), 2);
        let mut loading = Loading {
            next: vec![0; nodes],
            route: route.clone(),
            keys: 1000,
            set: Template::new(Command::Set, SHAPE),
        };
        let mut written = [0, 0];
        for conn in 0..400 {
            let mut batch = Batch::default();
            loading.fill(conn, &mut batch);
            written[conn % nodes] += batch.expects.len();
        }
        assert_eq!(written[0] + written[1], 1000);
        let here = (0..1000).filter(|&n| route.is_at(n, 0)).count();
        assert_eq!(written[0], here);
        assert!((400..600).contains(&here), "{here}");
    }
}
