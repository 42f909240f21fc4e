//! Against a real node of Rufous.

use crate::common::{Process, connect, start_rufous, wait_until};
use rufous_client::{Builder, Client, Dedicated, Error, Pipeline, Result, Value, cmd};
use rufous_ports::free_port;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Node {
    process: Process,
    url: String,
}

impl Node {
    async fn start(more: &[&str], who: &str) -> (Self, Client) {
        let port = free_port().expect("a free port");
        let process = start_rufous(port, more);
        let url = format!("rufous://{who}127.0.0.1:{port}");
        let client = connect(&url).await;
        // Until it has looked for data it answers LOADING: that is waited for here.
        client.exists("ready").await.expect("ready");
        (Self { process, url }, client)
    }
}

#[tokio::test]
async fn commands_replies_and_their_types() {
    let (node, client) = Node::start(&[], "").await;
    assert!(!client.is_cluster());
    client.set("s", "text").await.unwrap();
    assert_eq!(client.get::<String>("s").await.unwrap(), "text");
    assert_eq!(client.get::<Option<String>>("none").await.unwrap(), None);
    let wrong = client.incr_by("s", 1).await.unwrap_err();
    assert_eq!(wrong.code(), Some("ERR"));
    assert!(matches!(
        client.get::<i64>("s").await,
        Err(Error::Convert { .. })
    ));
    assert!(client.hset("h", "f", 1).await.unwrap());
    assert_eq!(client.hgetall::<i64>("h").await.unwrap().len(), 1);
    assert!(client.sadd("set", "a").await.unwrap());
    assert_eq!(client.smembers::<String>("set").await.unwrap(), ["a"]);
    assert!(client.expire("s", Duration::from_secs(100)).await.unwrap());
    let binary: &[u8] = b"\r\n\x00\xFF$5";
    client.set(binary, binary).await.unwrap();
    assert_eq!(client.get::<Vec<u8>>(binary).await.unwrap(), binary);

    let replies = Pipeline::new()
        .push(cmd("INCR").arg("n"))
        .push(cmd("INCR").arg("h"))
        .push(cmd("MULTI"))
        .push(cmd("INCR").arg("n"))
        .run(&client)
        .await;
    assert_eq!(replies[0], Ok(Value::Int(1)));
    assert_eq!(replies[1].as_ref().unwrap_err().code(), Some("WRONGTYPE"));
    assert!(matches!(replies[2], Err(Error::Refused(_))));
    assert_eq!(replies[3], Ok(Value::Int(2)));

    // RESP2 gives the same.
    let old = Builder::new(&node.url)
        .unwrap()
        .resp2()
        .connect()
        .await
        .unwrap();
    assert_eq!(old.hgetall::<i64>("h").await.unwrap().len(), 1);
    for command in [
        "SUBSCRIBE a",
        "MULTI",
        "SELECT 1",
        "WATCH k",
        "HELLO 2",
        "CLIENT REPLY OFF",
    ] {
        let refused = cmd(command).run(&client).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{command}");
    }
}

