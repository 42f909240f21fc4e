//! Positions and lengths as arguments and in replies.

use crate::{Failure, Reply};
use rufous_base::Args;
use rufous_datatype::float;
use rufous_datatype::geo::{GeoError, Position, Unit, write_coordinate, write_distance};
use rufous_resp::encode::Proto;

impl From<GeoError> for Failure {
    fn from(error: GeoError) -> Self {
        Failure(format!("ERR {error}").into())
    }
}

/// Longitude and latitude from argument `at` on.
pub(super) fn position(args: &Args<'_>, at: usize) -> Result<Position, Failure> {
    let coordinate = |at| float::parse_f64(args.get(at)).ok_or(Failure::NOT_A_FLOAT);
    let (longitude, latitude) = (coordinate(at)?, coordinate(at + 1)?);
    Ok(Position::new(longitude, latitude)?)
}

/// A length that is not negative, without its unit.
pub(super) fn length(arg: &[u8], malformed: &'static str) -> Result<f64, Failure> {
    float::parse_f64(arg).ok_or(Failure::from(malformed))
}

/// A radius and its unit from argument `at` on.
pub(super) fn radius(args: &Args<'_>, at: usize) -> Result<(f64, Unit), Failure> {
    let radius = length(args.get(at), "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(Failure::from("ERR radius cannot be negative"));
    }
    Ok((radius, Unit::parse(args.get(at + 1))?))
}

pub(super) fn distance(reply: &mut Reply<'_>, distance: f64) {
    let mut text = Vec::with_capacity(24);
    write_distance(&mut text, distance);
    reply.bulk(&text);
}

/// Longitude and latitude; doubles in RESP3.
pub(super) fn coordinates(reply: &mut Reply<'_>, position: Position) {
    reply.array(2);
    for degrees in [position.longitude, position.latitude] {
        if reply.proto == Proto::Resp3 {
            let out = &mut reply.out.bytes;
            out.push(b',');
            write_coordinate(out, degrees);
            out.extend_from_slice(b"\r\n");
        } else {
            let mut text = Vec::with_capacity(24);
            write_coordinate(&mut text, degrees);
            reply.bulk(&text);
        }
    }
}
