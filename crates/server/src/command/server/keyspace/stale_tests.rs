//! Requests that are on their way while the keyspaces change.

use crate::front::testing::{Client, Rig};
use rufous_base::rng::Rng;

fn send(rig: &mut Rig, client: Client, request: &str) {
    let words: Vec<_> = request.split(' ').collect();
    let mut bytes = Vec::new();
    rufous_resp::encode::request(&mut bytes, &words);
    rig.send_only(client, &bytes);
}

/// A key whose primary is this worker.
fn key_of(rig: &Rig, worker: usize) -> String {
    let placement = rig.fronts[0].kernel.placement();
    let mut keys = (0..).map(|n| format!("cart:{n}"));
    keys.find(|key| placement.primary(key.as_bytes()).index() == worker)
        .unwrap_or_default()
}

#[test]
fn what_the_new_keyspace_refuses_is_refused_where_it_has_come() {
    let mut rig = Rig::new(2);
    let clients = [rig.connect(0), rig.connect(1)];
    let key = key_of(&rig, 0);
    rig.run(&format!("SET {key} x"));
    // The one lies in the ring to worker 0 when that is held already, the other
    // waits at its own worker.
    send(&mut rig, clients[1], &format!("SETNX {key} y"));
    send(
        &mut rig,
        clients[0],
        "KEYSPACE CREATE carts PREFIX cart: REGIME lattice",
    );
    let own = rig.connect(0);
    send(&mut rig, own, &format!("APPEND {key} y"));
    send(&mut rig, own, &format!("GET {key}"));
    rig.settle();
    assert_eq!(rig.take(clients[0]), "+OK\r\n");
    let refused = rig.take(clients[1]);
    assert!(refused.starts_with("-ERR 'setnx' cannot be"), "{refused}");
    let refused = rig.take(own);
    assert!(refused.starts_with("-ERR 'append' cannot be"), "{refused}");
    assert!(refused.ends_with("\r\n$1\r\nx\r\n"), "{refused}");
}

#[test]
fn what_waits_at_its_own_worker_goes_where_its_keys_are_now() {
    for request in ["one", "several", "transaction", "watched"] {
        let mut rig = Rig::new(2);
        rig.run("KEYSPACE CREATE carts PREFIX cart: REGIME lattice");
        let (theirs, own) = (key_of(&rig, 0), key_of(&rig, 1));
        let clients = [rig.connect(0), rig.connect(1)];
        if request == "watched" {
            rig.run_on(clients[1], "WATCH strict");
        }
        if request == "transaction" || request == "watched" {
            rig.run_on(clients[1], "MULTI");
            rig.run_on(clients[1], &format!("SET {theirs} v"));
            rig.run_on(clients[1], &format!("SET {own} v"));
        }
        send(&mut rig, clients[0], "KEYSPACE DROP carts");
        assert!(rig.deliver_one(), "worker 1 is asked to hold everything");
        match request {
            "one" => send(&mut rig, clients[1], &format!("SET {theirs} v")),
            "several" => send(&mut rig, clients[1], &format!("MSET {theirs} v {own} v")),
            _ => send(&mut rig, clients[1], "EXEC"),
        }
        send(&mut rig, clients[1], &format!("GET {theirs}"));
        rig.settle();
        rig.advance_ms(1_000);
        assert_eq!(rig.take(clients[0]), "+OK\r\n");
        let reply = rig.take(clients[1]);
        assert!(reply.ends_with("+OK\r\n$1\r\nv\r\n"), "{request}: {reply}");
        for client in clients {
            rig.check_on(client, &format!("GET {theirs}"), "$1\r\nv\r\n");
        }
        let primary = &mut rig.fronts[1].kernel.shard;
        let name = primary.key(theirs.as_bytes());
        assert!(!primary.contains(0, name, rig.now), "a stray copy");
        rig.check("DBSIZE", if request == "one" { ":1\r\n" } else { ":2\r\n" });
    }
}

#[test]
fn once_a_change_has_its_reply_every_worker_goes_by_it() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(3);
        let key = key_of(&rig, 0);
        let (far, near) = (rig.connect(2), rig.connect(0));
        let carts = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice";
        send(&mut rig, near, carts);
        while rig.take(near) != "+OK\r\n" {
            assert!(rig.deliver_any(&mut rng), "there is a reply");
        }
        send(&mut rig, far, &format!("SADD {key} v"));
        rig.settle();
        assert_eq!(rig.take(far), ":1\r\n", "seed {seed}");
    }
}

