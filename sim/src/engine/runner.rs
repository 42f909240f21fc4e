//! The command line of a scenario: one seed with its trace, or many in a row.

use super::faults::Fault;
use super::probes::Probes;
use super::report::{Report, hash_of_plan, run};
use super::scenario::Scenario;
use super::seeds::{self, Saved};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// How many seeds (default: until stopped)
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Print the trace of the seed, line by line
    #[arg(short, long)]
    verbose: bool,
    /// Write the trace of the seed to a file
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Run each seed twice, or one of so many, and compare the traces
    #[arg(long, value_name = "ONE_OF", num_args = 0..=1, default_missing_value = "1")]
    twice: Option<u64>,
    /// Go on after a seed that failed
    #[arg(long)]
    keep_going: bool,
    /// A file of saved seeds; those of the scenario run before the others
    #[arg(long)]
    replay: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

/// What changes the meaning of a seed. A saved seed states its flags, too.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Plant a fault
    #[arg(long)]
    pub fault: Option<String>,
    /// Scenario node: all seeds have lattice keyspaces
    #[arg(long)]
    pub lattice: bool,
    /// Scenario node: the wall clock jumps by some seconds now and then
    #[arg(long)]
    pub small_jumps: bool,
    /// Scenario gossip: what the clients of all seeds do
    #[arg(long)]
    pub mode: Option<String>,
    /// Scenario cluster: so many nodes, with one worker each, and little load
    #[arg(long)]
    pub nodes: Option<usize>,
}

impl Flags {
    /// As words of the command line, each with its value, but for the fault.
    fn words(&self) -> Vec<(&'static str, String)> {
        let lattice = self.lattice.then(String::new);
        let jumps = self.small_jumps.then(String::new);
        let nodes = self.nodes.map(|nodes| format!(" {nodes}"));
        let mode = self.mode.as_ref().map(|mode| format!(" {mode}"));
        let all = [
            ("--lattice", lattice),
            ("--small-jumps", jumps),
            ("--mode", mode),
            ("--nodes", nodes),
        ];
        all.into_iter()
            .filter_map(|(flag, value)| Some((flag, value?)))
            .collect()
    }

    /// The command that runs a seed again.
    fn replay<S: Scenario>(&self, seed: u64) -> String {
        let mut flags: String = self
            .words()
            .iter()
            .map(|(flag, v)| format!("{flag}{v} "))
            .collect();
        if let Some(fault) = &self.fault {
            flags.push_str(&format!("--fault {fault} "));
        }
        let name = S::ABOUT.name;
        format!("cargo xtask sim --scenario {name} --seed {seed} -- {flags}--verbose")
    }

    /// What they mean for a scenario.
    pub fn meaning<S: Scenario>(&self) -> Result<(S::Options, Fault), String> {
        let mut words = self.words().into_iter();
        if let Some((flag, _)) = words.find(|(flag, _)| !S::ABOUT.flags.contains(flag)) {
            return Err(format!(
                "the scenario {} does not read {flag}",
                S::ABOUT.name
            ));
        }
        let fault = match &self.fault {
            None => Fault::None,
            Some(name) => Fault::named(name, S::ABOUT.faults)?,
        };
        Ok((S::options(self)?, fault))
    }
}

/// Runs what the command line asks for; answers whether all of it passed.
pub fn main<S: Scenario>(args: &Args) -> Result<bool, String> {
    match args.seed {
        Some(seed) => one::<S>(args, seed),
        None => many::<S>(args),
    }
}

