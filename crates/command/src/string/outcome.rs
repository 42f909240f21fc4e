//! OUTCOME: how the transaction with a token has ended, decided once.
//!
//! `COMMIT TOKEN` has the first form executed with what the transaction does, in one step. A client whose reply was lost asks by
//! the second form: where nothing is known, that decides against the transaction, which may still be under way. It is answered with
//! memory full, too: an outcome is small, and to leave it open is what tokens are against.

use super::set::ExpiryUnit;
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::planted::{self, Planted};
use rufous_kernel::shard::{ExpirySetting, NewValue};

command! {
    /// The outcome of the transaction that COMMIT TOKEN has ended: COMMITTED or ABORTED. If there is none yet, it is ABORTED from then
    /// on.
    OUTCOME = run: "outcome", syntax "token [COMMITTED] [EX seconds]", arity -2, group Transactions, since "7.2.4",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

const COMMITTED: &str = "COMMITTED";
const ABORTED: &str = "ABORTED";
/// A day.
const DEFAULT_SECONDS: &[u8] = b"86400";

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut words = args.iter_from(2).peekable();
    let commits = words.next_if(|word| is(word, COMMITTED)).is_some();
    let is_timed = words.next_if(|word| is(word, "EX")).is_some();
    let seconds = match (is_timed, words.next(), words.next()) {
        (true, Some(seconds), None) => seconds,
        (false, None, None) => DEFAULT_SECONDS,
        _ => return Err(Failure::SYNTAX),
    };
    let key = ctx.first_key(args.get(1));
    let expire_at = ExpiryUnit::SECONDS.expire_at(seconds, ctx.time_ms(key), "outcome")?;
    let known = ctx.shard.get(ctx.db, key, ctx.now)?;
    let known = known.map(|value| match value.bytes() {
        b"COMMITTED" => Ok(COMMITTED),
        b"ABORTED" => Ok(ABORTED),
        _ => Err(Failure::from("ERR the key holds something else than an outcome: use a name as a token that no other key has")),
    });
    let outcome = match known.transpose()? {
        Some(known) if commits => {
            return Err(format!(
                "TOKENUSED A transaction with this token is {known}: its outcome stays"
            )
            .into());
        }
        Some(known) => known,
        None => {
            let outcome = if commits { COMMITTED } else { ABORTED };
            let (value, expiry) = (
                NewValue::Copy(outcome.as_bytes()),
                ExpirySetting::At(expire_at),
            );
            if commits || !planted::is(Planted::OutcomeNotSet) {
                ctx.shard.set(ctx.db, key, value, expiry, ctx.now);
            }
            outcome
        }
    };
    reply.simple(outcome);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    the_first_decides: "
        OUTCOME t COMMITTED => +COMMITTED
        TTL t => :86400
        OUTCOME t => +COMMITTED
        OUTCOME t COMMITTED EX 5 => -TOKENUSED A transaction with this token is COMMITTED: its outcome stays
        OUTCOME u => +ABORTED
        OUTCOME u COMMITTED => -TOKENUSED A transaction with this token is ABORTED: its outcome stays
        OUTCOME u ex 5 => +ABORTED
        TTL u => :86400
        OUTCOME v EX 5 => +ABORTED
        after 5000 ms: OUTCOME v committed EX 7 => +COMMITTED
        TTL v => :7
    "
    what_is_no_outcome_is_refused: "
        SET k ABORT => +OK
        OUTCOME k => -ERR the key holds something else than an outcome: use a name as a token that no other key has
        OUTCOME k COMMITTED => -ERR the key holds something else than an outcome: use a name as a token that no other key has
        RPUSH l x => :1
        OUTCOME l => -WRONGTYPE Operation against a key holding the wrong kind of value
        OUTCOME x EX => -ERR syntax error
        OUTCOME x EX 0 => -ERR invalid expire time in 'outcome' command
        OUTCOME x EX 5 COMMITTED => -ERR syntax error
        OUTCOME x COMMITTED ABORTED => -ERR syntax error
        EXISTS x => :0
        GET k => 'ABORT'
    "
}