#[tokio::test]
async fn many_tasks_share_one_connection() {
    let (_node, client) = Node::start(&[], "").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200i64 {
        let client = client.clone();
        tasks.spawn(async move {
            for round in 0..20 {
                client.set(format!("k{n}"), n * 100 + round).await.unwrap();
                let read: i64 = client.get(format!("k{n}")).await.unwrap();
                assert_eq!(read, n * 100 + round);
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let clients: String = cmd("CLIENT LIST").query(&client).await.unwrap();
    assert_eq!(clients.lines().count(), 1);
}

#[tokio::test]
async fn who_waits_holds_up_nobody() {
    let (_node, client) = Node::start(&[], "").await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move {
            let pop = cmd("BLPOP").arg("queue").arg(0);
            pop.query::<Option<(String, String)>>(&client).await
        })
    };
    // The shared connection answers while the other waits.
    wait_until("somebody waits", async || {
        let info: String = cmd("INFO").arg("clients").query(&client).await.unwrap();
        info.contains("blocked_clients:1")
    })
    .await;
    client.incr_by("n", 1).await.unwrap();
    cmd("RPUSH")
        .arg("queue")
        .arg("job")
        .run(&client)
        .await
        .unwrap();
    let got = waiting.await.unwrap().unwrap();
    assert_eq!(got, Some(("queue".into(), "job".into())));
    let nothing: Option<(String, String)> = cmd("BLPOP")
        .arg("queue")
        .arg(0.01)
        .query(&client)
        .await
        .unwrap();
    assert_eq!(nothing, None);
}

#[tokio::test]
async fn transactions_have_a_connection_of_their_own() {
    let (_node, client) = Node::start(&[], "").await;
    let both = Pipeline::new()
        .push(cmd("INCR").arg("a"))
        .push(cmd("INCR").arg("b"));
    assert_eq!(
        both.atomic(&client).await.unwrap(),
        [Value::Int(1), Value::Int(1)]
    );
    let bad = Pipeline::new()
        .push(cmd("INCR").arg("a"))
        .push(cmd("NONSENSE"));
    let error = bad.atomic(&client).await.unwrap_err();
    assert!(error.to_string().contains("unknown command"), "{error}");
    assert_eq!(client.get::<i64>("a").await.unwrap(), 1);

    // Optimistic: somebody else writes what is watched.
    let mut own = client.dedicated("a").await.unwrap();
    own.watch(["a"]).await.unwrap();
    client.incr_by("a", 1).await.unwrap();
    own.multi().await.unwrap();
    own.run(cmd("INCR").arg("a")).await.unwrap();
    assert_eq!(own.exec().await.unwrap(), None);
    assert_eq!(client.get::<i64>("a").await.unwrap(), 2);

    own.begin("item-cut").await.unwrap();
    assert_eq!(
        own.query::<i64>(cmd("INCRBY").arg("a").arg(40))
            .await
            .unwrap(),
        42
    );
    assert_eq!(client.get::<i64>("a").await.unwrap(), 2);
    assert_eq!(own.commit().await.unwrap(), Some(vec![Value::Int(42)]));
    assert_eq!(client.get::<i64>("a").await.unwrap(), 42);

    // What is open when it is dropped is given up and goes to nobody else.
    own.begin(None).await.unwrap();
    own.run(cmd("SET").arg("a").arg(0)).await.unwrap();
    drop(own);
    let mut next = client.dedicated("a").await.unwrap();
    next.multi().await.unwrap();
    next.run(cmd("DISCARD")).await.unwrap();
    assert_eq!(client.get::<i64>("a").await.unwrap(), 42);
    next.run(cmd("SELECT").arg(1)).await.unwrap();
    drop(next);
    let mut last = client.dedicated("a").await.unwrap();
    assert_eq!(
        last.query::<Option<i64>>(cmd("GET").arg("a"))
            .await
            .unwrap(),
        Some(42)
    );
}

/// Each reads a balance, computes, and writes: what others do meanwhile makes it begin again.
#[tokio::test]
async fn a_transaction_is_tried_again_until_nothing_has_changed_what_it_has_read() {
    let (node, client) = Node::start(&["--workers", "2"], "").await;
    client.set("a", 1_000).await.unwrap();
    client.set("b", 0).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let client = client.clone();
        tasks.spawn(async move {
            for _ in 0..20 {
                let paid = client.transact("a", async |own| {
                    let a: i64 = own.query(cmd("GET").arg("a")).await?;
                    let b: i64 = own.query(cmd("GET").arg("b")).await?;
                    own.run(cmd("SET").arg("a").arg(a - 1)).await?;
                    own.run(cmd("SET").arg("b").arg(b + 1)).await?;
                    Ok(())
                });
                paid.await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(client.get::<i64>("a").await.unwrap(), 880);
    assert_eq!(client.get::<i64>("b").await.unwrap(), 120);
    let seen = client.transact("a", async |own| {
        own.run(cmd("SET").arg("a").arg(0)).await?;
        own.rollback().await?;
        Ok(7)
    });
    assert_eq!(seen.await.unwrap(), 7);
    // A savepoint does not end it.
    let both = client.transact("a", async |own| {
        own.run(cmd("INCR").arg("b")).await?;
        own.run(cmd("SAVEPOINT").arg("p")).await?;
        own.run(cmd("SET").arg("a").arg(0)).await?;
        own.run(cmd("ROLLBACK").arg("TO").arg("p")).await?;
        Ok(())
    });
    both.await.unwrap();
    assert_eq!(client.get::<i64>("b").await.unwrap(), 121);
    let failed = client.transact("a", async |own| {
        own.run(cmd("SET").arg("a").arg(0)).await?;
        own.run(cmd("LPUSH").arg("b").arg(1)).await
    });
    let failed = failed.await.unwrap_err();
    assert_eq!(failed.code(), Some("WRONGTYPE"));
    assert_eq!(client.get::<i64>("a").await.unwrap(), 880);
    drop(node);
}

/// Passes bytes on to a node. The first `COMMIT` ends its connection: before the node has it, or when it has, without the reply.
async fn cutting_proxy(node: String, reaches: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_cut = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&node).await.unwrap();
            let is_cut = Arc::clone(&is_cut);
            tokio::spawn(async move {
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let is_mute = Arc::new(AtomicBool::new(false));
                let mute = Arc::clone(&is_mute);
                let back = tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(len @ 1..) = from_server.read(&mut buffer).await {
                        if !mute.load(Ordering::SeqCst) {
                            to_client.write_all(&buffer[..len]).await.ok();
                        }
                    }
                });
                let mut buffer = vec![0; 64 << 10];
                while let Ok(len @ 1..) = from_client.read(&mut buffer).await {
                    let sent = &buffer[..len];
                    let has_commit = sent.windows(6).any(|word| word == b"COMMIT");
                    if has_commit && !is_cut.swap(true, Ordering::SeqCst) {
                        is_mute.store(true, Ordering::SeqCst);
                        if reaches {
                            to_server.write_all(sent).await.unwrap();
                            // The node executes it before the client knows that the connection has ended.
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                        back.abort();
                        return;
                    }
                    to_server.write_all(sent).await.unwrap();
                }
            });
        }
    });
    format!("rufous://{address}")
}

