//! A cluster under clients that know it, while something happens to its nodes: throughput over
//! time, errors, and an account of every write.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use rufous_bench::elastic::ledger::Ledger;
use rufous_bench::elastic::outcome;
use rufous_bench::elastic::record::{Record, Summary};
use rufous_bench::elastic::writers::{self, Load, Pace, Seen};

const WRITERS: usize = 16;
const KEYS: usize = 2_000;
const VALUE_BYTES: usize = 100;
/// Answers are counted in stretches of this length.
pub(crate) const STEP: Duration = Duration::from_millis(100);

/// What clients saw.
pub(crate) struct Driven {
    /// Answers in each step.
    pub counts: Vec<u64>,
    pub acknowledged: u64,
    pub doubts: u64,
    /// Answers that cannot be, and writes that are not there.
    pub wrong: u64,
    pub errors: BTreeMap<String, u64>,
    /// The longest time without an answer from a moment on.
    pub gap: Duration,
}

/// As much as they are answered.
pub(crate) const ALL: Pace = Pace::After(Duration::ZERO);

/// What all writers together are to ask a second.
pub(crate) fn rate(a_second: f64) -> Pace {
    Pace::Every(Duration::from_secs_f64(WRITERS as f64 / a_second.max(1.0)))
}

/// Drives a cluster while `happens` does what it does, which begins after `calm` and is told when
/// that was. `audit_at` is where all keys are read at the end.
pub(crate) fn drive<T>(
    seeds: &[SocketAddr],
    (pace, calm): (Pace, Duration),
    happens: impl FnOnce(Instant) -> Result<(T, SocketAddr)>,
) -> Result<(Driven, T)> {
    let ledger = |no: usize| Ledger::new(&format!("w{no}"), KEYS, VALUE_BYTES);
    let load = Load {
        began: Instant::now(),
        ends: Arc::new(AtomicBool::new(false)),
        pace,
    };
    let running = writers::knowing(seeds, (0..WRITERS).map(ledger).collect(), load.clone());
    std::thread::sleep(calm);
    let happened = happens(load.began);
    load.ends.store(true, Ordering::Relaxed);
    let ended = load.began.elapsed();
    let (seen, _) = writers::join(running)?;
    let (happened, audit_at) = happened?;
    Ok((driven(&seen, audit_at, calm, ended)?, happened))
}

fn driven(seen: &Seen, audit_at: SocketAddr, calm: Duration, ended: Duration) -> Result<Driven> {
    let ledgers = || seen.ledgers.iter();
    let wrong: u64 = ledgers().map(|ledger| ledger.wrongs).sum();
    let lost = writers::audit_knowing(audit_at, &seen.ledgers)?.len() as u64;
    let all = Summary::of(&seen.records, Duration::ZERO..ended);
    let steps = ended.as_millis() / STEP.as_millis();
    Ok(Driven {
        counts: Record::counts(&seen.records, STEP, steps as usize),
        acknowledged: ledgers().map(|ledger| ledger.acknowledged).sum(),
        doubts: ledgers().map(|ledger| ledger.doubts() as u64).sum(),
        wrong: wrong + lost,
        errors: all.errors,
        gap: Summary::of(&seen.records, calm..ended).gap,
    })
}

impl Driven {
    /// Errors that no client should meet.
    pub(crate) fn other_errors(&self) -> u64 {
        let others = self.errors.iter();
        let others = others.filter(|(kind, _)| !outcome::is_retriable(kind));
        others.map(|(_, count)| count).sum()
    }

    /// Answers a second between two moments, the median of all steps.
    pub(crate) fn rate(&self, from: Duration, to: Duration) -> f64 {
        median(self.steps(from, to)) / STEP.as_secs_f64()
    }

    /// The lowest over a whole second between them.
    pub(crate) fn lowest(&self, from: Duration, to: Duration) -> f64 {
        let second = (1.0 / STEP.as_secs_f64()).round() as usize;
        let sums = self.steps(from, to).windows(second);
        let lowest = sums.map(|steps| steps.iter().sum::<u64>()).min();
        lowest.unwrap_or(0) as f64
    }

    fn steps(&self, from: Duration, to: Duration) -> &[u64] {
        let place = |time: Duration| (time.as_millis() / STEP.as_millis()) as usize;
        let to = place(to).min(self.counts.len());
        self.counts.get(place(from)..to).unwrap_or(&[])
    }

    /// Seconds, and answers a second.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        let step = STEP.as_secs_f64();
        let counts = self.counts.iter().enumerate();
        counts
            .map(|(at, count)| (at as f64 * step, *count as f64 / step))
            .collect()
    }
}

fn median(steps: &[u64]) -> f64 {
    rufous_bench::stats::Summary::of(steps.iter().map(|count| *count as f64)).median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_between() {
        let driven = Driven {
            counts: [vec![10; 20], vec![4; 10], vec![8; 20]].concat(),
            acknowledged: 0,
            doubts: 0,
            wrong: 0,
            errors: [("TRYAGAIN".into(), 3), ("ERR no".into(), 2)].into(),
            gap: Duration::ZERO,
        };
        let second = Duration::from_secs;
        assert_eq!(driven.rate(second(0), second(2)), 100.0);
        assert_eq!(driven.rate(second(3), second(9)), 80.0);
        assert_eq!(driven.lowest(second(1), second(5)), 40.0);
        assert_eq!(driven.rate(second(9), second(10)), 0.0);
        assert_eq!(driven.other_errors(), 2);
    }
}
