//! Positions on the earth as scores of a sorted set: interleaved bits of latitude and longitude,
//! so that what is near is mostly near in the order of scores, too.
//!
//! Positions are stored with 26 bits for each coordinate, within the limits of the Mercator
//! projection (EPSG:3857). All arithmetic follows Redis operation by operation: scores, distances
//! and the order in which a search meets its results are to be the same.
//!
//! - [`Position`]: a point, its score, its geohash, distances
//! - [`Unit`]: units of length
//! - [`Search`]: which ranges of scores to look through, and what lies within

mod cell;
mod search;
#[cfg(test)]
mod tests;
mod text;

pub use search::{ScoreRange, Search, Shape};
pub use text::{write_coordinate, write_distance};

use cell::{Bounds, Cell};
use std::fmt;

/// Longitudes reach from minus to plus this, in degrees.
pub const MAX_LONGITUDE: f64 = 180.0;
/// Latitudes reach from minus to plus this, in degrees.
pub const MAX_LATITUDE: f64 = 85.051_128_78;

/// What sphere distances are computed on.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// Bits of each coordinate in a score.
const SCORE_STEP: u32 = 26;

/// Why an argument is no position or length. `Display` gives Redis's text, without the leading
/// `ERR `.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GeoError {
    /// Longitude and latitude that are out of range.
    Position(f64, f64),
    Unit,
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(longitude, latitude) => {
                write!(
                    f,
                    "invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
                )
            }
            Self::Unit => f.write_str("unsupported unit provided. please use M, KM, FT, MI"),
        }
    }
}

impl std::error::Error for GeoError {}

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Meter,
    Kilometer,
    Foot,
    Mile,
}

impl Unit {
    pub fn parse(name: &[u8]) -> Result<Self, GeoError> {
        const NAMES: [(&[u8], Unit); 4] = [
            (b"m", Unit::Meter),
            (b"km", Unit::Kilometer),
            (b"ft", Unit::Foot),
            (b"mi", Unit::Mile),
        ];
        let found = NAMES.iter().find(|(n, _)| name.eq_ignore_ascii_case(n));
        found.map(|(_, unit)| *unit).ok_or(GeoError::Unit)
    }

    pub fn meters(self) -> f64 {
        match self {
            Self::Meter => 1.0,
            Self::Kilometer => 1000.0,
            Self::Foot => 0.3048,
            Self::Mile => 1609.34,
        }
    }
}

/// A point, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    pub longitude: f64,
    pub latitude: f64,
}

impl Position {
    /// A point within the limits.
    pub fn new(longitude: f64, latitude: f64) -> Result<Self, GeoError> {
        let within = longitude.abs() <= MAX_LONGITUDE && latitude.abs() <= MAX_LATITUDE;
        match within {
            true => Ok(Self {
                longitude,
                latitude,
            }),
            false => Err(GeoError::Position(longitude, latitude)),
        }
    }

    /// The score that stands for the point: an integer below 2^53.
    pub fn score(self) -> f64 {
        Cell::at(self, &Bounds::MERCATOR, SCORE_STEP).bits() as f64
    }

    /// The middle of the cell that a score stands for. Any score has one, whether or not it was
    /// made from a position.
    pub fn from_score(score: f64) -> Self {
        // A cast to `u64` would make all negative scores 0.
        let bits = match score < 0.0 {
            true => score as i64 as u64,
            false => score as u64,
        };
        let area = Cell::of_bits(bits, SCORE_STEP).area(&Bounds::MERCATOR);
        let middle = |(min, max): (f64, f64)| (min + max) / 2.0;
        Self {
            longitude: middle(area.longitude).clamp(-MAX_LONGITUDE, MAX_LONGITUDE),
            latitude: middle(area.latitude).clamp(-MAX_LATITUDE, MAX_LATITUDE),
        }
    }

    /// The standard geohash, which knows latitudes up to the poles. Its last letter would need 55
    /// bits where there are 52: it is always `0`.
    pub fn geohash(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::at(self, &Bounds::WORLD, SCORE_STEP).bits();
        let mut text = [LETTERS[0]; 11];
        for (at, letter) in text[..10].iter_mut().enumerate() {
            *letter = LETTERS[(bits >> (47 - 5 * at)) as usize & 31];
        }
        text
    }

    /// Along a great circle, by the haversine formula.
    pub fn distance_m(self, other: Self) -> f64 {
        let [from, to] = [self.longitude * RADIANS, other.longitude * RADIANS];
        let v = ((to - from) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance_m(self.latitude, other.latitude);
        }
        let [from, to] = [self.latitude * RADIANS, other.latitude * RADIANS];
        let u = ((to - from) / 2.0).sin();
        let a = u * u + from.cos() * to.cos() * v * v;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }
}

/// Along a meridian.
fn latitude_distance_m(from: f64, to: f64) -> f64 {
    EARTH_RADIUS_M * (to * RADIANS - from * RADIANS).abs()
}
