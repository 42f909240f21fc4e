//! Commands on lists.

pub mod blmove;
pub mod blmpop;
mod blocking;
pub mod blpop;
pub mod brpop;
pub mod brpoplpush;
mod ends;
pub mod lindex;
pub mod linsert;
pub mod llen;
pub mod lmove;
pub mod lmpop;
pub mod lpop;
pub mod lpos;
pub mod lpush;
pub mod lpushx;
pub mod lrange;
pub mod lrem;
pub mod lset;
pub mod ltrim;
pub mod rpop;
pub mod rpoplpush;
pub mod rpush;
pub mod rpushx;

pub(crate) use ends::{End, pop_many, transfer};

use crate::{Command, Ctx, Failure};
use rufous_datatype::list::{List, View};

pub static COMMANDS: &[&Command] = &[
    &lpush::LPUSH,
    &rpush::RPUSH,
    &lpop::LPOP,
    &rpop::RPOP,
    &lrange::LRANGE,
    &llen::LLEN,
    &lmove::LMOVE,
    &rpoplpush::RPOPLPUSH,
    &lindex::LINDEX,
    &linsert::LINSERT,
    &lmpop::LMPOP,
    &lpos::LPOS,
    &lpushx::LPUSHX,
    &lrem::LREM,
    &lset::LSET,
    &ltrim::LTRIM,
    &rpushx::RPUSHX,
    &blpop::BLPOP,
    &brpop::BRPOP,
    &blmove::BLMOVE,
    &brpoplpush::BRPOPLPUSH,
    &blmpop::BLMPOP,
];

/// The list at the command's first key, to be read.
#[inline]
fn read<'c>(ctx: &'c mut Ctx<'_>, key: &[u8]) -> Result<Option<View<'c>>, Failure> {
    let key = ctx.first_key(key);
    Ok(ctx.shard.collection::<List>(ctx.db, key, ctx.now)?)
}