#[test]
fn what_comes_to_a_worker_that_has_the_key_no_more_is_not_done() {
    let mut refused = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(4);
        rig.run("KEYSPACE CREATE carts PREFIX cart: REGIME lattice THREADS 2");
        let key = key_of(&rig, 0);
        let (far, near) = (rig.connect(3), rig.connect(0));
        send(&mut rig, near, "KEYSPACE DROP carts");
        for _ in 0..rng.below(6) {
            rig.deliver_any(&mut rng);
        }
        send(&mut rig, far, &format!("SET {key} v"));
        while rig.deliver_any(&mut rng) {}
        rig.advance_ms(1_000);
        assert_eq!(rig.take(near), "+OK\r\n");
        let reply = rig.take(far);
        let shown = match reply.starts_with('-') {
            true => {
                let why = "-ERR 'set' was on its way while the keyspaces were changed";
                assert!(reply.starts_with(why), "{reply}");
                refused += 1;
                "$-1\r\n"
            }
            false => "$1\r\nv\r\n",
        };
        for worker in 0..4 {
            let client = rig.connect(worker);
            rig.check_on(client, &format!("GET {key}"), shown);
        }
        rig.check(
            "DBSIZE",
            if shown == "$-1\r\n" {
                ":0\r\n"
            } else {
                ":1\r\n"
            },
        );
    }
    assert!((1..60).contains(&refused), "{refused}");
}

#[test]
fn who_watches_a_key_that_becomes_a_lattice_key_is_not_let_through() {
    for workers in [1, 2, 3] {
        let mut rig = Rig::new(workers);
        for worker in 0..workers {
            let key = key_of(&rig, worker);
            rig.run(&format!("WATCH {key}"));
            rig.check(
                "KEYSPACE CREATE carts PREFIX cart: REGIME lattice",
                "+OK\r\n",
            );
            rig.run("MULTI");
            rig.run(&format!("SET {key} v"));
            rig.run("SET strict v");
            rig.check("EXEC", "*-1\r\n");
            rig.check("KEYSPACE DROP carts", "+OK\r\n");
        }
    }
}

/// While a table is adopted by one worker after another, lists have all keys that stay, or are refused.
#[test]
fn no_key_is_missing_from_a_list_while_keyspaces_change() {
    let mut refused = 0;
    for seed in 0..90 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(3);
        for n in 0..12 {
            rig.run(&format!("SET cart:{n} v"));
        }
        let carts = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice THREADS";
        let changes = [
            format!("{carts} all"),
            format!("{carts} 2"),
            "KEYSPACE DROP carts".into(),
        ];
        let change = &changes[seed as usize % 3];
        if seed % 3 == 2 {
            rig.run(&format!(
                "{carts} {}",
                if rng.below(2) == 0 { "all" } else { "1" }
            ));
        }
        let (far, near) = (rig.connect(2), rig.connect(0));
        send(&mut rig, near, change);
        for _ in 0..rng.below(8) {
            rig.deliver_any(&mut rng);
        }
        let lists = [
            ("DBSIZE", ":12\r\n"),
            ("KEYS cart:5", "*1\r\n"),
            ("KEYS *", "*12\r\n"),
        ];
        let (request, shown) = lists[rng.below(3) as usize];
        send(&mut rig, far, request);
        while rig.deliver_any(&mut rng) {}
        rig.advance_ms(1_000);
        assert_eq!(rig.take(near), "+OK\r\n");
        let reply = rig.take(far);
        if reply.starts_with("-TRYAGAIN The keyspaces") {
            refused += 1;
        } else {
            assert!(reply.starts_with(shown), "{seed} {request}: {reply}");
        }
    }
    assert!((1..90).contains(&refused), "{refused}");
}

/// A write waits while the table is adopted. A list behind it in the pipeline does not overtake it.
#[test]
fn lists_have_the_writes_before_them_in_the_pipeline() {
    let mut answered = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut rig = Rig::new(3);
        let key = key_of(&rig, 1);
        let (far, near) = (rig.connect(2), rig.connect(0));
        let carts = "KEYSPACE CREATE carts PREFIX cart: REGIME lattice THREADS";
        send(&mut rig, near, &format!("{carts} {}", 1 + rng.below(3)));
        for _ in 0..rng.below(8) {
            rig.deliver_any(&mut rng);
        }
        send(&mut rig, far, &format!("SADD {key} v"));
        send(&mut rig, far, "DBSIZE");
        while rig.deliver_any(&mut rng) {}
        rig.advance_ms(1_000);
        let reply = rig.take(far);
        let is_refused = reply.contains("send it again");
        assert!(reply == ":1\r\n:1\r\n" || is_refused, "{seed}: {reply}");
        answered += usize::from(!is_refused);
    }
    assert!(answered > 0);
}