fn one<S: Scenario>(args: &Args, seed: u64) -> Result<bool, String> {
    let (options, fault) = args.flags.meaning::<S>()?;
    let plan = hash_of_plan(&S::plan(seed, &options, fault));
    let report = run::<S>(seed, &options, fault, true);
    println!("{}\nplan {plan:016x}", report.plan);
    let text = report.lines.join("\n") + "\n";
    if args.verbose {
        print!("{text}");
    }
    if let Some(path) = &args.trace {
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!(
        "{} lines of trace{}",
        report.events,
        counts_text(&report.counts)
    );
    match &report.failure {
        None => println!("seed {seed} passed, trace {:016x}", report.hash),
        Some(failure) => println!("seed {seed} FAILED: {failure}"),
    }
    Ok(report.failure.is_none())
}

/// What many seeds came to.
#[derive(Default)]
struct Sum {
    seeds: u64,
    failed: Vec<u64>,
    /// Saved seeds that stand for other plans now.
    changed: Vec<u64>,
    counts: BTreeMap<&'static str, u64>,
    unsure: u64,
    probes: Probes,
}

fn many<S: Scenario>(args: &Args) -> Result<bool, String> {
    let saved = match &args.replay {
        None => Vec::new(),
        Some(path) => seeds::read(path)?,
    };
    let is_its = |saved: &Saved| saved.scenario == S::ABOUT.name && saved.flags.fault.is_none();
    let saved: Vec<_> = saved.into_iter().filter(is_its).collect();
    let started = Instant::now();
    let mut sum = Sum::default();
    for saved in &saved {
        if let Some(change) = saved.change::<S>()? {
            println!("{change}");
            sum.changed.push(saved.seed);
        }
    }
    let last = args.seeds.map_or(u64::MAX, |n| args.from.saturating_add(n));
    let replayed = saved.iter().map(|saved| (saved.seed, &saved.flags));
    let mut shown = started;
    for (seed, flags) in replayed.chain((args.from..last).map(|seed| (seed, &args.flags))) {
        let twice = args.twice.is_some_and(|of| seed.is_multiple_of(of.max(1)));
        let passed = next::<S>(twice, (seed, flags), &mut sum)?;
        if shown.elapsed().as_secs() >= 5 {
            shown = Instant::now();
            progress(S::ABOUT.name, &sum, started);
        }
        if !passed && !args.keep_going {
            break;
        }
    }
    progress(S::ABOUT.name, &sum, started);
    println!("rare states that were reached:\n{}", sum.probes);
    Ok(passed::<S>(&sum, &args.flags))
}

/// Runs a seed, once or twice, and adds it to the sum.
fn next<S: Scenario>(
    twice: bool,
    (seed, flags): (u64, &Flags),
    sum: &mut Sum,
) -> Result<bool, String> {
    let (options, fault) = flags.meaning::<S>()?;
    let mut report = run::<S>(seed, &options, fault, false);
    if twice {
        let again = run::<S>(seed, &options, fault, false);
        if again.hash != report.hash {
            let (first, second) = (report.hash, again.hash);
            let differs = format!("the trace differs: {first:016x}, then {second:016x}");
            report.failure.get_or_insert(differs);
        }
    }
    sum.add(&report);
    let Some(failure) = report.failure else {
        return Ok(true);
    };
    println!("seed {seed} FAILED: {failure}");
    println!("replay with: {}\n", flags.replay::<S>(seed));
    sum.failed.push(seed);
    Ok(false)
}

/// The verdict on a run of many seeds.
fn passed<S: Scenario>(sum: &Sum, flags: &Flags) -> bool {
    let about = S::ABOUT;
    let most = about.unsure.most(sum.seeds);
    let gave_up = sum.unsure > most;
    if gave_up {
        println!(
            "{} searches were given up; at most {most} may be",
            sum.unsure
        );
    }
    let missing = sum.probes.missing(about.probes);
    let is_missing = sum.seeds >= about.many && !missing.is_empty() && *flags == Flags::default();
    if is_missing {
        println!("never reached: {missing:?}");
    }
    if !sum.failed.is_empty() {
        println!("failed seeds: {:?}", sum.failed);
    }
    if !sum.changed.is_empty() {
        println!("saved seeds that have other plans now: {:?}", sum.changed);
    }
    !gave_up && !is_missing && sum.failed.is_empty()
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        for (name, count) in &report.counts {
            *self.counts.entry(name).or_default() += count;
        }
        self.unsure += report.unsure;
        self.probes.merge(&report.probes);
    }
}

fn progress(name: &str, sum: &Sum, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    let per_second = sum.seeds as f64 / seconds.max(0.001);
    let (seeds, failed, unsure) = (sum.seeds, sum.failed.len(), sum.unsure);
    let counts: Vec<_> = sum.counts.iter().map(|(name, n)| (*name, *n)).collect();
    let counts = counts_text(&counts);
    println!(
        "{name}: {seeds} seeds in {seconds:.0} s ({per_second:.1} per second), {failed} failed{counts}, {unsure} searches given up"
    );
}

fn counts_text(counts: &[(&'static str, u64)]) -> String {
    let text = counts
        .iter()
        .map(|(name, count)| format!(", {count} {name}"));
    text.collect()
}
