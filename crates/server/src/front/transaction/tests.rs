//! Transactions as clients see them, on one worker and on several.

use crate::front::testing::{Client, Rig};

mod begun;
mod bounds;
mod schedules;

const WORKERS: [usize; 3] = [1, 2, 4];
const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";

/// Sends inline requests and returns all replies.
fn all(rig: &mut Rig, client: Client, requests: &[&str]) -> String {
    let bytes: String = requests.iter().flat_map(|r| [r, "\r\n"]).collect();
    rig.send(client, bytes.as_bytes());
    rig.take(client)
}

/// The same without the replies to queued commands.
fn exec(rig: &mut Rig, client: Client, commands: &[&str]) -> String {
    let mut requests = vec!["MULTI"];
    requests.extend(commands);
    requests.push("EXEC");
    let replies = all(rig, client, &requests);
    let head = format!("+OK\r\n{}", "+QUEUED\r\n".repeat(commands.len()));
    replies
        .strip_prefix(&head)
        .unwrap_or_else(|| panic!("{replies}"))
        .to_owned()
}

#[test]
fn commands_run_in_order_at_exec() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let (client, other) = (rig.connect(0), rig.connect(workers - 1));
        for request in ["MULTI", "SET a 1", "SET b 2", "INCR a", "MGET a b c"] {
            rig.run_on(client, request);
        }
        rig.check_on(other, "MGET a b", "*2\r\n$-1\r\n$-1\r\n");
        rig.check_on(
            client,
            "EXEC",
            "*4\r\n+OK\r\n+OK\r\n:2\r\n*3\r\n$1\r\n2\r\n$1\r\n2\r\n$-1\r\n",
        );
        rig.check_on(other, "MGET a b", "*2\r\n$1\r\n2\r\n$1\r\n2\r\n");
        assert_eq!(exec(&mut rig, client, &[]), "*0\r\n");
        rig.check_on(client, "EXEC", "-ERR EXEC without MULTI\r\n");
        rig.check_on(client, "DISCARD", "-ERR DISCARD without MULTI\r\n");
    }
}

#[test]
fn errors_while_queueing_abort_and_errors_while_running_do_not() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        for wrong in ["NOSUCH x", "GET", "GET a b", "CLIENT NOSUCH", "SHUTDOWN"] {
            rig.check_on(client, "MULTI", "+OK\r\n");
            rig.check_on(client, "SET a 1", "+QUEUED\r\n");
            let refused = rig.run_on(client, wrong);
            assert!(refused.starts_with("-ERR "), "{wrong}: {refused}");
            rig.check_on(client, "SET b 1", "+QUEUED\r\n");
            rig.check_on(client, "EXEC", ABORTED);
            rig.check_on(client, "EXISTS a b", ":0\r\n");
        }
        let replies = exec(&mut rig, client, &["SET a x", "INCR a", "SET b y"]);
        let error = "-ERR value is not an integer or out of range\r\n";
        assert_eq!(replies, format!("*3\r\n+OK\r\n{error}+OK\r\n"));
        rig.check_on(client, "EXISTS a b", ":2\r\n");
    }
}

#[test]
fn multi_and_watch_are_refused_inside_and_do_no_harm() {
    let mut rig = Rig::new(2);
    let client = rig.connect(0);
    rig.check_on(client, "MULTI", "+OK\r\n");
    rig.check_on(client, "MULTI", "-ERR MULTI calls can not be nested\r\n");
    rig.check_on(
        client,
        "WATCH a",
        "-ERR WATCH inside MULTI is not allowed\r\n",
    );
    rig.check_on(client, "SET a 1", "+QUEUED\r\n");
    rig.check_on(client, "EXEC", "*1\r\n+OK\r\n");
    rig.check_on(client, "MULTI", "+OK\r\n");
    rig.check_on(
        client,
        "EXEC now",
        "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n",
    );
    rig.check_on(client, "EXEC", "-ERR EXEC without MULTI\r\n");
}

#[test]
fn what_is_discarded_is_forgotten() {
    for workers in WORKERS {
        for end in ["DISCARD", "RESET"] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(0);
            for key in ["a", "b", "c"] {
                rig.check_on(client, &format!("WATCH {key}"), "+OK\r\n");
            }
            rig.check_on(client, "MULTI", "+OK\r\n");
            rig.check_on(client, "SET a 1", "+QUEUED\r\n");
            let ended = rig.run_on(client, end);
            assert!(ended.starts_with('+'), "{ended}");
            rig.run("MSET a 2 b 2 c 2");
            assert_eq!(exec(&mut rig, client, &["GET a"]), "*1\r\n$1\r\n2\r\n");
            assert_unwatched(&rig);
        }
    }
}

