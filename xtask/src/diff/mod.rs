//! `cargo xtask diff`: sends the same random commands to redis-server and to Rufous, and compares
//! replies and, at the end of each round, all that both have, also after a way by DUMP and RESTORE
//! to the other side.
//!
//! `grammar` draws commands, `compare` says when replies are the same, `payloads` carries values
//! over, `wire` is the client. What Redis 7.0 does otherwise than Rufous, which follows 7.2, is
//! listed with reasons in docs/compatibility/differences.toml.

mod compare;
mod grammar;
mod payloads;
pub(crate) mod wire;

use crate::process::{cargo, run as run_command, which};
use crate::project;
use crate::suite::server::{Server, Target};
use anyhow::{Context, Result};
use compare::{Known, Mode};
use grammar::{Family, Generator, Rule};
use std::collections::BTreeSet;
use wire::{Client, Reply, Words, shown};

/// Commands of a round.
const STEPS: usize = 150;
/// Attempts at making a difference smaller.
const ATTEMPTS: usize = 600;
/// Longer replies are cut when they are shown.
const SHOWN: usize = 600;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask diff --rounds 500\n  \
    cargo xtask diff --family zset --seed 42 --rounds 1\n  \
    cargo xtask diff --family list --keep-going    one difference for each command\n\n\
    Exit status 0 when there was no difference but known ones.")]
pub(crate) struct Args {
    /// Rounds for each family, each on empty databases
    #[arg(long, default_value_t = 100)]
    pub(crate) rounds: u64,
    /// Where to begin: round n of seed s is the first of seed s + n
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only this family of commands (may be repeated)
    #[arg(long)]
    pub(crate) family: Vec<Family>,
    /// Go on with a family after a difference; show the first of each command
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Start this command line instead of the release build; {port} and {dir} are filled in
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Do not build the server first
    #[arg(long)]
    pub(crate) no_build: bool,
}

impl Args {
    /// What the test run does, with the server that is there.
    pub(crate) fn short() -> Self {
        Self {
            rounds: 25,
            seed: 1,
            family: Vec::new(),
            keep_going: false,
            server: None,
            no_build: true,
        }
    }
}

/// Why nothing can be compared on this machine.
pub(crate) fn obstacle() -> Option<&'static str> {
    which("redis-server")
        .is_none()
        .then_some("no redis-server (Debian: redis-server)")
}

/// Both servers.
struct Sides {
    redis: Client,
    ours: Client,
    /// Whether both have DUMP and RESTORE.
    carries_payloads: bool,
    _servers: [Server; 2],
}

/// A command that is sent.
#[derive(Clone)]
struct Step {
    mode: Mode,
    words: Words,
}

/// What is done in a round.
struct Round {
    steps: Vec<Step>,
    protocol: u64,
    /// Whether collections are large after a few elements.
    tiny: bool,
}

struct Difference {
    what: String,
    redis: String,
    ours: String,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(obstacle) = obstacle() {
        anyhow::bail!("cannot compare: {obstacle}");
    }
    if args.server.is_none() && !args.no_build {
        run_command(cargo().args(["build", "--release", "--package", "rufous-node"]))?;
    }
    let known = compare::known()?;
    let mut sides = Sides::start(args)?;
    let families = match args.family.is_empty() {
        true => &Family::ALL[..],
        false => &args.family[..],
    };
    let mut fine = true;
    for &family in families {
        fine &= compare_family(args, family, &known, &mut sides)
            .with_context(|| format!("family {}", family.name()))?;
    }
    Ok(fine)
}

fn compare_family(args: &Args, family: Family, known: &[Known], sides: &mut Sides) -> Result<bool> {
    let all = grammar::rules(family)?;
    let (rules, missing) = sides.shared(&all)?;
    if rules.is_empty() {
        println!("{}: none of its commands are there", family.name());
        return Ok(true);
    }
    let (mut found, mut commands) = (BTreeSet::new(), 0);
    for seed in args.seed..args.seed + args.rounds {
        let round = Round::draw(seed, family, &rules);
        commands += round.steps.len();
        let Some((at, difference)) = sides.play(&round, known)? else {
            continue;
        };
        let what = difference.what.split(' ').next().unwrap_or_default();
        if !found.insert(what.to_ascii_lowercase()) {
            continue;
        }
        println!("{}, seed {seed}:", family.name());
        let smallest = smallest(sides, round, at, difference, known)?;
        smallest.0.print(&smallest.1);
        if !args.keep_going {
            break;
        }
    }
    let verdict = match found.len() {
        0 => "no difference".to_owned(),
        some => format!("DIFFERENT in {some} commands"),
    };
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!("; not there: {}", missing.join(" ")),
    };
    println!("{}: {verdict}, {commands} commands{missing}", family.name());
    Ok(found.is_empty())
}

/// Leaves out commands as long as there is a difference.
fn smallest(
    sides: &mut Sides,
    mut round: Round,
    at: usize,
    mut difference: Difference,
    known: &[Known],
) -> Result<(Round, Difference)> {
    round.steps.truncate(at + 1);
    let (mut size, mut attempts) = (round.steps.len() / 2, 0);
    while size > 0 {
        let mut from = 0;
        while from < round.steps.len() && attempts < ATTEMPTS {
            attempts += 1;
            let end = (from + size).min(round.steps.len());
            let kept = [&round.steps[..from], &round.steps[end..]].concat();
            let fewer = Round {
                steps: kept,
                ..round
            };
            match sides.play(&fewer, known)? {
                Some((at, found)) => {
                    round = fewer;
                    round.steps.truncate(at + 1);
                    difference = found;
                }
                None => from = end,
            }
        }
        size /= 2;
    }
    Ok((round, difference))
}

