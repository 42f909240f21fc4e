//! Complete loads, from files in various states to the keys in the shard.

use super::super::file::{DataFile, MANIFEST, VERSION};
use super::testing::*;
use super::*;
use rufous_base::disk::DiskOp;
use rufous_store::effect::Effect;

mod damaged;
mod whole;
