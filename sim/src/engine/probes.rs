//! Rare states that runs have to reach: a simulation that never gets there proves nothing about
//! them. A scenario declares their names, see [`super::About`].

use std::collections::BTreeMap;
use std::fmt;

/// How often each was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes(BTreeMap<&'static str, u64>);

impl Probes {
    pub fn hit(&mut self, probe: &'static str) {
        self.add(probe, 1);
    }

    pub fn add(&mut self, probe: &'static str, count: u64) {
        if count > 0 {
            *self.0.entry(probe).or_default() += count;
        }
    }

    pub fn merge(&mut self, other: &Probes) {
        other.0.iter().for_each(|(probe, n)| self.add(probe, *n));
    }

    /// Those of the declared ones that were never reached.
    pub fn missing(&self, declared: &[&'static str]) -> Vec<&'static str> {
        let is_missing = |probe: &&&str| !self.0.contains_key(**probe);
        declared.iter().filter(is_missing).copied().collect()
    }

    /// One that was reached and is not declared.
    pub(super) fn unknown(&self, declared: &[&'static str]) -> Option<&'static str> {
        let mut reached = self.0.keys().copied();
        reached.find(|probe| !declared.contains(probe))
    }
}

impl fmt::Display for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (probe, count) in &self.0 {
            writeln!(f, "{count:>10}  {probe}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_what_is_missing() {
        let mut probes = Probes::default();
        probes.hit("a");
        probes.add("never", 0);
        let mut sum = probes.clone();
        sum.merge(&probes);
        assert_eq!(sum.to_string(), "         2  a\n");
        assert_eq!(sum.missing(&["a", "b"]), ["b"]);
        assert_eq!(
            (sum.unknown(&["b"]), sum.unknown(&["a"])),
            (Some("a"), None)
        );
    }
}
