//! What the sections on durability and the memory limit share.

use anyhow::{Result, bail};

use crate::client::{Client, Reply};
use crate::measure::{Measured, Sample};
use crate::options::RUFOUS;
use crate::stats::{Summary, Target};

/// The page that these sections are parts of.
pub(super) const PAGE: &str = "durability.md";

/// Words that switch the log on.
pub(super) const LOGGED: [&str; 2] = ["--appendonly", "yes"];

/// Sends a command that has to succeed.
pub(super) fn order(client: &mut Client, words: &[&str]) -> Result<()> {
    match client.call(words)? {
        Reply::Error(text) => bail!("{}: {text}", words.join(" ")),
        _ => Ok(()),
    }
}

/// A field of a section of INFO.
pub(super) fn info(client: &mut Client, section: &str, field: &str) -> Result<String> {
    let text = client.call(&["INFO", section])?.text()?;
    match field_of(&text, field) {
        Some(value) => Ok(value.to_owned()),
        None => bail!("INFO {section} has no {field}"),
    }
}

pub(super) fn number(client: &mut Client, section: &str, field: &str) -> Result<u64> {
    Ok(info(client, section, field)?.parse()?)
}

fn field_of<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .map(str::trim)
}

/// The peer with the best median of `field`; peers come first, what is Rufous's after them.
pub(super) fn better_peer(
    names: &[&str],
    samples: &[Vec<Sample>],
    field: fn(&Sample) -> f64,
    less_is_better: bool,
) -> Option<usize> {
    let median = |i: usize| Summary::of(samples[i].iter().map(field)).median;
    let peers = (0..names.len()).filter(|i| names[*i] != RUFOUS);
    peers.min_by(|a, b| {
        let order = median(*a).total_cmp(&median(*b));
        if less_is_better {
            order
        } else {
            order.reverse()
        }
    })
}

/// One comparison: what with what, the ratio, the target, the verdict.
pub(super) fn verdict(with: &str, ratio: f64, shown: String, target: Target) -> Vec<String> {
    let [target, verdict] = target.cells(ratio);
    vec![with.to_owned(), shown, target, verdict]
}

/// A row of the usual figures.
pub(super) fn figures(label: &str, server: &str, samples: &[Sample]) -> Vec<String> {
    let mut cells = vec![label.to_owned(), server.to_owned()];
    cells.extend(Measured::of(server, samples).cells());
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "# Memory\r\nused_memory_rss:7\r\nused_memory:5\r\n";
        assert_eq!(field_of(text, "used_memory"), Some("5"));
        assert_eq!(field_of(text, "used"), None);
    }

    fn sample(cpu_us_per_op: f64) -> Vec<Sample> {
        vec![Sample {
            operations: 1,
            cpu_us_per_op,
            kops: 1.0 / cpu_us_per_op,
            p50_ms: 0.0,
            p99_ms: 0.0,
            others_cores: 0.0,
        }]
    }

    #[test]
    fn the_better_peer_is_never_rufous() {
        let names = ["redis", "valkey", RUFOUS];
        let samples = [2.0, 1.5, 0.5].map(sample);
        let best = better_peer(&names, &samples, |s| s.cpu_us_per_op, true);
        assert_eq!(best, Some(1));
        assert_eq!(better_peer(&names, &samples, |s| s.kops, false), Some(1));
    }
}
