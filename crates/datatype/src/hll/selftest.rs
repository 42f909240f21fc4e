//! `PFSELFTEST`: whether registers and estimates are what they should be on this machine.

use super::{DENSE_LEN, Editor, Observation, REGISTERS, Registers, Sketch, empty};

/// Elements observed: few enough to keep other clients waiting for a few milliseconds at most.
const ELEMENTS: u64 = 20_000;
/// The largest error allowed, in standard deviations of an estimate.
const DEVIATIONS: f64 = 5.0;

/// What is wrong, if anything is.
pub fn self_test() -> Result<(), String> {
    let corrupted = |_| "a sketch that was just made is corrupted".to_owned();
    // No sparse value is this small: this sketch is dense from the first element on.
    let mut dense = Editor::new(empty(), 0).map_err(corrupted)?;
    let mut either = Editor::new(empty(), DENSE_LEN).map_err(corrupted)?;
    let mut plain = Registers::default();
    let mut next_check = 1;
    for n in 0..ELEMENTS {
        let seen = Observation::of(&n.to_le_bytes());
        let raised = [dense.raise(seen), plain.raise(seen)];
        if raised[0] != raised[1] {
            return Err(format!("register {} differs", seen.index));
        }
        if n < ELEMENTS / 40 && either.raise(seen) != raised[0] {
            return Err(format!("sparse register {} differs", seen.index));
        }
        if n + 1 == next_check {
            next_check *= 10;
            check_estimate(&dense, n + 1)?;
        }
    }
    let dense = dense.into_value();
    let registers = Sketch::parse(&dense).and_then(Sketch::registers);
    match registers.map_err(corrupted)? == plain {
        true => Ok(()),
        false => Err("dense registers differ".to_owned()),
    }
}

fn check_estimate(editor: &Editor, elements: u64) -> Result<(), String> {
    let estimate = Sketch::parse(&editor.value).and_then(Sketch::count);
    let estimate = estimate.map_err(|error| error.to_string())?;
    let deviation = 1.04 / (REGISTERS as f64).sqrt() * elements as f64;
    let error = estimate.abs_diff(elements) as f64;
    match error <= (DEVIATIONS * deviation).ceil() {
        true => Ok(()),
        false => Err(format!("{elements} elements are estimated as {estimate}")),
    }
}
