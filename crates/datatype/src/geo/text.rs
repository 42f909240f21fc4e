//! Distances and coordinates as replies show them.

use std::io::Write;

/// A distance in the unit asked for, with four decimal places.
pub fn write_distance(out: &mut Vec<u8>, distance: f64) {
    // As Redis rounds: first to a multiple of 1/10,000 and then to an integer. Rounding the exact
    // value would differ where it lies almost in the middle.
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, part) = (
        scaled.unsigned_abs() / 10_000,
        scaled.unsigned_abs() % 10_000,
    );
    // Writing to a vector cannot fail.
    let _ = write!(out, "{sign}{whole}.{part:04}");
}

/// A coordinate in degrees, with as many as 17 decimal places.
pub fn write_coordinate(out: &mut Vec<u8>, degrees: f64) {
    let text = format!("{degrees:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    out.extend_from_slice(if text == "-0" { "0" } else { text }.as_bytes());
}
