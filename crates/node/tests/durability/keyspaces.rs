//! Lattice keyspaces on the real program: connections at different workers
//! take writes at once and come to agree; kill -9 loses nothing that was
//! acknowledged, however many workers start again; what is hostile is refused.

use crate::common::client::ok;
use crate::common::{Client, Reply};
use crate::node::{Node, folder};
use std::thread;

const ROUNDS: i64 = 2_000;

/// Clients at both workers.
#[track_caller]
fn at_each_worker(node: &Node) -> [Client; 2] {
    let (mut found, mut others) = ([None, None], Vec::new());
    while found.iter().any(Option::is_none) {
        let mut client = Client::connect(node.port);
        let worker = client.worker(2);
        // One too many is kept open, so that the next is given to the other worker.
        others.extend(found[worker].replace(client));
        assert!(others.len() < 1000, "connections are spread over workers");
    }
    found.map(|client| client.expect("found"))
}

/// What every replica must show in the end.
#[track_caller]
fn agree(node: &Node, sum: i64) {
    for mut client in at_each_worker(node) {
        let number = Reply::Bulk(sum.to_string().into_bytes());
        node.until("counters agree", || client.words("GET g:n") == number);
        node.until("sets agree", || {
            client.words("SCARD g:s") == Reply::Int(sum)
        });
        node.until("hashes agree", || {
            client.words("HGET g:h both") == number && client.words("HLEN g:h") == Reply::Int(3)
        });
    }
}

