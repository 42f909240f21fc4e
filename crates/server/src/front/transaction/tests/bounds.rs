//! Limits of transactions, and that they leave nothing behind.

use super::{ABORTED, all, assert_unwatched, exec};
use crate::config::Config;
use crate::front::testing::Rig;
use rufous_base::rng::Rng;

#[test]
fn queues_are_bounded() {
    let config = Config {
        client_query_buffer_limit: 1 << 20,
        ..Config::in_memory()
    };
    let mut rig = Rig::with_config(2, config);
    let client = rig.connect(0);
    rig.check_on(client, "MULTI", "+OK\r\n");
    rig.send(client, &b"SET key value\r\n".repeat(30_000));
    let replies = rig.take(client);
    assert!(replies.contains("-ERR the transaction is larger than"));
    assert_eq!(replies.matches("\r\n").count(), 30_000);
    assert!(rig.run_on(client, "CLIENT INFO").contains("+QUEUED"));
    rig.check_on(client, "EXEC", ABORTED);
    rig.check_on(client, "EXISTS key", ":0\r\n");
    let long = "k".repeat(300_000);
    for _ in 0..3 {
        rig.check_on(client, &format!("WATCH {long}"), "+OK\r\n");
    }
    let refused = rig.run_on(client, &format!("WATCH {long}1 {long}2 {long}3 {long}4"));
    assert!(refused.starts_with("-ERR the watched keys"), "{refused}");
}

#[test]
fn large_values_and_many_commands() {
    for workers in [1, 3] {
        let mut rig = Rig::new(workers);
        let client = rig.connect(0);
        let large = vec![b'x'; 300_000];
        rig.run_words(&[b"SET", b"big", &large]);
        rig.run_words(&[b"MULTI"]);
        rig.run_words(&[b"SET", b"other", &large]);
        rig.run_words(&[b"APPEND", b"big", b"y"]);
        assert_eq!(rig.run("EXEC"), "*2\r\n+OK\r\n:300001\r\n");
        rig.check("STRLEN other", ":300000\r\n");
        let commands: Vec<_> = (0..20_000).map(|i| format!("INCR k{}", i % 100)).collect();
        let commands: Vec<_> = commands.iter().map(String::as_str).collect();
        let replies = exec(&mut rig, client, &commands);
        assert!(replies.starts_with("*20000\r\n:1\r\n"));
        assert!(replies.ends_with(":200\r\n"));
    }
}

#[test]
fn a_client_that_goes_away_leaves_nothing_held() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(3);
        let client = rig.connect(0);
        all(
            &mut rig,
            client,
            &[
                "WATCH a b c d",
                "MULTI",
                "SET a 1",
                "SET b 1",
                "SELECT 2",
                "CLIENT LIST",
                "SET c 1",
                "SET d 1",
            ],
        );
        rig.send_only(client, b"EXEC\r\n");
        for _ in 0..rng.below(8) {
            rig.deliver_any(&mut rng);
        }
        rig.disconnect(client);
        rig.check("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
        rig.run("SELECT 2");
        rig.check("MGET c d", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
        assert_unwatched(&rig);
        assert!(rig.fronts.iter().all(|f| f.kernel.waiting() == 0));
    }
}

#[test]
fn without_memory_nothing_that_takes_more_is_queued_or_run() {
    for workers in [1, 3] {
        let config = Config {
            maxmemory: 200_000,
            ..Config::in_memory()
        };
        let mut rig = Rig::with_config(workers, config);
        let (early, late) = (rig.connect(0), rig.connect(0));
        rig.check_on(early, "MULTI", "+OK\r\n");
        rig.check_on(early, "SET early 1", "+QUEUED\r\n");
        let value = "v".repeat(2000);
        let full = (0..10_000).any(|i| rig.run(&format!("SET k{i} {value}")).starts_with("-OOM"));
        assert!(full, "the limit is never met");
        rig.advance_ms(500);
        let refused = rig.run_on(early, "EXEC");
        let text = "-EXECABORT Transaction discarded because of: OOM ";
        assert!(refused.starts_with(text), "{refused}");
        assert_eq!(exec(&mut rig, late, &["GET early"]), "*1\r\n$-1\r\n");
        rig.check_on(late, "MULTI", "+OK\r\n");
        assert!(rig.run_on(late, "SET late 1").starts_with("-OOM "));
        rig.check_on(late, "EXEC", ABORTED);
        let freed = exec(&mut rig, late, &["DEL k1", "GET late"]);
        assert_eq!(freed, "*2\r\n:1\r\n$-1\r\n");
    }
}