fn assert_unwatched(rig: &Rig) {
    for front in &rig.fronts {
        assert_eq!(
            front.kernel.shard.observers().watches().watchers(),
            0,
            "watches were left behind"
        );
    }
}

#[test]
fn a_touched_key_has_exec_do_nothing() {
    let touches = [
        "SET k v",
        "DEL k",
        "APPEND k x",
        "EXPIRE k 100",
        "RENAME k other",
        "RENAME new k",
        "SETBIT k 6 1",
        "MSET x 1 k 2",
        "COPY new k REPLACE",
        "MOVE k 3",
        "FLUSHALL",
        "FLUSHDB",
        "SWAPDB 0 5",
        "GETDEL k",
        "INCR n",
        "BITOP NOT k new",
    ];
    for workers in WORKERS {
        for touch in touches {
            let mut rig = Rig::new(workers);
            let (client, other) = (rig.connect(0), rig.connect(workers - 1));
            rig.run("MSET k 1 new 2 n 3 x 4");
            for watch in ["WATCH k n", "WATCH x"] {
                rig.check_on(client, watch, "+OK\r\n");
            }
            rig.run_on(other, touch);
            assert_eq!(exec(&mut rig, client, &["SET x y"]), "*-1\r\n", "{touch}");
            assert_eq!(exec(&mut rig, client, &["PING"]), "*1\r\n+PONG\r\n");
            assert_unwatched(&rig);
        }
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        rig.run("MSET k 1 new 2");
        for quiet in [
            "GET k",
            "SET other 1",
            "DEL nosuch",
            "TTL k",
            "TOUCH k",
            "EXISTS k",
        ] {
            rig.check_on(client, "WATCH k gone", "+OK\r\n");
            rig.run(quiet);
            assert_eq!(
                exec(&mut rig, client, &["PING"]),
                "*1\r\n+PONG\r\n",
                "{quiet}"
            );
        }
        rig.run_on(client, "HELLO 3");
        rig.check_on(client, "WATCH k", "+OK\r\n");
        rig.run("SET k 5");
        assert_eq!(exec(&mut rig, client, &["PING"]), "_\r\n");
    }
}

#[test]
fn watches_belong_to_a_database_and_end_with_exec_unwatch_and_the_connection() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        rig.check_on(client, "WATCH k", "+OK\r\n");
        rig.check_on(client, "SELECT 1", "+OK\r\n");
        rig.check_on(client, "SET k v", "+OK\r\n");
        assert_eq!(exec(&mut rig, client, &["PING"]), "*1\r\n+PONG\r\n");
        rig.check_on(client, "WATCH k", "+OK\r\n");
        rig.run("SET k v");
        assert_eq!(exec(&mut rig, client, &["PING"]), "*1\r\n+PONG\r\n");
        rig.check_on(client, "WATCH k l m", "+OK\r\n");
        rig.check_on(client, "SET k v", "+OK\r\n");
        rig.check_on(client, "UNWATCH", "+OK\r\n");
        assert_unwatched(&rig);
        assert_eq!(exec(&mut rig, client, &["UNWATCH"]), "*1\r\n+OK\r\n");
        rig.check_on(client, "WATCH k l m", "+OK\r\n");
        rig.disconnect(client);
        assert_unwatched(&rig);
    }
}

#[test]
fn expired_keys() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        // It expires after WATCH, whichever worker notices.
        for _ in 0..2 {
            rig.run("SET k v PX 10");
            rig.check_on(client, "WATCH k", "+OK\r\n");
            rig.now.unix_us += 20_000;
            assert_eq!(exec(&mut rig, client, &["SET x 1"]), "*-1\r\n");
        }
        // It had expired before WATCH, and was not removed yet.
        rig.run("SET k v PX 10");
        rig.now.unix_us += 20_000;
        rig.check_on(client, "WATCH k", "+OK\r\n");
        assert_eq!(exec(&mut rig, client, &["SET x 1"]), "*1\r\n+OK\r\n");
    }
}

