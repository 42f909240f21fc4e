//! Cells of a grid of `2^step` by `2^step` over the world, numbered by interleaving the bits of
//! their column and row.

use super::{MAX_LATITUDE, MAX_LONGITUDE, Position};

/// The part of the world that a grid covers; each a minimum and a maximum in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) longitude: (f64, f64),
    pub(super) latitude: (f64, f64),
}

impl Bounds {
    pub(super) const MERCATOR: Bounds = Bounds {
        longitude: (-MAX_LONGITUDE, MAX_LONGITUDE),
        latitude: (-MAX_LATITUDE, MAX_LATITUDE),
    };
    pub(super) const WORLD: Bounds = Bounds {
        longitude: (-MAX_LONGITUDE, MAX_LONGITUDE),
        latitude: (-90.0, 90.0),
    };
}

/// A cell of the grid. A point at the very maximum of a coordinate is in a column or row of its
/// own, numbered `2^step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    column: u32,
    row: u32,
    step: u32,
}

impl Cell {
    /// The cell of a position that is within the bounds; `step` from 1 to 26.
    pub(super) fn at(position: Position, bounds: &Bounds, step: u32) -> Self {
        let cells = f64::from(1u32 << step);
        let number = |at: f64, (min, max): (f64, f64)| ((at - min) / (max - min) * cells) as u32;
        Self {
            column: number(position.longitude, bounds.longitude),
            row: number(position.latitude, bounds.latitude),
            step,
        }
    }

    pub(super) fn of_bits(bits: u64, step: u32) -> Self {
        Self {
            column: every_other(bits >> 1),
            row: every_other(bits),
            step,
        }
    }

    pub(super) fn bits(self) -> u64 {
        spread(self.row) | spread(self.column) << 1
    }

    /// The scores, which have 26 bits for each coordinate, of everything in the cell: from the
    /// first to below the second.
    pub(super) fn scores(self) -> (u64, u64) {
        let shift = 2 * (super::SCORE_STEP - self.step);
        (self.bits() << shift, (self.bits() + 1) << shift)
    }

    pub(super) fn area(self, bounds: &Bounds) -> Bounds {
        let cells = f64::from(1u32 << self.step);
        let edge =
            |number: u32, (min, max): (f64, f64)| min + f64::from(number) / cells * (max - min);
        let edges = |number: u32, bounds| {
            (
                edge(number, bounds),
                // Scores that no position has may have any bits.
                edge(number.wrapping_add(1), bounds),
            )
        };
        Bounds {
            longitude: edges(self.column, bounds.longitude),
            latitude: edges(self.row, bounds.latitude),
        }
    }

    /// The cell `east` columns to the east and `north` rows to the north. The grid is closed at its
    /// edges, at the poles too.
    pub(super) fn neighbour(self, east: i32, north: i32) -> Self {
        let mask = (1 << self.step) - 1;
        let moved = |number: u32, by: i32| match by {
            0 => number,
            _ => number.wrapping_add_signed(by) & mask,
        };
        Self {
            column: moved(self.column, east),
            row: moved(self.row, north),
            step: self.step,
        }
    }
}

/// Puts a zero before each bit.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

/// Takes the bits at even places.
fn every_other(bits: u64) -> u32 {
    let mut bits = bits & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}
