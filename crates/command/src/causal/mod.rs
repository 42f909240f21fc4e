//! Strings with causal order for clients that keep no session: what they have
//! seen of a key they take along as a *token*, and give it with a write, which
//! replaces that. All concurrent values can be read, and plain reads and writes
//! of connections work beside this.

pub mod del;
pub mod get;
pub mod set;
#[cfg(test)]
mod tests;

use crate::{Command, Ctx, Failure};
use rufous_datatype::replicated::token;
use rufous_kernel::shard::causal;
use rufous_kernel::shard::{Key, Written};
use std::borrow::Cow;

pub static COMMANDS: &[&Command] = &[&get::GET, &set::SET, &del::DEL];

const NOT_CAUSAL: Failure = Failure(Cow::Borrowed(
    "ERR the key has no concurrent values: CAUSAL commands are for keyspaces of LEVEL causal",
));
const NOT_A_TOKEN: Failure = Failure(Cow::Borrowed(
    "ERR the token is not one of this key: give what CAUSAL.GET or CAUSAL.SET of it replied, or an \
     empty one to replace nothing",
));

/// The key, if its strings have causal order.
fn check(ctx: &mut Ctx<'_>, key: Key<'_>) -> Result<(), Failure> {
    if !ctx.shard.lattice().orders_causally(key) {
        return Err(NOT_CAUSAL);
    }
    let value = ctx.shard.look(ctx.db, key, ctx.now);
    let is_string = value.is_none_or(|value| value.type_name() == "string");
    is_string.then_some(()).ok_or(Failure::WRONG_TYPE)
}

/// Writes, with a deadline in Unix milliseconds or 0, or deletes what the token
/// has seen.
fn write(
    ctx: &mut Ctx<'_>,
    key: Key<'_>,
    token: &[u8],
    value: Option<(&[u8], u64)>,
) -> Result<Written, Failure> {
    check(ctx, key)?;
    let seen = token::decode(ctx.db as u8, key.bytes, token).map_err(|_| NOT_A_TOKEN)?;
    let written = causal::set(&mut ctx.shard.at(ctx.db, key, ctx.now), value, &seen);
    Ok(written.unwrap_or_default())
}
