//! Commands on positions, which are scores of sorted sets.

pub mod geoadd;
pub mod geodist;
pub mod geohash;
pub mod geopos;
pub mod georadius;
pub mod georadius_ro;
pub mod georadiusbymember;
pub mod georadiusbymember_ro;
pub mod geosearch;
pub mod geosearchstore;
mod place;
mod search;

use crate::Command;

pub static COMMANDS: &[&Command] = &[
    &geoadd::GEOADD,
    &geodist::GEODIST,
    &geohash::GEOHASH,
    &geopos::GEOPOS,
    &georadius::GEORADIUS,
    &georadius_ro::GEORADIUS_RO,
    &georadiusbymember::GEORADIUSBYMEMBER,
    &georadiusbymember_ro::GEORADIUSBYMEMBER_RO,
    &geosearch::GEOSEARCH,
    &geosearchstore::GEOSEARCHSTORE,
];