#[test]
fn commands_on_connection_and_server_run_in_their_place() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(workers - 1);
        let commands = [
            "SET a 0",
            "SELECT 1",
            "SET a 1",
            "ECHO x",
            "CLIENT SETNAME me",
            "CLIENT GETNAME",
            "SELECT 99",
            "CONFIG GET maxclients",
            "GET a",
            "SELECT 0",
            "GET a",
            "MOVE a 2",
            "OBJECT ENCODING a",
        ];
        assert_eq!(
            exec(&mut rig, client, &commands),
            "*13\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\nx\r\n+OK\r\n$2\r\nme\r\n-ERR DB index is out of range\r\n*2\r\n$10\r\nmaxclients\r\n$5\r\n10000\r\n$1\r\n1\r\n+OK\r\n$1\r\n0\r\n:1\r\n$-1\r\n"
        );
        let asked = exec(
            &mut rig,
            client,
            &["SET b 1", "CLIENT LIST", "INFO keyspace", "INCR b"],
        );
        assert!(
            asked.contains(" name=me ") && asked.ends_with("\r\n:2\r\n"),
            "{asked}"
        );
        let set = exec(&mut rig, client, &["CONFIG SET maxclients 77", "SET b 9"]);
        assert_eq!(set, "*2\r\n+OK\r\n+OK\r\n");
        rig.check(
            "CONFIG GET maxclients",
            "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n",
        );
        let refused = exec(&mut rig, client, &["MONITOR", "PING"]);
        assert_eq!(
            refused,
            "*2\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n+PONG\r\n"
        );
        let switched = exec(&mut rig, client, &["GET nosuch", "HELLO 3", "GET nosuch"]);
        assert!(switched.starts_with("*3\r\n$-1\r\n%"), "{switched}");
        assert!(switched.ends_with("_\r\n"), "{switched}");
    }
}

#[test]
fn whole_databases() {
    for workers in WORKERS {
        for here in [0, workers - 1] {
            let mut rig = Rig::new(workers);
            let client = rig.connect(here);
            rig.run("MSET a 1 b 2 c 3 d 4 e 5 f 6");
            let flushed = exec(
                &mut rig,
                client,
                &["SET a 9", "FLUSHALL", "GET a", "SET b 7", "GET c"],
            );
            assert_eq!(flushed, "*5\r\n+OK\r\n+OK\r\n$-1\r\n+OK\r\n$-1\r\n");
            rig.check("DBSIZE", ":1\r\n");
            rig.check("GET b", "$1\r\n7\r\n");
            rig.run("MSET a 1 b 2 c 3 d 4");
            let swapped = exec(
                &mut rig,
                client,
                &[
                    "SET a 10",
                    "SWAPDB 0 1",
                    "GET a",
                    "SET b 20",
                    "SELECT 1",
                    "GET a",
                    "APPEND c x",
                    "SWAPDB 1 2",
                    "GET a",
                    "SELECT 2",
                    "GET c",
                    "FLUSHDB",
                    "SET d y",
                ],
            );
            assert_eq!(
                swapped,
                "*13\r\n+OK\r\n+OK\r\n$-1\r\n+OK\r\n+OK\r\n$2\r\n10\r\n:2\r\n+OK\r\n$-1\r\n+OK\r\n$2\r\n3x\r\n+OK\r\n+OK\r\n"
            );
            rig.check("KEYS *", "*1\r\n$1\r\nb\r\n");
            rig.run("SELECT 1");
            rig.check("DBSIZE", ":0\r\n");
            rig.run("SELECT 2");
            rig.check("KEYS *", "*1\r\n$1\r\nd\r\n");
        }
    }
}

#[test]
fn questions_about_all_keys() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        rig.run("MSET a 1 b 2 c 3");
        let asked = exec(&mut rig, client, &["GET a", "DBSIZE", "KEYS a*"]);
        assert_eq!(asked, "*3\r\n$1\r\n1\r\n:3\r\n*1\r\n$1\r\na\r\n");
        let asked = exec(
            &mut rig,
            client,
            &["SET a 2", "SET d 1", "DEL b c", "DBSIZE", "KEYS d"],
        );
        if workers == 1 {
            assert_eq!(asked, "*5\r\n+OK\r\n+OK\r\n:2\r\n:2\r\n*1\r\n$1\r\nd\r\n");
        } else {
            assert!(asked.starts_with("*5\r\n+OK\r\n+OK\r\n:2\r\n"), "{asked}");
            assert!(asked.contains("\r\n:2\r\n:2\r\n-ERR a question about all keys"));
        }
    }
}