async fn pay(own: &mut Dedicated) -> Result<i64> {
    own.query(cmd("INCR").arg("paid")).await
}

#[tokio::test]
async fn a_token_settles_what_became_of_a_commit_without_a_reply() {
    let (node, direct) = Node::start(&["--workers", "2"], "").await;
    for (token, reaches) in [("never", false), ("done", true)] {
        let to = node.url.trim_start_matches("rufous://").to_owned();
        let client = Client::connect(&cutting_proxy(to, reaches).await)
            .await
            .unwrap();
        let before: Option<i64> = direct.get("paid").await.unwrap();
        let before = before.unwrap_or_default();
        let paid = client.transact_once("paid", token, pay).await;
        let after: Option<i64> = direct.get("paid").await.unwrap();
        match reaches {
            true => {
                assert_eq!(paid.unwrap(), before + 1);
                assert_eq!(after, Some(before + 1));
            }
            false => {
                let error = paid.unwrap_err();
                assert!(matches!(error, Error::Undone { .. }), "{error}");
                assert!(!error.maybe_done(), "{error}");
                assert_eq!(after.unwrap_or_default(), before);
            }
        }
        // A token is used once.
        let again = client.transact_once("paid", token, pay).await.unwrap_err();
        assert!(again.to_string().contains("TOKENUSED"), "{again}");
        assert!(!again.maybe_done());
        // Without one it is not known.
        let other = node.url.trim_start_matches("rufous://").to_owned();
        let other = Client::connect(&cutting_proxy(other, reaches).await)
            .await
            .unwrap();
        let unknown = other.transact("paid", async |own| own.run(cmd("INCR").arg("other")).await);
        assert!(unknown.await.unwrap_err().maybe_done());
    }
    drop(node);
}

#[tokio::test]
async fn the_pool_is_bounded() {
    let (node, _) = Node::start(&[], "").await;
    let client = Builder::new(&node.url)
        .unwrap()
        .pool(2)
        // Only who finds no room waits for so long; all else has it on a busy machine.
        .timeout(Duration::from_secs(3))
        .connect()
        .await
        .unwrap();
    let (_one, two) = (
        client.dedicated("k").await.unwrap(),
        client.dedicated("k").await.unwrap(),
    );
    let third = client.dedicated("k").await.err().expect("no room");
    assert!(
        !third.maybe_done() && third.to_string().contains("pool"),
        "{third}"
    );
    drop(two);
    client.dedicated("k").await.unwrap();
}

