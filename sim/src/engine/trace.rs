//! What happened, one line per event: the time, the actor, and the event. Two runs
//! were the same if the hashes of all their lines are equal.

use std::fmt::Write;

/// The lines of a run.
#[derive(Debug, Default)]
pub struct Trace {
    /// Whether lines are kept, or only hashed.
    keep: bool,
    lines: Vec<String>,
    line: String,
    hash: u64,
    count: u64,
}

impl Trace {
    pub fn new(keep: bool) -> Self {
        Self {
            keep,
            hash: START,
            ..Self::default()
        }
    }

    /// Notes an event and its subject at `us`.
    pub fn note(&mut self, us: u64, who: impl std::fmt::Display, what: std::fmt::Arguments<'_>) {
        self.line.clear();
        let (s, rest) = (us / 1_000_000, us % 1_000_000);
        // Writing to a string does not fail.
        let _ = write!(self.line, "{s:>4}.{rest:06} {who:<6} {what}");
        self.hash = hashed(self.hash, &self.line);
        self.count += 1;
        if self.keep {
            self.lines.push(self.line.clone());
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events there were.
    pub fn len(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of a text, which stays the same in all versions of the simulator.
pub fn hash_of(text: &str) -> u64 {
    hashed(START, text)
}

fn hashed(mut hash: u64, text: &str) -> u64 {
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = mixed ^ (mixed >> 29);
    }
    hash
}

/// Bytes as a person reads them: text where they are text, cut where long.
pub fn show(bytes: &[u8]) -> String {
    const MOST: usize = 48;
    let mut text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST {
        let _ = write!(text, "…({})", bytes.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_changes_the_hash() {
        let run = |what: &str| {
            let mut trace = Trace::new(true);
            trace.note(1_500_000, "w0", format_args!("{what}"));
            (trace.hash(), trace.into_lines())
        };
        assert_eq!(run("turn").0, run("turn").0);
        assert_ne!(run("turn").0, run("turm").0);
        assert_eq!(run("turn").1, ["   1.500000 w0     turn"]);
    }
}
