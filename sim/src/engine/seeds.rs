//! Saved seeds: those that failed once, and those that are known to show a planted fault. Each
//! has the hash of the plan that it stood for, so that it does not go unnoticed when a change of
//! the scenario makes it stand for another one.

use super::report::hash_of_plan;
use super::runner::Flags;
use super::scenario::Scenario;
use clap::Parser;
use std::path::Path;

/// A line of the file: `SCENARIO SEED PLAN [FLAGS] # REASON`.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true)]
pub struct Saved {
    pub scenario: String,
    pub seed: u64,
    /// The hash of its plan, in hexadecimal digits.
    pub plan: String,
    #[command(flatten)]
    pub flags: Flags,
}

impl Saved {
    /// Says so where the seed stands for another plan now.
    pub fn change<S: Scenario>(&self) -> Result<Option<String>, String> {
        let (options, _) = self.flags.meaning::<S>()?;
        let plan = S::plan(self.seed, &options, Default::default());
        let (is, seed) = (format!("{:016x}", hash_of_plan(&plan)), self.seed);
        let (was, name) = (&self.plan, &self.scenario);
        Ok((is != *was).then(|| {
            format!("seed {seed} of {name} stands for another plan now: {is}, once it was {was}")
        }))
    }
}

/// The saved seeds of a file.
pub fn read(path: &Path) -> Result<Vec<Saved>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Saved>, String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let lines = lines.filter(|line| !line.trim().is_empty());
    let saved = lines.map(|line| {
        let words = line.split_whitespace();
        Saved::try_parse_from(words).map_err(|wrong| format!("'{line}': {wrong}"))
    });
    saved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# a comment\n\nnode 7 00ff --lattice # why\ncluster 8 01 --fault x\n";
        let saved = parse(text).expect("two seeds");
        let shown = |saved: &Saved| (saved.seed, saved.flags.lattice, saved.flags.fault.clone());
        let shown: Vec<_> = saved.iter().map(shown).collect();
        assert_eq!(shown, [(7, true, None), (8, false, Some("x".into()))]);
        assert!(parse("node x").is_err());
    }
}