#[tokio::test]
async fn sessions_carry_what_they_have_seen() {
    let (node, client) = Node::start(&[], "").await;
    let create = cmd("KEYSPACE CREATE notes PREFIX note: REGIME lattice LEVEL causal");
    client.run(create).await.unwrap();
    let mut a = client.session();
    // Another client: another connection, perhaps to another worker.
    let other = connect(&node.url).await;
    let mut b = other.session();
    a.causal_set("note:1", "four").await.unwrap();
    b.causal_set("note:1", "five").await.unwrap();
    wait_until("both values are everywhere", async || {
        let (mine, its) = (
            client
                .session()
                .causal_get::<String>("note:1")
                .await
                .unwrap(),
            other
                .session()
                .causal_get::<String>("note:1")
                .await
                .unwrap(),
        );
        mine.values.len() == 2 && its.values.len() == 2
    })
    .await;
    // Who has seen both replaces both, and the token serves somebody else.
    let seen = a.causal_get::<String>("note:1").await.unwrap();
    let mut heir = other.session();
    heir.set_token("note:1", &seen.token);
    heir.causal_set("note:1", "agreed").await.unwrap();
    wait_until("one value is left", async || {
        let left = client
            .session()
            .causal_get::<String>("note:1")
            .await
            .unwrap();
        left.values == ["agreed"]
    })
    .await;
    // What has not been seen stays beside what is written.
    let mut stranger = client.session();
    stranger.causal_set("note:1", "beside").await.unwrap();
    assert_eq!(
        stranger
            .causal_get::<String>("note:1")
            .await
            .unwrap()
            .values
            .len(),
        2
    );
    assert!(stranger.causal_delete("note:1").await.unwrap());
    stranger
        .query::<()>(cmd("SET").arg("plain").arg(1))
        .await
        .unwrap();
    assert_eq!(
        stranger
            .query::<i64>(cmd("GET").arg("plain"))
            .await
            .unwrap(),
        1
    );
    let held = stranger.run(cmd("BLPOP").arg("q").arg(1)).await;
    assert!(matches!(held, Err(Error::Refused(_))));
}

/// Its connection ends again and again, and the next one may be another worker's, which has not received its writes yet.
#[tokio::test]
async fn a_session_goes_on_when_its_connection_ends() {
    let (node, client) = Node::start(&["--workers", "2"], "").await;
    let create = cmd("KEYSPACE CREATE carts PREFIX cart: REGIME lattice GOSSIP 1100");
    client.run(create).await.unwrap();
    let mut session = client.session();
    for n in 0..8 {
        let set = cmd("SET").arg("cart:1").arg(n).idempotent();
        session.run(set).await.unwrap();
        let id: i64 = session.query(cmd("CLIENT ID").for_key("k")).await.unwrap();
        cmd("CLIENT KILL ID").arg(id).run(&client).await.unwrap();
        let shown: i64 = session.query(cmd("GET").arg("cart:1")).await.unwrap();
        assert_eq!(shown, n);
    }
    // Another process goes on where it was.
    let other = connect(&node.url).await;
    for n in 0..4 {
        session.run(cmd("SET").arg("cart:2").arg(n)).await.unwrap();
        let mut later = other.session();
        later.resume(session.seen().expect("a token"));
        let shown: i64 = later.query(cmd("GET").arg("cart:2")).await.unwrap();
        assert_eq!(shown, n);
    }
    let info: String = cmd("INFO keyspaces").query(&client).await.unwrap();
    let resumed = info
        .lines()
        .find_map(|line| line.strip_prefix("sessions_resumed:"));
    let resumed: u64 = resumed.and_then(|n| n.parse().ok()).expect("a number");
    assert!(resumed >= 12, "{resumed}");
    // Nonsense is no token.
    session.resume("00");
    let refused = session.run(cmd("GET").arg("cart:1")).await;
    assert_eq!(
        refused.err().and_then(|e| e.code().map(str::to_owned)),
        Some("ERR".into())
    );
    session.renew();
    session.run(cmd("GET").arg("cart:1")).await.unwrap();
}

#[tokio::test]
async fn passwords_and_failing_over_to_the_next_address() {
    let (mut first, _) = Node::start(&["--requirepass", "secret"], ":secret@").await;
    let (second, _) = Node::start(&["--requirepass", "secret"], ":secret@").await;
    for bad in [
        first.url.replace("secret", "wrong"),
        first.url.replace(":secret@", ""),
    ] {
        let error = Client::connect(&bad).await.err().expect("refused");
        assert!(
            matches!(error.code(), Some("WRONGPASS" | "NOAUTH")),
            "{error}"
        );
    }
    let both = format!("{},{}", first.url, second.url.rsplit_once('@').unwrap().1);
    let client = Client::connect(&format!("{both}?name=web&timeout_ms=60000"))
        .await
        .unwrap();
    let name: String = cmd("CLIENT GETNAME").query(&client).await.unwrap();
    assert_eq!(name, "web");
    client.set("where", "first").await.unwrap();
    first.process.kill();
    // A read is tried elsewhere. A write that met the dead connection may not be; the next one is.
    assert_eq!(client.get::<Option<String>>("where").await.unwrap(), None);
    client.set("where", "second").await.unwrap();
    assert_eq!(client.get::<String>("where").await.unwrap(), "second");
    assert!(client.stats().retries > 0);
}
