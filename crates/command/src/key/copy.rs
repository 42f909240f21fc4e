//! COPY: gives a value a second key, in the same database or another.

use crate::options::{self, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::{DbKey, copy_shown};
use std::borrow::Cow;

command! {
    /// Copies the value of a key, with its expiry, to another key.
    COPY = run: "copy", syntax "source destination [DB destination-db] [REPLACE]", arity -3,
    group Generic, since "6.2.0", flags WRITE | DENYOOM,
    complexity "O(N) in the size of small values, O(1) for large ones, which are shared until one is changed",
    keys Keys::Custom {
        find,
        shown: (1, 2, 1),
    },
}

/// The source in the selected database, the destination in the one that is
/// named. Of a request that cannot run, any keys will do.
fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    let target = parse(args, db).map_or(db, |options| options.db);
    keys.extend([(db, 1), (target, 2)]);
}

struct Options {
    db: u8,
    replace: bool,
}

fn parse(args: &Args<'_>, db: u8) -> Result<Options, Failure> {
    let mut options = Options { db, replace: false };
    let mut at = 3;
    while at < args.len() {
        if is(args.get(at), "REPLACE") {
            options.replace = true;
        } else if is(args.get(at), "DB") && at + 1 < args.len() {
            at += 1;
            options.db = target_database(args.get(at))?;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

/// The database that a key goes to. Redis distinguishes an argument that is no integer,
/// one that does not fit 32 bits, and one that names no database.
pub(super) fn target_database(arg: &[u8]) -> Result<u8, Failure> {
    if i32::try_from(options::integer(arg)?).is_err() {
        return Err(Failure::from(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    options::database(arg)
}

pub(super) const SAME_KEY: Failure = Failure(Cow::Borrowed(
    "ERR source and destination objects are the same",
));

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let options = parse(&args, ctx.db as u8)?;
    let target = usize::from(options.db);
    if target == ctx.db && args.get(1) == args.get(2) {
        return Err(SAME_KEY);
    }
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    // The source is accessed, the copy is new.
    let found = ctx.shard.read(ctx.db, from, ctx.now).is_some();
    let may = found && (options.replace || !ctx.shard.contains(target, to, ctx.now));
    let is_lattice = |key| ctx.shard.lattice().writes(key);
    if may && (is_lattice(from) || is_lattice(to)) {
        let (db, key) = (ctx.db, from);
        let to = DbKey {
            db: target,
            key: to,
        };
        copy_shown(ctx.shard, DbKey { db, key }, to, ctx.now);
    } else if may {
        ctx.shard.copy((ctx.db, from), (target, to), ctx.now);
    }
    reply.integer(i64::from(may));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    copies_value_and_expiry: "
        COPY a b => :0
        SET a 1 PX 1000 => +OK
        COPY a b => :1
        GET b => '1'
        PTTL b => :1000
        GET a => '1'
        SET b 2 => +OK
        COPY a b => :0
        COPY a b replace => :1
        GET b => '1'
        COPY none b REPLACE => :0
        EXISTS b => :1
    "

    to_another_database: "
        SET a 1 => +OK
        COPY a a DB 3 => :1
        COPY a a db 3 => :0
        COPY a b REPLACE DB 3 => :1
        database 3: GET a => '1'
        GET b => '1'
    "

    refused: "
        SET a 1 => +OK
        COPY a a => -ERR source and destination objects are the same
        COPY none none DB 0 => -ERR source and destination objects are the same
        COPY a b DB 16 => -ERR DB index is out of range
        COPY a b DB -1 => -ERR DB index is out of range
        COPY a b DB x => -ERR value is not an integer or out of range
        COPY a b DB 99999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
        COPY a b DB => -ERR syntax error
        COPY a b REPLACE x => -ERR syntax error
        EXISTS b => :0
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;
    use rufous_base::Args;

    #[test]
    fn a_large_value_is_shared_until_it_changes() {
        let mut rig = Rig::new();
        rig.run(&[b"SET", b"a", &[b'x'; 100_000]]);
        rig.check("COPY a b", ":1");
        let copy = rig.run(&[b"GET", b"b"]);
        rig.check("SET a y", "+OK");
        assert_eq!(rig.run(&[b"GET", b"b"]), copy);
        assert!(copy.starts_with(b"$100000\r\nxxx"));
    }

    #[test]
    fn keys_are_found_in_both_databases() {
        let check = |request: &str, keys: [(u8, u32); 2]| {
            let words: Vec<&str> = request.split(' ').collect();
            let buf = words.concat();
            let mut at = 0;
            let spans: Vec<_> = words
                .iter()
                .map(|word| {
                    at += word.len() as u32;
                    (at - word.len() as u32, word.len() as u32)
                })
                .collect();
            let mut found = Vec::new();
            let args = Args::new(buf.as_bytes(), &spans, &mut []);
            super::find(&args, 2, &mut found);
            assert_eq!(found, keys, "{request}");
        };
        check("COPY a b", [(2, 1), (2, 2)]);
        check("COPY a b REPLACE DB 5", [(2, 1), (5, 2)]);
        check("COPY a b DB 5 db 6", [(2, 1), (6, 2)]);
        check("COPY a b DB 77", [(2, 1), (2, 2)]);
    }
}
