//! Commands on hashes.

pub mod hdel;
pub mod hexists;
pub mod hget;
pub mod hgetall;
pub mod hincrby;
pub mod hincrbyfloat;
pub mod hkeys;
pub mod hlen;
pub mod hmget;
pub mod hmset;
pub mod hrandfield;
pub mod hscan;
pub mod hset;
pub mod hsetnx;
pub mod hstrlen;
pub mod hvals;

use crate::{Command, Ctx, Failure};
use rufous_datatype::hash::{Hash, View};

pub static COMMANDS: &[&Command] = &[
    &hset::HSET,
    &hget::HGET,
    &hmget::HMGET,
    &hgetall::HGETALL,
    &hincrby::HINCRBY,
    &hdel::HDEL,
    &hexists::HEXISTS,
    &hincrbyfloat::HINCRBYFLOAT,
    &hkeys::HKEYS,
    &hlen::HLEN,
    &hmset::HMSET,
    &hrandfield::HRANDFIELD,
    &hscan::HSCAN,
    &hsetnx::HSETNX,
    &hstrlen::HSTRLEN,
    &hvals::HVALS,
];

/// The hash at the command's first key, to be read.
#[inline]
fn read<'c>(ctx: &'c mut Ctx<'_>, key: &[u8]) -> Result<Option<View<'c>>, Failure> {
    let key = ctx.first_key(key);
    Ok(ctx.shard.collection::<Hash>(ctx.db, key, ctx.now)?)
}
