//! Latency histograms: nanoseconds in, percentiles in milliseconds out, three significant digits.

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

/// Anything slower than this counts as this.
const LONGEST_NS: u64 = 300_000_000_000;

/// Latencies of one kind of operation.
#[derive(Clone, Debug)]
pub struct Latency {
    ns: Histogram<u64>,
}

impl Latency {
    pub fn new() -> Result<Self> {
        Ok(Self {
            ns: Histogram::new_with_bounds(128, LONGEST_NS, 3)?,
        })
    }

    /// Records `count` operations that took `latency` each.
    pub fn record(&mut self, latency: Duration, count: u64) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
        self.ns.saturating_record_n(ns.max(1), count);
    }

    pub fn merge(&mut self, other: &Self) -> Result<()> {
        Ok(self.ns.add(&other.ns)?)
    }

    pub fn count(&self) -> u64 {
        self.ns.len()
    }

    /// The latency in milliseconds below which `percent` of the operations stay; 0 when empty.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.ns.value_at_percentile(percent) as f64 / 1e6
    }

    pub fn max_ms(&self) -> f64 {
        self.ns.max() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 0.002, "{got} {want}");
    }

    #[test]
    fn percentiles_of_a_ramp() {
        let mut latency = Latency::new().unwrap();
        for us in 1..=10_000u64 {
            latency.record(Duration::from_micros(us), 1);
        }
        assert_eq!(latency.count(), 10_000);
        close(latency.percentile_ms(50.0), 5.0);
        close(latency.percentile_ms(99.0), 9.9);
        close(latency.percentile_ms(99.9), 9.99);
        close(latency.max_ms(), 10.0);
    }

    #[test]
    fn counts_weigh_and_merging_adds() {
        let (mut a, mut b) = (Latency::new().unwrap(), Latency::new().unwrap());
        a.record(Duration::from_millis(1), 990);
        b.record(Duration::from_millis(100), 10);
        a.merge(&b).unwrap();
        assert_eq!(a.count(), 1_000);
        close(a.percentile_ms(99.0), 1.0);
        close(a.percentile_ms(99.5), 100.0);
    }

    #[test]
    fn extremes_are_kept_not_lost() {
        let mut latency = Latency::new().unwrap();
        latency.record(Duration::ZERO, 1);
        latency.record(Duration::from_secs(3_600), 1);
        assert_eq!(latency.count(), 2);
        close(latency.max_ms(), LONGEST_NS as f64 / 1e6);
    }
}
