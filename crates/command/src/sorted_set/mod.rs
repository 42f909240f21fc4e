//! Commands on sorted sets.

mod algebra;
mod blocking;
mod bounds;
pub mod bzmpop;
pub mod bzpopmax;
pub mod bzpopmin;
pub(crate) mod numbered;
pub mod pop;
pub(crate) mod rangeof;
mod remrange;
pub(crate) mod reply;
mod source;
pub mod zadd;
pub mod zcard;
pub mod zcount;
pub mod zdiff;
pub mod zdiffstore;
pub mod zincrby;
pub mod zinter;
pub mod zintercard;
pub mod zinterstore;
pub mod zlexcount;
pub mod zmpop;
pub mod zmscore;
pub mod zpopmax;
pub mod zpopmin;
pub mod zrandmember;
pub mod zrange;
pub mod zrangebylex;
pub mod zrangebyscore;
pub mod zrangestore;
pub mod zrank;
pub mod zrem;
pub mod zremrangebylex;
pub mod zremrangebyrank;
pub mod zremrangebyscore;
pub mod zrevrange;
pub mod zrevrangebylex;
pub mod zrevrangebyscore;
pub mod zrevrank;
pub mod zscan;
pub mod zscore;
pub mod zunion;
pub mod zunionstore;

use crate::Command;
pub(crate) use reply::element;

pub static COMMANDS: &[&Command] = &[
    &bzmpop::BZMPOP,
    &bzpopmax::BZPOPMAX,
    &bzpopmin::BZPOPMIN,
    &zadd::ZADD,
    &zcard::ZCARD,
    &zcount::ZCOUNT,
    &zdiff::ZDIFF,
    &zdiffstore::ZDIFFSTORE,
    &zincrby::ZINCRBY,
    &zinter::ZINTER,
    &zintercard::ZINTERCARD,
    &zinterstore::ZINTERSTORE,
    &zlexcount::ZLEXCOUNT,
    &zmpop::ZMPOP,
    &zmscore::ZMSCORE,
    &zpopmax::ZPOPMAX,
    &zpopmin::ZPOPMIN,
    &zrandmember::ZRANDMEMBER,
    &zrange::ZRANGE,
    &zrangebylex::ZRANGEBYLEX,
    &zrangebyscore::ZRANGEBYSCORE,
    &zrangestore::ZRANGESTORE,
    &zrank::ZRANK,
    &zrem::ZREM,
    &zremrangebylex::ZREMRANGEBYLEX,
    &zremrangebyrank::ZREMRANGEBYRANK,
    &zremrangebyscore::ZREMRANGEBYSCORE,
    &zrevrange::ZREVRANGE,
    &zrevrangebylex::ZREVRANGEBYLEX,
    &zrevrangebyscore::ZREVRANGEBYSCORE,
    &zrevrank::ZREVRANK,
    &zscan::ZSCAN,
    &zscore::ZSCORE,
    &zunion::ZUNION,
    &zunionstore::ZUNIONSTORE,
];
