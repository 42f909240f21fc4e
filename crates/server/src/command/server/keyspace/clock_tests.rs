//! Deadlines of lattice keys at two workers, and clocks that jump.

use crate::front::testing::{Client, Rig};

fn carts() -> (Rig, Client, Client) {
    let mut rig = Rig::new(2);
    let create = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice THREADS all";
    rig.check(create, "+OK\r\n");
    let (a, b) = (rig.connect(0), rig.connect(1));
    (rig, a, b)
}

#[test]
fn a_write_is_not_undone_by_expire_at_a_worker_that_shows_the_old_value() {
    let (mut rig, a, b) = carts();
    for n in 0..60 {
        rig.check_on(a, "SET cart:k old", "+OK\r\n");
        rig.advance_ms(300);
        rig.check_on(a, &format!("SET cart:k new{n:02}"), "+OK\r\n");
        rig.check_on(b, "GET cart:k", "$3\r\nold\r\n");
        let (request, ttl) = [
            ("EXPIRE cart:k 100", ":100\r\n"),
            ("PERSIST cart:k", ":-1\r\n"),
        ][n % 2];
        rig.run_on(b, request);
        rig.advance_ms(300);
        for client in [a, b] {
            rig.check_on(client, "GET cart:k", &format!("$5\r\nnew{n:02}\r\n"));
            rig.check_on(client, "TTL cart:k", ttl);
        }
    }
}

#[test]
fn increments_each_followed_by_expire_elsewhere_all_count() {
    let (mut rig, a, b) = carts();
    rig.check_on(a, "INCR cart:n", ":1\r\n");
    rig.advance_ms(300);
    for n in 2..=1000 {
        rig.check_on(a, "INCR cart:n", &format!(":{n}\r\n"));
        rig.check_on(b, "EXPIRE cart:n 100", ":1\r\n");
        rig.advance_ms(3);
    }
    rig.advance_ms(300);
    for client in [a, b] {
        rig.check_on(client, "GET cart:n", "$4\r\n1000\r\n");
    }
}

fn is_refused(rig: &mut Rig, client: Client, why: &str) {
    for request in [
        "SET cart:k v",
        "HSET cart:h f v",
        "INCR cart:n",
        "EXPIRE cart:old 5",
        "DEL cart:old",
    ] {
        let reply = rig.run_on(client, request);
        assert!(
            reply.starts_with("-CLOCKAHEAD lattice keys are not written: "),
            "{reply}"
        );
        assert!(reply.contains(why), "{reply}");
    }
    rig.check_on(client, "GET cart:old", "$1\r\nx\r\n");
    rig.check_on(client, "SET strict v", "+OK\r\n");
    let info = rig.run_on(client, "INFO keyspaces");
    assert!(!info.contains("replica_clock_refused:0\r\n"), "{info}");
}

#[test]
fn a_wall_clock_that_was_ahead_leaves_nothing_behind() {
    // By minutes, and in another age.
    let another_age = 140 * 365 * 86_400;
    for (ahead_s, why) in [
        (600, "has jumped ahead by"),
        (another_age, "beyond the year 2099"),
    ] {
        let (mut rig, a, b) = carts();
        rig.check_on(a, "SET cart:old x", "+OK\r\n");
        rig.advance_ms(300);
        rig.jump_s(ahead_s);
        is_refused(&mut rig, b, why);
        rig.advance_ms(20_000);
        is_refused(&mut rig, a, why);
        rig.jump_s(-ahead_s);
        rig.advance_ms(300);
        for (key, seconds) in [("cart:long", 60), ("cart:short", 2)] {
            rig.check_on(a, &format!("HSET {key} f v"), ":1\r\n");
            rig.check_on(a, &format!("EXPIRE {key} {seconds}"), ":1\r\n");
        }
        rig.advance_ms(1_500);
        rig.check_on(b, "EXISTS cart:long cart:short", ":2\r\n");
        rig.advance_ms(1_000);
        for client in [a, b] {
            rig.check_on(client, "EXISTS cart:short", ":0\r\n");
            rig.check_on(client, "EXISTS cart:long", ":1\r\n");
        }
        rig.advance_ms(58_000);
        rig.check_on(b, "EXISTS cart:long", ":0\r\n");
        rig.check_on(b, "SET cart:old y", "+OK\r\n");
        rig.advance_ms(300);
        rig.check_on(a, "GET cart:old", "$1\r\ny\r\n");
        rig.check_on(a, "DEL cart:old", ":1\r\n");
        rig.advance_ms(300);
        rig.check_on(b, "GET cart:old", "$-1\r\n");
    }
}

