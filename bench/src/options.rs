//! The options of `bench-peers` and which servers they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::measure::Rounds;
use crate::servers::{ServerSpec, on_path};

/// The name under which Rufous runs.
pub const RUFOUS: &str = "rufous";
const PEERS: [&str; 2] = ["redis", "valkey"];

/// The parts of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// CPU per command beside the peers.
    Commands,
    /// Resident bytes per key, also right after growth.
    Memory,
    /// Keys of the own worker against keys of the other one.
    Cross,
    /// Two workers against one.
    Scaling,
    /// Latency while the table grows, is flushed and keys expire.
    Pauses,
    /// What the log costs, and how fast it is where every write is synced.
    Log,
    /// Latency and memory while a snapshot is written.
    Snapshot,
    /// Start from a snapshot and from a log.
    Load,
    /// SET at the memory limit.
    Eviction,
    /// CPU per command on collections beside the peers.
    Types,
    /// Resident bytes per element of collections.
    TypeMemory,
    /// How long commands on huge collections hold a worker.
    TypePauses,
    /// How long other clients wait beside one short request, and the memory that it takes.
    ShortCommands,
}

/// How to run Rufous.
#[derive(Args, Clone, Debug)]
pub struct RufousOptions {
    /// Rufous's binary; by default the one beside this program, then target/release/rufous
    #[arg(long, value_name = "PATH")]
    pub rufous: Option<PathBuf>,
    /// More arguments for `rufous server`
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub rufous_args: String,
    /// The whole command line instead, with {port}, {workers}, {dir} and {admin} (a second port)
    #[arg(long, value_name = "COMMAND")]
    pub rufous_command: Option<String>,
}

impl RufousOptions {
    pub fn spec(&self) -> Result<ServerSpec> {
        if let Some(command) = &self.rufous_command {
            return Ok(ServerSpec::new(RUFOUS, command));
        }
        let beside = std::env::current_exe()
            .ok()
            .map(|exe| exe.with_file_name("rufous"));
        let candidates = match &self.rufous {
            Some(path) => vec![path.clone()],
            None => beside
                .into_iter()
                .chain([PathBuf::from("target/release/rufous")])
                .collect(),
        };
        let Some(binary) = candidates.iter().find(|path| path.is_file()) else {
            let tried: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
            bail!(
                "no Rufous at {}: run `cargo build --release` first",
                tried.join(" or ")
            );
        };
        // Sections ask with DEBUG at which worker a key is.
        let words = "server --port {port} --workers {workers} --dir {dir} --appendonly no --save= \
            --enable-debug-command local";
        let mut spec = ServerSpec::new(RUFOUS, &format!("{words} {}", self.rufous_args));
        spec.words.insert(0, binary.display().to_string());
        Ok(spec)
    }
}

