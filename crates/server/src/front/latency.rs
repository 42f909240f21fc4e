//! Times at which a worker was held up: `LATENCY`.
//!
//! Only what `slow` times is recorded: commands that ran alone. As in Redis, those declared fast
//! have an event of their own, since they should never be slow.

use rufous_base::Now;
use std::collections::{BTreeMap, VecDeque};

/// Samples kept of each event; samples of the same second are merged.
const KEPT_SAMPLES: usize = 160;

/// The worst latency of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    pub unix_s: u64,
    pub ms: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Event {
    /// Oldest first.
    pub samples: VecDeque<Sample>,
    pub max_ms: u64,
}

/// The samples of one worker, by the event's name.
#[derive(Clone, Debug, Default)]
pub struct LatencyLog {
    pub events: BTreeMap<&'static str, Event>,
}

impl LatencyLog {
    pub(super) fn note_command(
        &mut self,
        now: Now,
        is_fast: bool,
        elapsed_us: u64,
        threshold_ms: u64,
    ) {
        if threshold_ms == 0 || elapsed_us < threshold_ms.saturating_mul(1000) {
            return;
        }
        let event = if is_fast { "fast-command" } else { "command" };
        let sample = Sample {
            unix_s: now.unix_s(),
            ms: elapsed_us / 1000,
        };
        self.events.entry(event).or_default().add(sample);
    }

    pub(crate) fn merge(&mut self, other: LatencyLog) {
        for (name, event) in other.events {
            self.events.entry(name).or_default().merge(event);
        }
    }
}

impl Event {
    fn add(&mut self, sample: Sample) {
        self.max_ms = self.max_ms.max(sample.ms);
        match self.samples.back_mut() {
            Some(last) if last.unix_s == sample.unix_s => last.ms = last.ms.max(sample.ms),
            _ => self.samples.push_back(sample),
        }
        if self.samples.len() > KEPT_SAMPLES {
            self.samples.pop_front();
        }
    }

    fn merge(&mut self, other: Event) {
        self.max_ms = self.max_ms.max(other.max_ms);
        let mut all: Vec<_> = self.samples.drain(..).chain(other.samples).collect();
        all.sort_unstable();
        for sample in all {
            self.add(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_a_second_and_a_bounded_number_of_them() {
        let mut log = LatencyLog::default();
        let at = |s: u64| Now {
            mono_us: 0,
            unix_us: s * 1_000_000,
        };
        log.note_command(at(1), false, 999, 1);
        assert!(log.events.is_empty());
        log.note_command(at(1), false, 5_000, 1);
        log.note_command(at(1), false, 3_000, 1);
        log.note_command(at(2), false, 2_000, 0);
        log.note_command(at(2), false, 2_000, 1);
        let samples: Vec<_> = log.events["command"]
            .samples
            .iter()
            .map(|s| (s.unix_s, s.ms))
            .collect();
        assert_eq!(samples, [(1, 5), (2, 2)]);
        let other = log.clone();
        log.merge(other);
        assert_eq!(log.events["command"].samples.len(), 2);
        for s in 0..1000 {
            log.note_command(at(s + 10), true, 2_000, 1);
        }
        assert_eq!(log.events["fast-command"].samples.len(), KEPT_SAMPLES);
        assert_eq!(log.events["command"].max_ms, 5);
    }
}
