//! The table of what commands that write mean on lattice keys, in the order of
//! their names.

use super::{But, Decides, Means, Refusal, Row};

const CONDITION: Refusal = Refusal {
    why: "only all replicas together know whether it exists",
    instead: "use a write without a condition, of which the last wins, or a keyspace of regime strict",
};
const COMPARES: Refusal = Refusal {
    why: "what the condition compares with is known only to all replicas together",
    instead: "leave the condition out, or use a keyspace of regime strict",
};
const ONE_TAKER: Refusal = Refusal {
    why: "two clients at different replicas could both take the same element",
    instead: "use a keyspace of regime strict for what only one may take",
};
const POSITIONS: Refusal = Refusal {
    why: "a list has positions, on which replicas that take writes at once do not agree",
    instead: "use a sorted set whose scores order the elements, or a keyspace of regime strict",
};
const WAITS: Refusal = Refusal {
    why: "two clients that wait at different replicas could both get the same element",
    instead: "use a keyspace of regime strict for queues",
};
const BYTES: Refusal = Refusal {
    why: "it changes a part of a value of which other replicas may be changing other parts",
    instead: "write the whole value with SET, or use a keyspace of regime strict",
};
const MOVES: Refusal = Refusal {
    why: "all replicas would have to see both keys change at the same time",
    instead: "write the one and delete the other, or use a keyspace of regime strict",
};
const FREE_NAME: Refusal = Refusal {
    why: "only all replicas together know whether the new name is free",
    instead: "use RENAME, which replaces what the new name shows, or a keyspace of regime strict",
};
const NO_MERGE: Refusal = Refusal {
    why: "values of this type do not merge",
    instead: "use a keyspace of regime strict for them",
};
const MUST_REPLACE: Refusal = Refusal {
    why: "only all replicas together know whether it exists",
    instead: "use it with REPLACE, or a keyspace of regime strict",
};
const LIST: Refusal = Refusal {
    why: "it stores a list, which has positions, on which replicas that take writes at once do not agree",
    instead: "store to a key of regime strict, or add the elements to a sorted set whose scores order them",
};
const SHAPE: Refusal = Refusal {
    why: "it changes how one replica keeps the HyperLogLog",
    instead: "use GET, which shows its bytes",
};

const DEADLINE: &str = "Of two deadlines at the same time the one with the higher stamp stays. \
    When the time comes every replica removes by itself what was written before; elements written \
    since stay. The deadline has a stamp of its own, and a value that is written or counted at the \
    same time stays. At LEVEL causal the values get it that the connection has seen, or if it has seen none all that \
    are shown";
const NO_DEADLINE: &str = "As EXPIRE without a deadline: of this and a deadline set at the same time \
    the one with the higher stamp stays. The value is not written again. \
    At LEVEL causal all values that are shown lose theirs, whatever the connection has seen";
const RESTORES: &str = "Takes away what this replica shows, and writes string or elements of the \
    payload; what is added elsewhere at the same time stays. The payload of DUMP is that of the \
    plain value that the replica shows. Refused of types that do not merge";
const COUNTS: &str = "Additions of all replicas add up; replies the sum as this replica knows it. \
    A SET replaces the additions that it has seen or that are made at the same time";
const LAST_WINS: &str = "Of two writes at the same time the one with the higher stamp stays";
const SETS: &str = "Of two writes at the same time the one with the higher stamp stays. Sets or \
    clears the deadline as well; with KEEPTTL a deadline that is set at the same time stays if the \
    replica shows a value, and where it shows none the new value has none";
const OBSERVES: &str = "What replicas add at the same time is counted as if one had added it all. \
    Replies as this replica knows it. Refused where SET has written the string";
const STORES: &str = "Changes the destination to the result of what this replica shows: removes the elements that this replica shows and \
    that are not in the result, and adds all of the result, each as a command on it alone would. Elements that others add at the \
    same time stay. Replies the size of the result. The destination loses its deadline, and must hold no value of another type; an empty result deletes whatever it holds";