#[test]
fn keys_do_not_expire_by_a_wall_clock_that_was_ahead() {
    let (mut rig, a, b) = carts();
    rig.check_on(a, "SET cart:text v EX 3600", "+OK\r\n");
    for (write, key) in [
        ("INCR cart:n", "cart:n"),
        ("SADD cart:set v", "cart:set"),
        ("HSET cart:hash f v", "cart:hash"),
    ] {
        rig.check_on(a, write, ":1\r\n");
        rig.check_on(a, &format!("EXPIRE {key} 3600"), ":1\r\n");
    }
    rig.check_on(a, "SET strict v EX 3600", "+OK\r\n");
    rig.advance_ms(1_000);
    let all = "EXISTS cart:text cart:n cart:set cart:hash";
    let half_a_day = 43_200;
    rig.jump_s(half_a_day);
    for _ in 0..20 {
        rig.check_on(b, all, ":4\r\n");
        rig.check_on(a, "TTL strict", ":-2\r\n");
        rig.advance_ms(250);
    }
    rig.check_on(b, "TTL cart:set", ":3594\r\n");
    rig.jump_s(-half_a_day);
    for client in [a, b] {
        rig.check_on(client, all, ":4\r\n");
        rig.advance_ms(300);
    }
    rig.check_on(b, "INCR cart:n", ":2\r\n");
    rig.advance_ms(300);
    rig.check_on(a, "GET cart:n", "$1\r\n2\r\n");
    rig.advance_ms(3_600_000);
    rig.check_on(a, all, ":0\r\n");
}

#[test]
fn deadlines_count_from_stamps_that_lead_the_wall_clock() {
    let (mut rig, a, b) = carts();
    rig.check_on(a, "SET cart:old x", "+OK\r\n");
    rig.advance_ms(300);
    // Stamps follow a small step, which is taken back.
    rig.jump_s(8);
    rig.check_on(a, "SET cart:k v", "+OK\r\n");
    rig.advance_ms(300);
    rig.jump_s(-8);
    for (key, seconds) in [("cart:long", 20), ("cart:short", 2)] {
        rig.check_on(a, &format!("HSET {key} f v"), ":1\r\n");
        rig.check_on(a, &format!("EXPIRE {key} {seconds}"), ":1\r\n");
        rig.check_on(a, &format!("TTL {key}"), &format!(":{seconds}\r\n"));
        rig.check_on(a, &format!("HSET {key} g v"), ":1\r\n");
    }
    rig.check_on(a, "SET cart:text v EX 2", "+OK\r\n");
    rig.advance_ms(1_000);
    rig.check_on(b, "EXISTS cart:long cart:short cart:text", ":3\r\n");
    rig.advance_ms(10_000);
    for client in [a, b] {
        rig.check_on(client, "EXISTS cart:short cart:text", ":0\r\n");
        rig.check_on(client, "EXISTS cart:long", ":1\r\n");
    }
    rig.advance_ms(18_000);
    rig.check_on(b, "EXISTS cart:long", ":0\r\n");
}

#[test]
fn a_clock_that_stays_ahead_is_followed_and_refuses_writes_when_it_is_put_right() {
    let (mut rig, a, b) = carts();
    rig.check_on(a, "SET cart:old x", "+OK\r\n");
    rig.advance_ms(300);
    rig.jump_s(600);
    for client in [a, b] {
        is_refused(&mut rig, client, "has jumped ahead");
    }
    rig.advance_ms(61_000);
    rig.check_on(a, "SET cart:k v EX 60", "+OK\r\n");
    rig.advance_ms(300);
    rig.jump_s(-600);
    is_refused(&mut rig, a, "earlier writes have stamps that lead");
    rig.check_on(b, "GET cart:k", "$1\r\nv\r\n");
    rig.advance_ms(595_000);
    rig.check_on(a, "SET cart:old y", "+OK\r\n");
    rig.advance_ms(70_000);
    rig.check_on(b, "GET cart:k", "$-1\r\n");
}

