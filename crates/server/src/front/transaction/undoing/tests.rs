//! `CLIENT ROLLBACK-ON-ERROR`: transactions of which nothing stays where one of their commands fails.

use crate::front::testing::{Client, Rig};

const WRONG: &str = "-EXECABORT Transaction discarded because of: WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

fn exec(rig: &mut Rig, client: Client, commands: &[&str]) -> String {
    rig.check_on(client, "MULTI", "+OK\r\n");
    for command in commands {
        rig.check_on(client, command, "+QUEUED\r\n");
    }
    rig.run_on(client, "EXEC")
}

#[test]
fn an_error_undoes_all_that_a_transaction_has_done() {
    for workers in [1, 2, 4] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        rig.check("RPUSH list x y", ":2\r\n");
        rig.check("SET kept 1", "+OK\r\n");
        let wrong = [
            "SET a 1",
            "LPOP list",
            "DEL kept",
            "RENAME a b",
            "SELECT 3",
            "SET c 1",
            "SELECT 0",
            "INCR list",
            "SET d 1",
        ];
        // As ever: the others stay.
        exec(&mut rig, client, &wrong);
        rig.check("MGET b d kept", "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n");
        rig.run("FLUSHALL");
        rig.check("RPUSH list x y", ":2\r\n");
        rig.check("SET kept 1", "+OK\r\n");
        rig.check_on(client, "CLIENT ROLLBACK-ON-ERROR ON", "+OK\r\n");
        rig.check_on(client, "SELECT 0", "+OK\r\n");
        assert_eq!(exec(&mut rig, client, &wrong), WRONG);
        rig.check(
            "MGET a b c d kept",
            "*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$1\r\n1\r\n",
        );
        rig.check("LRANGE list 0 -1", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
        rig.check("DBSIZE", ":2\r\n");
        // All databases at once, too.
        assert_eq!(
            exec(&mut rig, client, &["FLUSHALL", "RPUSH l 1", "INCR l"]),
            WRONG
        );
        rig.check("DBSIZE", ":2\r\n");
        // The selected database stays, and the next transaction is executed.
        assert_eq!(
            exec(&mut rig, client, &["SELECT 5", "RPUSH l 1", "INCR l"]),
            WRONG
        );
        assert!(rig.run_on(client, "CLIENT INFO").contains(" db=0 "));
        assert_eq!(
            exec(&mut rig, client, &["INCR n", "GET n"]),
            "*2\r\n:1\r\n$1\r\n1\r\n"
        );
        rig.check("GET n", "$1\r\n1\r\n");
        assert_eq!(exec(&mut rig, client, &[]), "*0\r\n");
        assert_eq!(exec(&mut rig, client, &["PING"]), "*1\r\n+PONG\r\n");
        // Changes that may be undone are not looked for among all keys.
        let all = exec(&mut rig, client, &["SET z 1", "KEYS *"]);
        assert!(
            all.contains("a question about all keys can't follow a change"),
            "{all}"
        );
        rig.check("EXISTS z", ":0\r\n");
        rig.check_on(client, "RESET", "+RESET\r\n");
        assert!(exec(&mut rig, client, &["INCR list", "SET e 1"]).starts_with("*2\r\n-WRONGTYPE"));
        rig.check("GET e", "$1\r\n1\r\n");
        assert!(rig.fronts.iter().all(|front| front.kernel.waiting() == 0));
    }
}

#[test]
fn watched_keys_and_waiting_clients_notice_nothing_of_what_is_undone() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let (client, other) = (rig.connect(0), rig.connect(workers - 1));
        rig.check("RPUSH wrong x", ":1\r\n");
        rig.check_on(client, "CLIENT ROLLBACK-ON-ERROR ON", "+OK\r\n");
        rig.check_on(other, "WATCH a", "+OK\r\n");
        let waiting = rig.connect(0);
        rig.send(waiting, b"BLPOP queue 0\r\n");
        assert_eq!(
            exec(
                &mut rig,
                client,
                &["SET a 1", "RPUSH queue 1", "INCR wrong"]
            ),
            WRONG
        );
        assert_eq!(exec(&mut rig, other, &["SET a 2"]), "*1\r\n+OK\r\n");
        assert_eq!(rig.take(waiting), "");
        assert_eq!(exec(&mut rig, client, &["RPUSH queue 2"]), "*1\r\n:1\r\n");
        assert_eq!(rig.take(waiting), "*2\r\n$5\r\nqueue\r\n$1\r\n2\r\n");
    }
}

#[test]
fn commit_is_undone_likewise_and_lattice_keys_are_refused() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        rig.run("KEYSPACE CREATE all PREFIX l: REGIME lattice");
        rig.check_on(client, "CLIENT ROLLBACK-ON-ERROR ON", "+OK\r\n");
        rig.check_on(client, "BEGIN", "+OK\r\n");
        rig.check_on(client, "SET a 1", "+OK\r\n");
        rig.check_on(client, "INCR b", ":1\r\n");
        rig.check("RPUSH b x", ":1\r\n");
        assert_eq!(rig.run_on(client, "COMMIT"), WRONG);
        let info = rig.run("INFO keyspaces");
        assert!(
            info.contains("transactions_committed:0\r\ntransactions_rolled_back:1\r\n"),
            "{info}"
        );
        rig.check("EXISTS a", ":0\r\n");
        let refused = exec(&mut rig, client, &["SET l:a 1", "SET a 1"]);
        let why = "-EXECABORT Transaction discarded because of: with CLIENT ROLLBACK-ON-ERROR ON, or a token, a transaction has keys of regime strict alone\r\n";
        assert_eq!(refused, why);
        rig.check("EXISTS a l:a", ":0\r\n");
    }
}

#[test]
fn databases_stay_selected_without_keys_too() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        rig.check_on(client, "CLIENT ROLLBACK-ON-ERROR ON", "+OK\r\n");
        let undone = exec(&mut rig, client, &["SELECT 5", "SELECT 99"]);
        assert_eq!(
            undone,
            "-EXECABORT Transaction discarded because of: DB index is out of range\r\n"
        );
        assert!(rig.run_on(client, "CLIENT INFO").contains(" db=0 "));
    }
}
