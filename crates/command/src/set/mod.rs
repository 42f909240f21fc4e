//! Commands on sets.

mod combine;
pub mod sadd;
pub mod scard;
pub mod sdiff;
pub mod sdiffstore;
pub mod sinter;
pub mod sintercard;
pub mod sinterstore;
pub mod sismember;
pub mod smembers;
pub mod smismember;
pub mod smove;
pub mod spop;
pub mod srandmember;
pub mod srem;
pub mod sscan;
pub mod sunion;
pub mod sunionstore;

use crate::{Command, Ctx, Failure};
use rufous_datatype::set::{Set, View};

pub static COMMANDS: &[&Command] = &[
    &sadd::SADD,
    &sismember::SISMEMBER,
    &srem::SREM,
    &smembers::SMEMBERS,
    &scard::SCARD,
    &sdiff::SDIFF,
    &sdiffstore::SDIFFSTORE,
    &sinter::SINTER,
    &sintercard::SINTERCARD,
    &sinterstore::SINTERSTORE,
    &smismember::SMISMEMBER,
    &smove::SMOVE,
    &spop::SPOP,
    &srandmember::SRANDMEMBER,
    &sscan::SSCAN,
    &sunion::SUNION,
    &sunionstore::SUNIONSTORE,
];

/// The set at the command's first key, to be read.
#[inline]
fn read<'c>(ctx: &'c mut Ctx<'_>, key: &[u8]) -> Result<Option<View<'c>>, Failure> {
    let key = ctx.first_key(key);
    Ok(ctx.shard.collection::<Set>(ctx.db, key, ctx.now)?)
}