/// `EXEC` of these commands, after `MULTI`.
fn exec(rig: &mut Rig, client: Client, commands: &[&str]) -> String {
    rig.check_on(client, "MULTI", "+OK\r\n");
    for command in commands {
        rig.check_on(client, command, "+QUEUED\r\n");
    }
    rig.run_on(client, "EXEC")
}

#[test]
fn a_transaction_that_writes_lattice_keys_is_refused_whole_while_clocks_lead() {
    let (mut rig, a, b) = carts();
    rig.check_on(a, "SET cart:old x", "+OK\r\n");
    rig.advance_ms(300);
    rig.jump_s(600);
    // Keys of both workers, and of each alone.
    for client in [a, b] {
        for strict in ["strict", "other", "k3"] {
            let set = format!("SET {strict} v");
            let reply = exec(&mut rig, client, &[&set, "SET cart:k v", "GET cart:old"]);
            assert!(
                reply.starts_with("-EXECABORT Transaction discarded because of: CLOCKAHEAD "),
                "{reply}"
            );
            assert!(
                reply.contains("lattice keys are not written: the wall clock"),
                "{reply}"
            );
            rig.check_on(client, &format!("EXISTS {strict} cart:k"), ":0\r\n");
        }
        // It writes no lattice key.
        let reply = exec(
            &mut rig,
            client,
            &["SET strict v", "GET cart:old", "DEL strict"],
        );
        assert_eq!(reply, "*3\r\n+OK\r\n$1\r\nx\r\n:1\r\n");
        let reply = exec(
            &mut rig,
            client,
            &["SADD set x", "SUNIONSTORE to set cart:none"],
        );
        assert_eq!(reply, "*2\r\n:1\r\n:1\r\n");
        rig.check_on(client, "DEL set to", ":2\r\n");
        // One command is not executed in part either.
        let reply = rig.run_on(client, "MSET strict v cart:k v");
        assert!(reply.starts_with("-CLOCKAHEAD "), "{reply}");
        rig.check_on(client, "EXISTS strict cart:k", ":0\r\n");
    }
    rig.jump_s(-600);
    let reply = exec(&mut rig, a, &["SET strict v", "SET cart:k v"]);
    assert_eq!(reply, "*2\r\n+OK\r\n+OK\r\n");
}

#[test]
fn a_commit_of_lattice_keys_is_refused_whole_while_clocks_lead() {
    let (mut rig, a, _) = carts();
    rig.check_on(a, "SET cart:old x", "+OK\r\n");
    rig.check_on(a, "BEGIN", "+OK\r\n");
    rig.check_on(a, "SET strict v", "+OK\r\n");
    rig.check_on(a, "SET cart:k v", "+OK\r\n");
    rig.jump_s(600);
    let reply = rig.run_on(a, "SET cart:old y");
    assert!(reply.starts_with("-CLOCKAHEAD "), "{reply}");
    let reply = rig.run_on(a, "COMMIT");
    assert!(
        reply.starts_with("-EXECABORT Transaction discarded because of: CLOCKAHEAD "),
        "{reply}"
    );
    rig.check_on(a, "EXISTS strict cart:k", ":0\r\n");
    // Of one whose writes are made at once each is judged by itself.
    rig.jump_s(-600);
    rig.check_on(a, "BEGIN read-uncommitted", "+OK\r\n");
    rig.check_on(a, "SET cart:k v", "+OK\r\n");
    rig.jump_s(600);
    let reply = rig.run_on(a, "SET cart:k w");
    assert!(reply.starts_with("-CLOCKAHEAD "), "{reply}");
    rig.jump_s(-600);
    rig.check_on(a, "SET cart:old y", "+OK\r\n");
    rig.run_on(a, "COMMIT");
    rig.check_on(a, "MGET cart:k cart:old", "*2\r\n$1\r\nv\r\n$1\r\ny\r\n");
}