#[test]
fn replies_that_are_not_wanted() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        let none = all(
            &mut rig,
            client,
            &[
                "CLIENT REPLY OFF",
                "MULTI",
                "SET a 1",
                "SET b 1",
                "SET c 1",
                "EXEC",
            ],
        );
        assert_eq!(none, "");
        rig.check_on(client, "CLIENT REPLY ON", "+OK\r\n");
        rig.check_on(client, "EXISTS a b c", ":3\r\n");
        let skipped = all(
            &mut rig,
            client,
            &[
                "MULTI",
                "DEL a b",
                "CLIENT REPLY ON",
                "CLIENT REPLY SKIP",
                "EXEC",
                "PING",
                "PING",
            ],
        );
        assert_eq!(
            skipped,
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:2\r\n+OK\r\n+OK\r\n+PONG\r\n"
        );
    }
}

#[test]
fn a_pause_of_writes_holds_back_exec_with_writes() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let (reader, writer) = (rig.connect(0), rig.connect(workers - 1));
        for client in [reader, writer] {
            rig.check_on(client, "MULTI", "+OK\r\n");
        }
        rig.check_on(reader, "GET a", "+QUEUED\r\n");
        rig.check_on(writer, "SET a 1", "+QUEUED\r\n");
        rig.check("CLIENT PAUSE 1000 WRITE", "+OK\r\n");
        rig.check_on(reader, "EXEC", "*1\r\n$-1\r\n");
        rig.check_on(writer, "EXEC", "");
        rig.check("CLIENT UNPAUSE", "+OK\r\n");
        rig.advance_ms(200);
        assert_eq!(rig.take(writer), "*1\r\n+OK\r\n");
        let paused = exec(
            &mut rig,
            writer,
            &["SET a 2", "CLIENT PAUSE 500 WRITE", "SET b 2", "SET c 2"],
        );
        assert_eq!(paused, "*4\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
        rig.check_on(writer, "SET b 3", "");
        rig.advance_ms(700);
        assert_eq!(rig.take(writer), "+OK\r\n");
    }
}

#[test]
fn monitors_see_commands_when_they_run() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let (monitor, client) = (rig.connect(0), rig.connect(workers - 1));
        rig.check_on(monitor, "MONITOR", "+OK\r\n");
        rig.run_on(client, "MULTI");
        for key in ["a", "b", "c"] {
            rig.run_on(client, &format!("SET {key} 1"));
        }
        assert_eq!(rig.take(monitor).matches("\r\n").count(), 1);
        rig.run_on(client, "EXEC");
        let shown = rig.take(monitor);
        let places: Vec<_> = ["\"a\"", "\"b\"", "\"c\"", "\"exec\""]
            .map(|word| shown.find(word))
            .into();
        assert!(places.is_sorted() && places[0].is_some(), "{shown}");
        for request in ["MULTI", "NOSUCH", "EXEC"] {
            rig.run_on(client, request);
        }
        let shown = rig.take(monitor);
        assert!(shown.ends_with("\"exec\"\r\n"), "{shown}");
    }
}

#[test]
fn what_is_queued_and_watched_can_be_seen() {
    let mut rig = Rig::new(3);
    let client = rig.connect(0);
    assert!(
        rig.run_on(client, "CLIENT INFO")
            .contains(" multi=-1 watch=0 ")
    );
    rig.run_on(client, "WATCH a b a");
    rig.run_on(client, "WATCH b c");
    rig.run_on(client, "MULTI");
    rig.run_on(client, "GET a");
    rig.run_on(client, "GET b");
    let list = rig.run("CLIENT LIST");
    assert!(
        list.contains(" multi=2 watch=3 ") && list.contains(" flags=x "),
        "{list}"
    );
    let info = rig.run("INFO clients");
    assert!(
        info.contains("watching_clients:1\r\ntotal_watched_keys:3\r\n"),
        "{info}"
    );
}

#[test]
fn the_number_of_keys_follows_the_transaction() {
    for workers in WORKERS {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        rig.run("MSET a 1 b 2 c 3 d 4");
        let commands = [
            "DEL a b",
            "SET e 1",
            "SET c 1",
            "DBSIZE",
            "SWAPDB 0 1",
            "DBSIZE",
            "SELECT 1",
            "DBSIZE",
            "MOVE c 0",
            "DBSIZE",
            "FLUSHDB",
            "SET z 1",
            "DBSIZE",
            "SELECT 0",
            "DBSIZE",
            "FLUSHALL",
            "DBSIZE",
        ];
        let counted = exec(&mut rig, client, &commands);
        let counts: Vec<_> = counted.lines().filter(|l| l.starts_with(':')).collect();
        assert_eq!(
            counts.join(" "),
            ":2 :3 :0 :3 :1 :2 :1 :1 :0",
            "{workers} workers: {counted}"
        );
        rig.check("DBSIZE", ":0\r\n");
    }
}