/// Both workers write the same keys, each reply read before the next request.
#[track_caller]
fn write(node: &Node, from: i64) {
    let writers = at_each_worker(node).into_iter().enumerate();
    let threads: Vec<_> = writers
        .map(|(worker, mut client)| {
            thread::spawn(move || {
                for n in from..from + ROUNDS {
                    assert!(client.words("INCR g:n").int() > 0);
                    let added = client.words(&format!("SADD g:s {worker}:{n}"));
                    assert_eq!(added, Reply::Int(1));
                    client.words("HINCRBY g:h both 1").int();
                    client.words(&format!("HSET g:h of{worker} {n}")).int();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a writer");
    }
}

#[test]
fn replicas_agree_and_outlive_kills_with_any_number_of_workers() {
    let (_temporary, dir) = folder();
    let always = "--appendfsync always";
    let node = Node::start(&dir, always);
    let create = "KEYSPACE CREATE shared PREFIX g: REGIME lattice GOSSIP 20";
    let mut client = Client::connect(node.port);
    assert_eq!(client.words(create), ok());
    write(&node, 0);
    agree(&node, 2 * ROUNDS);
    write(&node, ROUNDS);
    // What was not sent yet to the other worker is in the log of the one.
    node.kill();
    for workers in [2, 3, 1] {
        let node = Node::start(&dir, &format!("{always} --workers {workers}"));
        let mut client = Client::connect(node.port);
        assert_eq!(
            client.words("KEYSPACE LIST").array(),
            [Reply::Bulk(b"shared".to_vec())]
        );
        let sum = 4 * ROUNDS;
        assert_eq!(client.words("GET g:n").bulk(), sum.to_string().into_bytes());
        assert_eq!(client.words("SCARD g:s"), Reply::Int(sum));
        assert_eq!(client.words("SET g:last x"), ok());
        assert_eq!(client.words("DEL g:last"), Reply::Int(1));
        assert_eq!(
            client.words("BGSAVE"),
            Reply::Status("Background saving started".into())
        );
        node.wait_until_saved();
        node.kill();
    }
    let node = Node::start(&dir, always);
    agree(&node, 4 * ROUNDS);
    assert_eq!(node.run("EXISTS g:last"), crate::audit::wire::Reply::Int(0));
}

/// Nothing that was deleted is remembered any more.
#[track_caller]
fn forget(node: &Node) {
    let mut client = Client::connect(node.port);
    node.until("deletions are forgotten", || {
        let info = client.words("INFO keyspaces").bulk();
        String::from_utf8_lossy(&info).contains("replica_graves_bytes:0\r")
    });
}

#[test]
fn counts_begun_anew_outlive_kills_with_any_number_of_workers() {
    let (_temporary, dir) = folder();
    let always = "--appendfsync always";
    let node = Node::start(&dir, always);
    let create = "KEYSPACE CREATE shared PREFIX g: REGIME lattice GOSSIP 20";
    let mut clients = at_each_worker(&node);
    assert_eq!(clients[0].words(create), ok());
    let count = |clients: &mut [Client], by: i64| {
        for client in clients {
            client.words(&format!("INCRBY g:n {by}")).int();
            client.words(&format!("HINCRBY g:h f {by}")).int();
            client.words(&format!("ZINCRBY g:z {by} m")).bulk();
        }
    };
    count(&mut clients, 5);
    assert_eq!(clients[0].words("PFADD g:p a"), Reply::Int(1));
    let all = |client: &mut Client, sum: i64| {
        let number = Reply::Bulk(sum.to_string().into_bytes());
        ["GET g:n", "HGET g:h f", "ZSCORE g:z m"]
            .iter()
            .all(|read| client.words(read) == number)
    };
    for client in &mut clients {
        node.until("counters agree", || all(client, 10));
        node.until("sketches agree", || {
            client.words("PFCOUNT g:p") == Reply::Int(1)
        });
    }
    // Each at another worker.
    assert_eq!(clients[1].words("DEL g:n g:p"), Reply::Int(2));
    assert_eq!(clients[0].words("HDEL g:h f"), Reply::Int(1));
    assert_eq!(clients[1].words("ZREM g:z m"), Reply::Int(1));
    forget(&node);
    count(&mut clients, 3);
    assert_eq!(clients[0].words("PFADD g:p b c"), Reply::Int(1));
    node.kill();
    let mut sum = 6;
    for workers in [2, 1, 3, 2] {
        let node = Node::start(&dir, &format!("{always} --workers {workers}"));
        let mut client = Client::connect(node.port);
        assert!(
            all(&mut client, sum),
            "{workers} workers: {:?}",
            client.words("GET g:n")
        );
        assert_eq!(client.words("PFCOUNT g:p"), Reply::Int(2));
        count(std::slice::from_mut(&mut client), 1);
        sum += 1;
        assert!(all(&mut client, sum));
        node.kill();
    }
}

#[test]
fn concurrent_values_and_tokens_outlive_kills() {
    let (_temporary, dir) = folder();
    let always = "--appendfsync always";
    let node = Node::start(&dir, always);
    let create = "KEYSPACE CREATE notes PREFIX note: REGIME lattice LEVEL causal CUT GOSSIP 20";
    let [mut a, mut b] = at_each_worker(&node);
    assert_eq!(a.words(create), ok());
    assert_eq!(a.words("SET note:1 one"), ok());
    assert_eq!(b.words("SET note:1 two"), ok());
    let request: [&[u8]; 4] = [b"CAUSAL.SET", b"note:2", b"", b"draft"];
    let token = a.run(&request).bulk();
    for n in 0..100 {
        a.words(&format!("INCR note:n{n}")).int();
        b.words(&format!("INCR note:n{n}")).int();
    }
    // Also what the other worker had not heard of yet.
    let session = a.words("SESSION TOKEN").bulk();
    node.kill();
    let node = Node::start(&dir, always);
    for mut client in at_each_worker(&node) {
        let request: [&[u8]; 3] = [b"SESSION", b"RESUME", &session];
        assert_eq!(client.run(&request), ok());
        let all = client.words("CAUSAL.GET note:1").array();
        let mut values: Vec<_> = all[1..].iter().map(|value| value.clone().bulk()).collect();
        values.sort();
        assert_eq!(values, [b"one", b"two"]);
        assert_eq!(client.words("GET note:n7").bulk(), b"2");
    }
    let [mut a, mut b] = at_each_worker(&node);
    // A client that has read nothing since, with what it had kept.
    let request: [&[u8]; 4] = [b"CAUSAL.SET", b"note:2", &token, b"final"];
    b.run(&request).bulk();
    node.until("the other has heard", || {
        let all = a.words("CAUSAL.GET note:2").array();
        all.len() == 2 && all[1] == Reply::Bulk(b"final".to_vec())
    });
    let hostile: [&[u8]; 4] = [b"", b"01", &[b'f'; 100_000], b"\xFF\0\r\n"];
    for token in &hostile[1..] {
        let request: [&[u8]; 4] = [b"CAUSAL.SET", b"note:2", token, b"x"];
        let reply = a.run(&request);
        assert!(reply.error().starts_with("ERR the token"));
    }
    let request: [&[u8]; 3] = [b"CAUSAL.DEL", b"note:2", b""];
    assert_eq!(a.run(&request), Reply::Int(0));
    node.kill();
}

#[test]
fn the_file_says_what_there_is_at_every_start() {
    let (_temporary, dir) = folder();
    let file = tempfile::NamedTempFile::new().expect("a file");
    let settings = format!("--config {}", file.path().display());
    let say = |regime: &str, gossip: u32| {
        let text = format!(
            "[[keyspace]]\nname = 'shared'\nprefix = 'g:'\nregime = '{regime}'\ngossip-ms = {gossip}\n"
        );
        std::fs::write(file.path(), text).expect("written");
    };
    let described = |node: &Node| {
        let all = Client::connect(node.port).words("KEYSPACE DESCRIBE shared");
        let all = all.array().into_iter().map(|part| part.bulk());
        let all: Vec<_> = all
            .map(|part| String::from_utf8_lossy(&part).into_owned())
            .collect();
        let of = |name: &str| {
            let at = all.iter().position(|part| part == name);
            all[at.expect("an option") + 1].clone()
        };
        (of("regime"), of("gossip-ms"))
    };
    say("lattice", 20);
    let node = Node::start(&dir, &settings);
    assert_eq!(described(&node), ("lattice".into(), "20".into()));
    assert_eq!(Client::connect(node.port).words("SET g:1 x"), ok());
    node.kill();
    say("lattice", 30);
    let node = Node::start(&dir, &settings);
    assert_eq!(described(&node), ("lattice".into(), "30".into()));
    node.kill();
    // What is there is converted.
    say("strict", 40);
    let node = Node::start(&dir, &settings);
    assert_eq!(described(&node), ("strict".into(), "40".into()));
    assert_eq!(Client::connect(node.port).words("GET g:1").bulk(), b"x");
    Client::connect(node.port).words("RPUSH g:list a");
    node.kill();
    // A key stands in the way: nothing is lost, and the log says so.
    say("lattice", 50);
    let node = Node::start(&dir, &settings);
    assert_eq!(described(&node), ("strict".into(), "40".into()));
    assert_eq!(Client::connect(node.port).words("GET g:1").bulk(), b"x");
    assert!(node.log().contains("was left as it is"), "{}", node.log());
}

#[test]
fn hostile_keyspaces_are_refused_and_the_node_lives() {
    let (_temporary, dir) = folder();
    let node = Node::start(&dir, "");
    let mut client = Client::connect(node.port);
    let long = vec![b'x'; 100_000];
    let parts: [&[u8]; 5] = [b"", b"\xFF\xFE", b"\r\n", b"- 1", &long];
    for hostile in parts {
        for at in [2, 4, 6, 8, 10] {
            let mut request: Vec<&[u8]> = vec![
                b"KEYSPACE",
                b"CREATE",
                b"x",
                b"PREFIX",
                b"p",
                b"REGIME",
                b"lattice",
                b"THREADS",
                b"2",
                b"GOSSIP",
                b"7",
            ];
            // Any few bytes are a prefix.
            if at == 4 && hostile.len() < 257 {
                continue;
            }
            request[at] = hostile;
            assert!(client.run(&request).error().starts_with("ERR "), "{at}");
        }
    }
    for n in 0..1024 {
        let create = format!("KEYSPACE CREATE k{n} PREFIX k{n}: REGIME strict");
        assert_eq!(client.words(&create), ok());
    }
    let more = client.words("KEYSPACE CREATE more PREFIX more REGIME strict");
    assert_eq!(more.error(), "ERR the limit of 1024 keyspaces is reached");
    assert_eq!(client.words("KEYSPACE LIST").array().len(), 1024);
    assert_eq!(client.words("SET k1000:x 1"), ok());
}
