//! `COMMIT TOKEN`: outcomes that a client can ask for.

use crate::front::testing::{Client, Rig};

const USED: &str =
    "-EXECABORT Transaction discarded because of: TOKENUSED A transaction with this token is";

fn begin(rig: &mut Rig, client: Client, commands: &[&str]) {
    rig.check_on(client, "BEGIN", "+OK\r\n");
    for command in commands {
        rig.run_on(client, command);
    }
}

#[test]
fn a_token_is_committed_once() {
    for workers in [1, 2, 4] {
        let mut rig = Rig::new(workers);
        let (client, other) = (rig.connect(workers - 1), rig.connect(0));
        begin(&mut rig, client, &["INCR a", "RPUSH list x"]);
        let done = rig.run_on(client, "COMMIT TOKEN t");
        assert_eq!(done, "*3\r\n:1\r\n:1\r\n+COMMITTED\r\n");
        rig.check("OUTCOME t", "+COMMITTED\r\n");
        rig.check("TTL t", ":86400\r\n");
        // Its client has not had the reply, and does it all again.
        begin(&mut rig, other, &["INCR a", "RPUSH list x"]);
        let again = rig.run_on(other, "COMMIT TOKEN t EX 5");
        assert!(again.starts_with(&format!("{USED} COMMITTED")), "{again}");
        rig.check("MGET a t", "*2\r\n$1\r\n1\r\n$9\r\nCOMMITTED\r\n");
        rig.check("LLEN list", ":1\r\n");
        // A transaction that wrote nothing has an outcome, too.
        begin(&mut rig, client, &["GET a"]);
        rig.check_on(client, "COMMIT TOKEN u EX 5", "*1\r\n+COMMITTED\r\n");
        rig.check("TTL u", ":5\r\n");
        let info = rig.run("INFO keyspaces");
        let ended = "transactions_committed:2\r\ntransactions_rolled_back:1\r\n";
        assert!(info.contains(ended), "{info}");
    }
}

#[test]
fn who_asks_first_decides_against_it() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        begin(&mut rig, client, &["SET a 1", "SET b 1"]);
        rig.check("OUTCOME t", "+ABORTED\r\n");
        let late = rig.run_on(client, "COMMIT TOKEN t");
        assert!(late.starts_with(&format!("{USED} ABORTED")), "{late}");
        rig.check("EXISTS a b", ":0\r\n");
        rig.check("OUTCOME t", "+ABORTED\r\n");
    }
}

/// Whole or not at all, as the outcome says.
#[test]
fn an_error_leaves_no_outcome() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        begin(&mut rig, client, &["SET a 1", "INCR b"]);
        rig.check("RPUSH b x", ":1\r\n");
        let failed = rig.run_on(client, "COMMIT TOKEN t");
        assert!(failed.contains("because of: WRONGTYPE"), "{failed}");
        rig.check("EXISTS a t", ":0\r\n");
        // The next one is as the connection says.
        begin(&mut rig, client, &["SET a 1", "INCR c"]);
        rig.check("RPUSH c x", ":1\r\n");
        let stays = rig.run_on(client, "COMMIT");
        assert!(stays.starts_with("*2\r\n+OK\r\n-WRONGTYPE"), "{stays}");
        // A change of what it has read leaves none either, and the token is free.
        rig.check_on(client, "BEGIN SERIALIZABLE", "+OK\r\n");
        rig.check_on(client, "INCR n", ":1\r\n");
        rig.check("SET n 5", "+OK\r\n");
        rig.check_on(client, "COMMIT TOKEN t", "*-1\r\n");
        rig.check("EXISTS t", ":0\r\n");
        begin(&mut rig, client, &["INCR n"]);
        rig.check_on(client, "COMMIT TOKEN t", "*2\r\n:6\r\n+COMMITTED\r\n");
    }
}

#[test]
fn what_cannot_have_a_token_says_so() {
    let mut rig = Rig::new(2);
    let client = rig.connect(0);
    rig.check_on(client, "COMMIT TOKEN t", "-ERR COMMIT without BEGIN\r\n");
    rig.check("EXISTS t", ":0\r\n");
    rig.check_on(client, "BEGIN", "+OK\r\n");
    for wrong in [
        "COMMIT x",
        "COMMIT TOKEN",
        "COMMIT TOKEN t EX",
        "COMMIT TOKEN t PX 5",
        "COMMIT TOKEN t EX 5 x",
    ] {
        rig.check_on(client, wrong, "-ERR syntax error\r\n");
    }
    rig.check_on(client, "SET a 1", "+OK\r\n");
    let late = rig.run_on(client, "COMMIT TOKEN t EX 0");
    assert!(late.contains("invalid expire time in 'outcome'"), "{late}");
    rig.check("EXISTS a t", ":0\r\n");
    rig.check_on(client, "BEGIN READ-UNCOMMITTED", "+OK\r\n");
    let at_once = rig.run_on(client, "COMMIT TOKEN t");
    assert!(at_once.contains("there is no outcome to keep"), "{at_once}");
    rig.check_on(client, "COMMIT", "*0\r\n");
    rig.run("KEYSPACE CREATE all PREFIX l: REGIME lattice");
    rig.check_on(client, "BEGIN", "+OK\r\n");
    rig.check_on(client, "SET l:a 1", "+OK\r\n");
    let lattice = rig.run_on(client, "COMMIT TOKEN t");
    assert!(
        lattice.contains("has keys of regime strict alone"),
        "{lattice}"
    );
    rig.check("EXISTS l:a t", ":0\r\n");
}

/// A client in doubt is answered, whatever else is refused.
#[test]
fn an_outcome_is_told_and_decided_with_memory_full() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        rig.check("SET a 1", "+OK\r\n");
        begin(&mut rig, client, &["SET b 1"]);
        rig.check_on(client, "COMMIT TOKEN t", "*2\r\n+OK\r\n+COMMITTED\r\n");
        rig.check("CONFIG SET maxmemory 1", "+OK\r\n");
        let refused = rig.run("SET c 1");
        assert!(refused.starts_with("-OOM"), "{refused}");
        rig.check("OUTCOME t", "+COMMITTED\r\n");
        rig.check("OUTCOME u", "+ABORTED\r\n");
        // What frees memory may have a token.
        begin(&mut rig, client, &["DEL a"]);
        rig.check_on(client, "COMMIT TOKEN v", "*2\r\n:1\r\n+COMMITTED\r\n");
    }
}

/// An error before `COMMIT` is its command's alone, which is no part of the transaction.
#[test]
fn what_has_failed_before_is_no_part_of_it() {
    let mut rig = Rig::new(2);
    let client = rig.connect(0);
    rig.check("SET s text", "+OK\r\n");
    begin(&mut rig, client, &["INCR n", "INCR s"]);
    rig.check_on(client, "COMMIT TOKEN t", "*2\r\n:1\r\n+COMMITTED\r\n");
    rig.check("GET s", "$4\r\ntext\r\n");
}