impl Round {
    fn draw(seed: u64, family: Family, rules: &[&Rule]) -> Self {
        let mut generator = Generator::new(seed, family);
        let mut steps = Vec::new();
        // Of every type one, to be of the wrong one.
        for command in [
            "SET string0 a",
            "RPUSH list0 a",
            "SADD set0 a",
            "HSET hash0 a 1",
            "ZADD zset0 1 a",
        ] {
            let words = command.split(' ').map(|word| word.as_bytes().to_vec());
            steps.push(Step {
                mode: Mode::Exact,
                words: words.collect(),
            });
        }
        for _ in 0..STEPS {
            let rule = rules[generator.below(rules.len())];
            let words = generator.command(rule);
            let key = words.get(1).cloned();
            let mode = rule.mode;
            steps.push(Step { mode, words });
            if let (Mode::Removing, Some(key)) = (mode, key) {
                steps.push(Step {
                    mode: Mode::Random,
                    words: vec![b"DEL".to_vec(), key],
                });
            }
        }
        Self {
            steps,
            protocol: 2 + seed % 2,
            tiny: seed % 4 >= 2,
        }
    }

    fn print(&self, difference: &Difference) {
        let shape = if self.tiny { "5" } else { "the defaults" };
        println!("  (RESP{}, packed up to {shape})", self.protocol);
        for step in &self.steps {
            println!("  {}", cut(&shown(&step.words)));
        }
        println!("  differs: {}", cut(&difference.what));
        println!("    Redis:  {}", cut(&difference.redis));
        println!("    Rufous: {}", cut(&difference.ours));
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

impl Sides {
    fn start(args: &Args) -> Result<Self> {
        let logs = project::target().join("suite-logs");
        std::fs::create_dir_all(&logs)?;
        let redis = Target::Command(
            "redis-server --port {port} --dir {dir} --appendonly no --save 9999999 1".to_owned(),
        );
        let ours = match &args.server {
            Some(line) => Target::Command(line.clone()),
            None => Target::Rufous,
        };
        let redis = redis.start(&logs.join("diff-redis.log"))?;
        let ours = ours.start(&logs.join("diff-rufous.log"))?;
        let mut sides = Self {
            redis: Client::connect(&redis.host, redis.port)?,
            ours: Client::connect(&ours.host, ours.port)?,
            carries_payloads: false,
            _servers: [redis, ours],
        };
        sides.carries_payloads = sides.have("dump")? && sides.have("restore")?;
        Ok(sides)
    }

    fn have(&mut self, command: &str) -> Result<bool> {
        let question = format!("COMMAND INFO {command}");
        let mut all = true;
        for client in [&mut self.redis, &mut self.ours] {
            let reply = client.call_text(&question)?;
            all &= matches!(reply.items(), [Reply::Many(..)]);
        }
        Ok(all)
    }

    /// The rules whose commands both sides have, and the commands of the others.
    fn shared<'a>(&mut self, rules: &'a [Rule]) -> Result<(Vec<&'a Rule>, Vec<&'a str>)> {
        let (mut shared, mut missing) = (Vec::new(), Vec::new());
        for rule in rules {
            match self.have(&rule.command)? {
                true => shared.push(rule),
                false => missing.push(rule.command.as_str()),
            }
        }
        missing.dedup();
        Ok((shared, missing))
    }

    /// The first difference that is not known, and after which step it showed.
    fn play(&mut self, round: &Round, known: &[Known]) -> Result<Option<(usize, Difference)>> {
        for client in [&mut self.redis, &mut self.ours] {
            prepare(client, round)?;
        }
        for (at, step) in round.steps.iter().enumerate() {
            let redis = step.mode.ask(&mut self.redis, &step.words)?;
            let ours = step.mode.ask(&mut self.ours, &step.words)?;
            if step.mode.agree(&redis, &ours) {
                continue;
            }
            let difference = Difference {
                what: shown(&step.words),
                redis: redis.to_string(),
                ours: ours.to_string(),
            };
            let Difference { what, redis, ours } = &difference;
            if !known.iter().any(|known| known.covers(what, redis, ours)) {
                return Ok(Some((at, difference)));
            }
        }
        let difference = payloads::compare(self)?;
        Ok(difference.map(|difference| (round.steps.len().saturating_sub(1), difference)))
    }
}

/// Settings of a round; a server may lack some.
fn prepare(client: &mut Client, round: &Round) -> Result<()> {
    client.call_text(&format!("HELLO {}", round.protocol))?;
    client.call_text("FLUSHALL")?;
    let (entries, bytes, list) = match round.tiny {
        true => ("5", "20", "5"),
        false => ("128", "64", "-2"),
    };
    for kind in ["hash", "zset", "set"] {
        client.call_text(&format!("CONFIG SET {kind}-max-listpack-entries {entries}"))?;
        client.call_text(&format!("CONFIG SET {kind}-max-listpack-value {bytes}"))?;
    }
    client.call_text(&format!("CONFIG SET list-max-listpack-size {list}"))?;
    Ok(())
}