const COPIES: &str = "Writes what this replica shows of the source to the destination: a string as SET; of a collection the \
    elements are removed and added as by SUNIONSTORE, so that what others add at the same time stays. The destination gets the \
    source's deadline, and must hold no value of another type. A HyperLogLog is refused: PFMERGE adds it";
const RENAMES: &str = "As COPY with REPLACE, and then DEL of the source: what others add to it at the same time stays there. Other \
    replicas may show one of the two changes before the other, so that for a moment both keys are shown or none is; where both keys are \
    of keyspaces with CUT they show both changes together";
const REMOVES: &str = "Takes away what this replica shows; what is added elsewhere at the same \
    time stays";

const fn allowed(command: &'static str, means: &'static str, example: &'static str) -> Row {
    Row {
        command,
        decides: Decides::Any,
        means: Means::Allowed {
            means,
            example,
            but: None,
        },
    }
}

const fn unless(row: Row, from: usize, words: &'static [&'static str], refusal: Refusal) -> Row {
    among(row, from, words, &[], refusal)
}

const fn among(
    row: Row,
    from: usize,
    words: &'static [&'static str],
    among: &'static [&'static str],
    refusal: Refusal,
) -> Row {
    let Means::Allowed { means, example, .. } = row.means else {
        return row;
    };
    let but = Some(But {
        from,
        words,
        among,
        is_without: false,
        refusal,
    });
    Row {
        means: Means::Allowed {
            means,
            example,
            but,
        },
        ..row
    }
}

/// Refused without one of the words.
const fn only(row: Row, from: usize, words: &'static [&'static str], refusal: Refusal) -> Row {
    let Means::Allowed { means, example, .. } = row.means else {
        return row;
    };
    let but = Some(But {
        from,
        words,
        among: &[],
        is_without: true,
        refusal,
    });
    Row {
        means: Means::Allowed {
            means,
            example,
            but,
        },
        ..row
    }
}

const fn refused(command: &'static str, refusal: Refusal) -> Row {
    Row {
        command,
        decides: Decides::Any,
        means: Means::Refused(refusal),
    }
}

/// What it writes is its first key, or its last.
const fn to(row: Row, decides: Decides) -> Row {
    Row { decides, ..row }
}

const DEADLINES: &[&str] = &["NX", "XX", "GT", "LT"];

