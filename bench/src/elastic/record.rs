//! What writers saw over time: how long each answer took, and every error with its time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The account of one writer. Times are since a beginning that all writers share.
#[derive(Debug, Default)]
pub struct Record {
    /// When each answer came, and how long it took from the first attempt on; in µs.
    answers: Vec<(u64, u32)>,
    errors: Vec<(u64, String)>,
}

/// What several writers saw in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub answers: u64,
    pub errors: BTreeMap<String, u64>,
    pub median: Duration,
    pub p99: Duration,
    pub longest: Duration,
    /// The longest time in which none of the writers had an answer.
    pub gap: Duration,
}

impl Record {
    pub fn answered(&mut self, began: Instant, asked: Instant) {
        let (at, took) = (began.elapsed(), asked.elapsed());
        let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.answers.push((at.as_micros() as u64, took));
    }

    pub fn failed(&mut self, began: Instant, kind: String) {
        self.errors.push((began.elapsed().as_micros() as u64, kind));
    }

    /// Answers in each of so many stretches of that length.
    pub fn counts(records: &[Record], step: Duration, steps: usize) -> Vec<u64> {
        let mut counts = vec![0; steps];
        for (at, _) in records.iter().flat_map(|record| &record.answers) {
            let place = *at as u128 / step.as_micros().max(1);
            if let Some(count) = counts.get_mut(place as usize) {
                *count += 1;
            }
        }
        counts
    }
}

impl Summary {
    pub fn of(records: &[Record], during: Range<Duration>) -> Self {
        let during = during.start.as_micros() as u64..during.end.as_micros() as u64;
        let mut summary = Self::default();
        let mut took = Histogram::<u64>::new(3).ok();
        let mut times = Vec::new();
        for record in records {
            for (at, us) in &record.answers {
                if during.contains(at) {
                    times.push(*at);
                    let us = u64::from(*us);
                    took.as_mut().map(|took| took.record(us));
                }
            }
            for (_, kind) in record.errors.iter().filter(|(at, _)| during.contains(at)) {
                *summary.errors.entry(kind.clone()).or_default() += 1;
            }
        }
        summary.answers = times.len() as u64;
        if let Some(took) = took.filter(|took| !took.is_empty()) {
            summary.median = Duration::from_micros(took.value_at_quantile(0.5));
            summary.p99 = Duration::from_micros(took.value_at_quantile(0.99));
            summary.longest = Duration::from_micros(took.max());
        }
        times.extend([during.start, during.end]);
        times.sort_unstable();
        let gaps = times.windows(2).map(|two| two[1] - two[0]);
        summary.gap = Duration::from_micros(gaps.max().unwrap_or(0));
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_its_own_answers_errors_and_gap() {
        let ms = Duration::from_millis;
        let record = |answers: &[(u64, u32)], errors: &[u64]| Record {
            answers: answers.iter().map(|(at, us)| (at * 1000, *us)).collect(),
            errors: errors.iter().map(|at| (at * 1000, "E".into())).collect(),
        };
        let records = [
            record(&[(10, 5), (40, 100)], &[]),
            record(&[(20, 7), (99, 9)], &[30, 120]),
        ];
        let all = Summary::of(&records, ms(0)..ms(100));
        assert_eq!((all.answers, all.errors["E"]), (4, 1));
        assert_eq!(all.gap, ms(59));
        assert_eq!(all.longest, Duration::from_micros(100));
        assert_eq!(all.median, Duration::from_micros(7));
        // Silence up to the end of a stretch counts.
        assert_eq!(Summary::of(&records, ms(100)..ms(300)).gap, ms(200));
        assert_eq!(Record::counts(&records, ms(25), 3), [2, 1, 0]);
    }
}
