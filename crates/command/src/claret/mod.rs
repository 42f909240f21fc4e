//! Commands on the types that Claret adds to those of Redis [Claret §5]: what
//! they promise is less, and so more of it can be done at once.

pub mod bag;
pub mod bounded;
pub mod rank;
pub mod uid;

use crate::{Command, Failure};
use rufous_datatype::float;

pub static COMMANDS: &[&Command] = &[
    &uid::next::NEXT,
    &uid::peek::PEEK,
    &bag::add::ADD,
    &bag::count::COUNT,
    &bag::sum::SUM,
    &bag::mean::MEAN,
    &bag::min::MIN,
    &bag::max::MAX,
    &bag::stats::STATS,
    &bounded::set::SET,
    &bounded::add::ADD,
    &bounded::incrby::INCRBY,
    &bounded::get::GET,
    &bounded::bounds::BOUNDS,
    &rank::add::ADD,
    &rank::max::MAX,
    &rank::range::RANGE,
    &rank::score::SCORE,
    &rank::position::POSITION,
    &rank::len::LEN,
];

/// A number argument.
fn number(arg: &[u8]) -> Result<f64, Failure> {
    float::parse_f64(arg).ok_or(Failure::NOT_A_FLOAT)
}
