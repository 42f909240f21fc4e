//! Medians and their spread over the windows of a row.

use serde::Serialize;

/// Median and quartiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    pub low_quartile: f64,
    pub high_quartile: f64,
}

impl Summary {
    /// Of no values: zeros.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: quantile(&sorted, 0.5),
            low_quartile: quantile(&sorted, 0.25),
            high_quartile: quantile(&sorted, 0.75),
        }
    }

    /// `7.07 (6.98–7.21)`
    pub fn show(&self) -> String {
        let Self {
            median,
            low_quartile,
            high_quartile,
        } = self;
        format!("{median:.2} ({low_quartile:.2}–{high_quartile:.2})")
    }
}

/// Linear between the two values next to the wanted rank.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let rank = q * last as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// A figure that must not exceed, or must reach, a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    pub fn met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    pub fn show(self) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {limit}"),
            Self::AtLeast(limit) => format!("≥ {limit}"),
        }
    }

    pub fn verdict(self, value: f64) -> &'static str {
        if self.met(value) { "met" } else { "not met" }
    }

    /// Both as cells of a table.
    pub fn cells(self, value: f64) -> [String; 2] {
        [self.show(), self.verdict(value).to_owned()]
    }

    pub fn limit(self) -> f64 {
        match self {
            Self::AtMost(limit) | Self::AtLeast(limit) => limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_known_values() {
        let s = Summary::of([9.0, 1.0, 5.0, 3.0, 7.0]);
        assert_eq!((s.low_quartile, s.median, s.high_quartile), (3.0, 5.0, 7.0));
        let even = Summary::of([1.0, 2.0, 3.0, 4.0]);
        assert_eq!(
            (even.low_quartile, even.median, even.high_quartile),
            (1.75, 2.5, 3.25)
        );
        assert_eq!(Summary::of([4.0]).median, 4.0);
        assert_eq!(Summary::of([]), Summary::default());
    }

    #[test]
    fn targets_include_their_limit() {
        assert!(Target::AtMost(0.85).met(0.85) && !Target::AtMost(0.85).met(0.86));
        assert!(Target::AtLeast(1.5).met(1.5) && !Target::AtLeast(1.5).met(1.49));
        assert_eq!(Target::AtMost(0.5).verdict(0.6), "not met");
    }
}
