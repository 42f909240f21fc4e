//! Commands on sets.

pub mod sadd;
pub mod scard;
pub mod sismember;
pub mod smembers;
pub mod smismember;
pub mod smove;
pub mod srem;

use crate::{Command, Ctx, Failure};
use rufous_datatype::set::{Set, View};

pub static COMMANDS: &[&Command] = &[
    &sadd::SADD,
    &sismember::SISMEMBER,
    &srem::SREM,
    &smembers::SMEMBERS,
    &scard::SCARD,
    &smismember::SMISMEMBER,
    &smove::SMOVE,
];

/// The set at the command's first key, to be read.
#[inline]
fn read<'c>(ctx: &'c mut Ctx<'_>, key: &[u8]) -> Result<Option<View<'c>>, Failure> {
    let key = ctx.first_key(key);
    Ok(ctx.shard.collection::<Set>(ctx.db, key, ctx.now)?)
}