/// Every command that writes.
pub static ROWS: &[Row] = &[
    refused("append", BYTES),
    refused("bag.add", NO_MERGE),
    refused("bcount.add", NO_MERGE),
    refused("bcount.incrby", NO_MERGE),
    refused("bcount.set", NO_MERGE),
    refused("bitfield", BYTES),
    to(
        allowed(
            "bitop",
            "As SET of the result of what this replica shows",
            "BITOP AND cart:a cart:b cart:c",
        ),
        Decides::First,
    ),
    refused("blmove", WAITS),
    refused("blmpop", WAITS),
    refused("blpop", WAITS),
    refused("brpop", WAITS),
    refused("brpoplpush", WAITS),
    refused("bzmpop", WAITS),
    refused("bzpopmax", WAITS),
    refused("bzpopmin", WAITS),
    allowed(
        "causal.del",
        "At LEVEL causal alone: deletes what the token has seen",
        "CAUSAL.DEL note:a \"\"",
    ),
    allowed(
        "causal.set",
        "LEVEL causal only: replaces the values in the token, and adds to the others",
        "CAUSAL.SET note:a \"\" 1",
    ),
    to(
        only(
            allowed("copy", COPIES, "COPY cart:a cart:b REPLACE"),
            3,
            &["REPLACE"],
            MUST_REPLACE,
        ),
        Decides::Last,
    ),
    allowed("decr", COUNTS, "DECR cart:n"),
    allowed("decrby", COUNTS, "DECRBY cart:n 2"),
    allowed("del", REMOVES, "DEL cart:a cart:b"),
    unless(
        allowed("expire", DEADLINE, "EXPIRE cart:a 60"),
        3,
        DEADLINES,
        COMPARES,
    ),
    unless(
        allowed("expireat", DEADLINE, "EXPIREAT cart:a 2000000000"),
        3,
        DEADLINES,
        COMPARES,
    ),
    allowed(
        "flushall",
        "Empties all replicas at one instant, as for strict keys",
        "FLUSHALL",
    ),
    allowed(
        "flushdb",
        "Empties all replicas at one instant, as for strict keys",
        "FLUSHDB",
    ),
    among(
        allowed(
            "geoadd",
            "Of two places of one member at the same time the one with the higher stamp stays",
            "GEOADD cart:g 13.4 52.5 Berlin",
        ),
        2,
        &["NX", "XX"],
        &["CH"],
        COMPARES,
    ),
    to(
        allowed(
            "georadius",
            STORES,
            "GEORADIUS cart:g 13 52 200 km STORE cart:z",
        ),
        Decides::Last,
    ),
    to(
        allowed(
            "georadiusbymember",
            STORES,
            "GEORADIUSBYMEMBER cart:g Berlin 200 km STORE cart:z",
        ),
        Decides::Last,
    ),
    to(
        allowed(
            "geosearchstore",
            STORES,
            "GEOSEARCHSTORE cart:z cart:g FROMLONLAT 13 52 BYRADIUS 200 km",
        ),
        Decides::First,
    ),
    Row {
        command: "getdel",
        decides: Decides::Any,
        means: Means::Causal {
            means: "At LEVEL causal: as GET and DEL; another client may get the value as well",
            example: "GETDEL note:a",
            refusal: ONE_TAKER,
        },
    },
    allowed("getex", DEADLINE, "GETEX cart:a EX 60"),
    allowed(
        "getset",
        "As SET; replies what this replica showed, which another client may get as well",
        "GETSET cart:a 1",
    ),
    allowed("hdel", LAST_WINS, "HDEL cart:h f"),
    allowed("hincrby", COUNTS, "HINCRBY cart:h n 1"),
    allowed("hincrbyfloat", COUNTS, "HINCRBYFLOAT cart:h x 1.5"),
    allowed(
        "hmset",
        "Field by field: of two writes of a field at the same time the last wins",
        "HMSET cart:h f 1 g 2",
    ),
    allowed(
        "hset",
        "Field by field: of two writes of a field at the same time the last wins. Replies how many \
         fields are new to this replica",
        "HSET cart:h f 1 g 2",
    ),
    refused("hsetnx", CONDITION),
    allowed("incr", COUNTS, "INCR cart:n"),
    allowed("incrby", COUNTS, "INCRBY cart:n 2"),
    allowed("incrbyfloat", COUNTS, "INCRBYFLOAT cart:x 1.5"),
    refused("linsert", POSITIONS),
    refused("lmove", POSITIONS),
    refused("lmpop", POSITIONS),
    refused("lpop", POSITIONS),
    refused("lpush", POSITIONS),
    refused("lpushx", POSITIONS),
    refused("lrem", POSITIONS),
    refused("lset", POSITIONS),
    refused("ltrim", POSITIONS),
    refused("move", MOVES),
    allowed(
        "mset",
        "As several SETs under one time",
        "MSET cart:a 1 cart:b 2",
    ),
    refused("msetnx", CONDITION),
    refused("outcome", CONDITION),
    allowed("persist", NO_DEADLINE, "PERSIST cart:a"),
    unless(
        allowed("pexpire", DEADLINE, "PEXPIRE cart:a 60000"),
        3,
        DEADLINES,
        COMPARES,
    ),
    unless(
        allowed("pexpireat", DEADLINE, "PEXPIREAT cart:a 2000000000000"),
        3,
        DEADLINES,
        COMPARES,
    ),
    allowed("pfadd", OBSERVES, "PFADD cart:p apple pear"),
    refused("pfdebug", SHAPE),
    to(
        allowed("pfmerge", OBSERVES, "PFMERGE cart:p cart:q cart:r"),
        Decides::First,
    ),
    allowed("psetex", LAST_WINS, "PSETEX cart:a 60000 1"),
    refused("rank.add", NO_MERGE),
    allowed("rename", RENAMES, "RENAME cart:a cart:b"),
    refused("renamenx", FREE_NAME),
    only(
        allowed("restore", RESTORES, "RESTORE cart:s 0 payload REPLACE"),
        4,
        &["REPLACE"],
        MUST_REPLACE,
    ),
    refused("rpop", POSITIONS),
    refused("rpoplpush", POSITIONS),
    refused("rpush", POSITIONS),
    refused("rpushx", POSITIONS),
    allowed(
        "sadd",
        "An addition beats a removal that has not seen it. Replies how many members are new to \
         this replica",
        "SADD cart:s apple pear",
    ),
    to(
        allowed("sdiffstore", STORES, "SDIFFSTORE cart:s cart:x cart:y"),
        Decides::First,
    ),
    unless(
        allowed("set", SETS, "SET cart:a 1 EX 60"),
        3,
        &["NX", "XX"],
        CONDITION,
    ),
    refused("setbit", BYTES),
    allowed("setex", LAST_WINS, "SETEX cart:a 60 1"),
    refused("setnx", CONDITION),
    refused("setrange", BYTES),
    to(
        allowed("sinterstore", STORES, "SINTERSTORE cart:s cart:x cart:y"),
        Decides::First,
    ),
    refused("smove", MOVES),
    to(refused("sort", LIST), Decides::Last),
    refused("spop", ONE_TAKER),
    allowed("srem", REMOVES, "SREM cart:s apple"),
    to(
        allowed("sunionstore", STORES, "SUNIONSTORE cart:s cart:x cart:y"),
        Decides::First,
    ),
    refused(
        "swapdb",
        Refusal {
            why: "updates of the databases' keys are on their way between replicas",
            instead: "drop the lattice keyspaces first, of all prefixes, or copy the keys",
        },
    ),
    refused("uid.next", NO_MERGE),
    allowed("unlink", REMOVES, "UNLINK cart:a"),
    among(
        allowed(
            "zadd",
            "Of two scores of one member at the same time the one with the higher stamp stays; \
             with INCR as ZINCRBY",
            "ZADD cart:z 1 a 2 b",
        ),
        2,
        &["NX", "XX", "GT", "LT"],
        &["CH", "INCR"],
        COMPARES,
    ),
    to(
        allowed("zdiffstore", STORES, "ZDIFFSTORE cart:z 2 cart:x cart:y"),
        Decides::First,
    ),
    allowed("zincrby", COUNTS, "ZINCRBY cart:z 1.5 a"),
    to(
        allowed("zinterstore", STORES, "ZINTERSTORE cart:z 2 cart:x cart:y"),
        Decides::First,
    ),
    refused("zmpop", ONE_TAKER),
    refused("zpopmax", ONE_TAKER),
    refused("zpopmin", ONE_TAKER),
    to(
        allowed("zrangestore", STORES, "ZRANGESTORE cart:z cart:y 0 -1"),
        Decides::First,
    ),
    allowed("zrem", LAST_WINS, "ZREM cart:z a"),
    allowed(
        "zremrangebylex",
        "Removes the members that this replica has in the range",
        "ZREMRANGEBYLEX cart:z [a [b",
    ),
    allowed(
        "zremrangebyrank",
        "Removes the members that this replica has in the range",
        "ZREMRANGEBYRANK cart:z 0 1",
    ),
    allowed(
        "zremrangebyscore",
        "Removes the members that this replica has in the range",
        "ZREMRANGEBYSCORE cart:z 0 1",
    ),
    to(
        allowed("zunionstore", STORES, "ZUNIONSTORE cart:z 2 cart:x cart:y"),
        Decides::First,
    ),
];
