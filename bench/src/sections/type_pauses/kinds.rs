//! The huge collections and what happens to them.

use crate::loadgen::calls::{Call, Caller};
use crate::loadgen::reply::Check;

const KEY: &[u8] = b"huge";
const OTHER: &[u8] = b"other";

/// A type, how its collection is made, written and read, and what removes much of it.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) grow: Caller,
    pub(super) write: Caller,
    pub(super) read: Caller,
    pub(super) cuts: &'static [(&'static str, Caller)],
}

pub(super) const KINDS: [Kind; 4] = [
    Kind {
        name: "set",
        grow: |call, number| {
            call.begin(3, "SADD").word(KEY).name(b'm', number);
            Check::Integer
        },
        // Members come and go.
        write: |call, number| {
            let member = call.rng.below(2 * call.elements);
            let name = if number.is_multiple_of(2) {
                "SADD"
            } else {
                "SREM"
            };
            call.begin(3, name).word(KEY).name(b'm', member);
            Check::Integer
        },
        read: |call, _| {
            let member = call.rng.below(call.elements);
            call.begin(3, "SISMEMBER").word(KEY).name(b'm', member);
            Check::Integer
        },
        cuts: &[],
    },
    Kind {
        name: "hash",
        grow: |call, number| {
            call.begin(4, "HSET").word(KEY).name(b'f', number);
            call.word(b"sixteen bytes...");
            Check::Integer
        },
        write: |call, _| {
            let field = call.rng.below(2 * call.elements);
            call.begin(4, "HSET").word(KEY).name(b'f', field);
            call.word(b"other words");
            Check::Integer
        },
        read: |call, _| {
            let field = call.rng.below(call.elements);
            call.begin(3, "HGET").word(KEY).name(b'f', field);
            Check::Bulk
        },
        cuts: &[],
    },
    Kind {
        name: "sorted set",
        grow: |call, number| {
            let score = call.rng.below(1_000_000_000);
            call.begin(4, "ZADD").word(KEY).number(score);
            call.name(b'm', number);
            Check::Integer
        },
        write: |call, _| {
            let score = call.rng.below(1_000_000_000);
            let member = call.rng.below(call.elements);
            call.begin(4, "ZADD").word(KEY).number(score);
            call.name(b'm', member);
            Check::Integer
        },
        read: |call, _| {
            let start = call.rng.below(call.elements - 10);
            call.begin(4, "ZRANGE").word(KEY);
            call.number(start).number(start + 9);
            Check::Bulks(10)
        },
        cuts: &[
            ("ZREMRANGEBYRANK of half", |call, _| {
                call.begin(4, "ZREMRANGEBYRANK").word(KEY).word(b"1000");
                call.number(999 + call.elements / 2);
                Check::Integer
            }),
            ("ZREMRANGEBYSCORE of a quarter", |call, _| {
                call.begin(4, "ZREMRANGEBYSCORE").word(KEY);
                call.word(b"750000000").word(b"+inf");
                Check::Integer
            }),
        ],
    },
    Kind {
        name: "list",
        grow: |call, _| {
            call.begin(3, "RPUSH").word(KEY).word(b"sixteen bytes...");
            Check::Integer
        },
        write: |call, number| {
            if number.is_multiple_of(2) {
                call.begin(3, "LPUSH").word(KEY).word(b"other words");
                return Check::Integer;
            }
            let index = call.rng.below(call.elements);
            call.begin(4, "LSET").word(KEY).number(index);
            call.word(b"further words");
            Check::Simple
        },
        read: |call, _| {
            let index = call.rng.below(call.elements);
            call.begin(3, "LINDEX").word(KEY).number(index);
            Check::Bulk
        },
        cuts: &[("LTRIM to the middle half", |call, _| {
            let quarter = call.elements / 4;
            call.begin(4, "LTRIM").word(KEY);
            call.number(quarter).number(3 * quarter);
            Check::Simple
        })],
    },
];

/// Commands sent one at a time, so many of them; they leave the collection as it was.
pub(super) const SINGLE: [(&str, Caller, u64); 4] = [
    ("RENAME", rename, 10),
    ("EXPIRE, PERSIST", expire, 10),
    ("COPY, UNLINK", copy_unlink, 10),
    ("COPY, PEXPIRE, expiry", copy_expiring, 2),
];

fn copy_unlink(call: &mut Call<'_>, number: u64) -> Check {
    if number.is_multiple_of(2) {
        return copy(call, number);
    }
    unlink_other(call, number)
}

fn rename(call: &mut Call<'_>, number: u64) -> Check {
    let (from, to) = if number.is_multiple_of(2) {
        (KEY, OTHER)
    } else {
        (OTHER, KEY)
    };
    call.begin(3, "RENAME").word(from).word(to);
    Check::Simple
}

fn expire(call: &mut Call<'_>, number: u64) -> Check {
    if number.is_multiple_of(2) {
        call.begin(3, "EXPIRE").word(KEY).word(b"1000");
    } else {
        call.begin(2, "PERSIST").word(KEY);
    }
    Check::Integer
}

pub(super) fn copy(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(3, "COPY").word(KEY).word(OTHER);
    Check::Integer
}

pub(super) fn unlink_other(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(2, "UNLINK").word(OTHER);
    Check::Integer
}

/// A copy that soon expires.
fn copy_expiring(call: &mut Call<'_>, number: u64) -> Check {
    if number == 0 {
        return copy(call, number);
    }
    call.begin(3, "PEXPIRE").word(OTHER).word(b"50");
    Check::Integer
}

pub(super) fn delete(call: &mut Call<'_>, _number: u64) -> Check {
    call.begin(2, "DEL").word(KEY);
    Check::Integer
}
