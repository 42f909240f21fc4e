//! The cardinality from how many registers have each rank: Ertl's improved raw estimator, which
//! needs no table of bias corrections [Ertl].

use super::{MAX_RANK, REGISTERS};

/// `1 / (2 ln 2)`, the constant of the estimator for infinitely many registers.
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// `histogram[r]` registers have rank `r`; those beyond the highest possible one, which only a
/// tampered value has, count for nothing.
pub(super) fn estimate(histogram: &[u32; 64]) -> u64 {
    let m = REGISTERS as f64;
    let highest = usize::from(MAX_RANK);
    let mut z = m * tau((m - f64::from(histogram[highest])) / m);
    for &count in histogram[1..highest].iter().rev() {
        z = (z + f64::from(count)) * 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

/// What registers at the highest rank contribute.
fn tau(x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut x, mut y, mut z) = (x, 1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        y *= 0.5;
        let last = z;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == last {
            return z / 3.0;
        }
    }
}

/// What registers still at zero contribute: infinitely much if all are, and then the estimate is 0.
fn sigma(x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut y, mut z) = (x, 1.0, x);
    loop {
        x *= x;
        let last = z;
        z += x * y;
        y += y;
        if z == last {
            return z;
        }
    }
}