/// Rufous and its peers side by side.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Only these parts (may be repeated, or joined by commas)
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Two short windows and small data sets: shows that everything runs, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Windows per server and row [default: 9, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Length of a window in ms [default: 500, quick 150]
    #[arg(long)]
    pub window_ms: Option<u64>,
    /// Keys of the command rows and of the first memory row [default: 1000000, quick 100000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// Keys of the last memory row [default: 10000000, quick 1000000]
    #[arg(long)]
    pub big_keys: Option<u64>,
    /// Keys of the pause measurements, elements of their collections [default: 10000000, quick 1000000]
    #[arg(long)]
    pub pause_keys: Option<u64>,
    /// Keys of the snapshot and of the start [default: 5000000, quick 1000000]
    #[arg(long)]
    pub durable_keys: Option<u64>,
    /// Elements of each memory row of collections [default: 10000000, quick 1000000]
    #[arg(long)]
    pub elements: Option<u64>,
    /// Where data folders are made; must be on a disk [default: the first of the folder for
    /// temporary files, target, and . that is]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    #[arg(long, default_value_t = 50)]
    pub connections: usize,
    /// The processor of the server under test
    #[arg(long, default_value_t = 0)]
    pub server_core: usize,
    /// The processor of the load generator
    #[arg(long, default_value_t = 1)]
    pub load_core: usize,
    #[command(flatten)]
    pub rufous: RufousOptions,
    /// More arguments for redis-server and valkey-server
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub peer_args: String,
    /// A further peer, with {port} and {dir} in its command line
    #[arg(long, value_name = "NAME=COMMAND")]
    pub peer: Vec<String>,
    /// Leave redis-server and valkey-server out
    #[arg(long)]
    pub no_default_peers: bool,
    /// Where pages, charts and results.json go [default: docs/benchmarks; quick: nowhere]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print pages in Markdown instead of tables
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

impl Options {
    pub fn runs(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn pick<T>(&self, given: Option<T>, full: T, quick: T) -> T {
        given.unwrap_or(if self.quick { quick } else { full })
    }

    pub fn rounds(&self) -> Rounds {
        Rounds {
            count: self.pick(self.windows, 9, 2).max(1),
            window: Duration::from_millis(self.pick(self.window_ms, 500, 150)),
        }
    }

    pub fn keys(&self) -> u64 {
        self.pick(self.keys, 1_000_000, 100_000)
    }

    pub fn big_keys(&self) -> u64 {
        self.pick(self.big_keys, 10_000_000, 1_000_000)
    }

    pub fn pause_keys(&self) -> u64 {
        self.pick(self.pause_keys, 10_000_000, 1_000_000)
    }

    pub fn durable_keys(&self) -> u64 {
        self.pick(self.durable_keys, 5_000_000, 1_000_000)
    }

    pub fn elements(&self) -> u64 {
        self.pick(self.elements, 10_000_000, 1_000_000)
    }

    /// A place on a disk.
    fn data(&self) -> Result<PathBuf> {
        let usual = || vec![std::env::temp_dir(), "target".into(), ".".into()];
        let places = self.data.clone().map_or_else(usual, |place| vec![place]);
        let found = places.iter().find(|place| place.is_dir() && on_disk(place));
        let Some(place) = found else {
            bail!("no folder on a disk among {places:?}: name one with --data");
        };
        // Servers change into their folder.
        Ok(place.canonicalize()?)
    }

    /// As `contestants`, with data folders on a disk, and nothing written unless it is asked for.
    pub fn durable_contestants(&self) -> Result<Vec<ServerSpec>> {
        let data = self.data()?;
        let mut specs = self.contestants()?;
        for spec in &mut specs {
            *spec = spec.with(&["--auto-aof-rewrite-percentage", "0"]);
            spec.data = Some(data.clone());
            spec.patience = Duration::from_secs(600);
        }
        Ok(specs)
    }

    /// Nowhere for quick runs, whose figures mean nothing, unless a place is given.
    pub fn out(&self) -> Option<PathBuf> {
        let usual = (!self.quick).then(|| PathBuf::from("docs/benchmarks"));
        self.out.clone().or(usual)
    }

    /// Peers first, Rufous last, all on the server's core.
    pub fn contestants(&self) -> Result<Vec<ServerSpec>> {
        let mut specs = Vec::new();
        if !self.no_default_peers {
            for name in PEERS {
                let program = format!("{name}-server");
                if on_path(&program).is_some() {
                    specs.push(peer(name, &program, &self.peer_args));
                }
            }
        }
        for text in &self.peer {
            let Some((name, command)) = text.split_once('=') else {
                bail!("--peer takes NAME=COMMAND, not {text}");
            };
            specs.push(ServerSpec::new(name, command));
        }
        if specs.is_empty() {
            bail!("no peer: install redis-server, or name one with --peer");
        }
        specs.push(self.rufous.spec()?);
        let core = self.server_core.to_string();
        Ok(specs.into_iter().map(|spec| spec.on_cores(&core)).collect())
    }
}

/// Whether what is written there goes to a device, rather than to a tmpfs or ramfs.
fn on_disk(place: &Path) -> bool {
    rustix::fs::statfs(place).is_ok_and(|fs| !matches!(fs.f_type, 0x0102_1994 | 0x8584_58F6))
}

/// A Redis-like server without snapshots and log; an empty word stands for `--save ""`.
pub fn peer(name: &str, program: &str, args: &str) -> ServerSpec {
    let command = format!("{program} --port {{port}} --bind 127.0.0.1 --dir {{dir}} {args}");
    let mut spec = ServerSpec::new(name, &command);
    spec.words
        .extend(["--save", "", "--appendonly", "no"].map(str::to_owned));
    spec
}
