//! Against a cluster of Redis servers: slots move and a node is killed while clients work.

use crate::common::{RedisNode, connect, redis_cluster, wait_until};
use rufous_base::slot::slot_of;
use rufous_client::{Builder, Client, Error, Pipeline, ReadFrom, Value, cmd};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const KEYS: usize = 48;

/// What clients were told of their increments.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    rounds: AtomicU64,
}

/// Counts up all keys again and again; returns how many increments of each were acknowledged, and how
/// many may have been done.
async fn count_up(client: Client, load: Arc<Load>, key: String) -> (String, i64, i64) {
    let (mut done, mut maybe) = (0, 0);
    while !load.stop.load(Ordering::Relaxed) {
        match client.incr_by(&key, 1).await {
            Ok(_) => done += 1,
            Err(error) if error.maybe_done() => maybe += 1,
            Err(error) => panic!("{key}: {error}"),
        }
        load.rounds.fetch_add(1, Ordering::Relaxed);
    }
    (key, done, maybe)
}

fn begin_load(client: &Client, load: &Arc<Load>) -> tokio::task::JoinSet<(String, i64, i64)> {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..KEYS {
        tasks.spawn(count_up(client.clone(), load.clone(), format!("k{n}")));
    }
    tasks
}

async fn some_rounds(load: &Load) {
    let before = load.rounds.load(Ordering::Relaxed);
    wait_until("the load goes on", async || {
        load.rounds.load(Ordering::Relaxed) >= before + 4 * KEYS as u64
    })
    .await;
}

/// One of the load's keys.
fn key_of(slot: u16) -> String {
    let mut keys = (0..KEYS).map(|n| format!("k{n}"));
    keys.find(|key| slot_of(key.as_bytes()) == slot).unwrap()
}

/// Moves a slot with its keys, as `redis-cli --cluster reshard` does. The load goes on meanwhile.
async fn move_slot(
    client: &Client,
    slot: u16,
    from: &RedisNode,
    to: &RedisNode,
    all: &[RedisNode],
    load: &Load,
) {
    let id = async |node: &RedisNode| -> String {
        client
            .run_on(&node.addr, cmd("CLUSTER MYID"))
            .await
            .unwrap()
            .to()
            .unwrap()
    };
    let (from_id, to_id) = (id(from).await, id(to).await);
    let set = |what: &str, id: &str| {
        cmd("CLUSTER SETSLOT")
            .arg(u32::from(slot))
            .arg(what)
            .arg(id)
    };
    client
        .run_on(&to.addr, set("IMPORTING", &from_id))
        .await
        .unwrap();
    client
        .run_on(&from.addr, set("MIGRATING", &to_id))
        .await
        .unwrap();
    loop {
        let get = cmd("CLUSTER GETKEYSINSLOT").arg(u32::from(slot)).arg(1);
        let keys: Vec<String> = client.run_on(&from.addr, get).await.unwrap().to().unwrap();
        let Some(key) = keys.first() else { break };
        let migrate = cmd("MIGRATE")
            .arg("127.0.0.1")
            .arg(u32::from(to.addr.port()));
        client
            .run_on(&from.addr, migrate.arg(key).arg(0).arg(5000))
            .await
            .unwrap();
    }
    // Keys of the slot are at its new owner, whom only `ASK` tells of.
    let moved: Option<i64> = client.get(key_of(slot)).await.unwrap();
    assert!(moved.is_some());
    some_rounds(load).await;
    for node in [to, from].into_iter().chain(all) {
        // A replica takes no such command; it hears of it.
        let _ = client.run_on(&node.addr, set("NODE", &to_id)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_move_under_load_and_nothing_is_lost_or_done_twice() {
    if !rufous_skip::has_program("redis-server") {
        return;
    }
    let nodes = redis_cluster().await;
    // One address is enough: the rest is learned.
    let client = Client::connect(&nodes[1].url()).await.unwrap();
    assert!(client.is_cluster());
    assert_eq!(client.nodes().len(), 4);
    let load = Arc::new(Load::default());
    let mut tasks = begin_load(&client, &load);
    some_rounds(&load).await;
    let of_first = (0..KEYS)
        .map(|n| slot_of(format!("k{n}").as_bytes()))
        .filter(|&s| s <= 5460);
    for slot in of_first.take(4) {
        move_slot(&client, slot, &nodes[0], &nodes[2], &nodes, &load).await;
        some_rounds(&load).await;
    }
    load.stop.store(true, Ordering::Relaxed);
    while let Some(task) = tasks.join_next().await {
        let (key, done, maybe) = task.unwrap();
        assert_eq!(maybe, 0, "{key}: nothing was killed");
        let value: i64 = client.get(&key).await.unwrap();
        assert_eq!(value, done, "{key}");
    }
    let stats = client.stats();
    assert!(stats.asked > 0 && stats.moved > 0, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_owner_is_replaced_and_clients_go_on() {
    if !rufous_skip::has_program("redis-server") {
        return;
    }
    let mut nodes = redis_cluster().await;
    let client = Builder::new(&nodes[1].url())
        .unwrap()
        .timeout(Duration::from_secs(60))
        .attempts(100_000)
        .connect()
        .await
        .unwrap();
    let load = Arc::new(Load::default());
    let mut tasks = begin_load(&client, &load);
    some_rounds(&load).await;
    let reader = Builder::new(&nodes[1].url())
        .unwrap()
        .read_from(ReadFrom::AnyReplica)
        .connect()
        .await
        .unwrap();
    let key = (0..KEYS)
        .map(|n| format!("k{n}"))
        .find(|k| slot_of(k.as_bytes()) <= 5460)
        .unwrap();
    for _ in 0..32 {
        let number: Option<i64> = reader.get(&key).await.unwrap();
        assert!(number.is_some());
    }
    // Half of them went to the replica, which sent nobody away.
    assert_eq!(reader.stats().moved, 0);
    nodes[0].process.kill();
    // The replica answers reads long before it is the owner.
    for _ in 0..8 {
        let number: Option<i64> = reader.get(&key).await.unwrap();
        assert!(number.is_some());
    }
    // Each task goes on, those with keys of the dead node too.
    let promoted = async || {
        let owner: Value = client.run_on(&nodes[3].addr, cmd("ROLE")).await.unwrap();
        format!("{owner:?}").contains("[109, 97, 115, 116, 101, 114]")
    };
    wait_until("the replica has become the owner", promoted).await;
    let before: i64 = client.get(&key).await.unwrap();
    wait_until("its keys are counted up again", async || {
        client.get::<i64>(&key).await.unwrap() > before + 10
    })
    .await;
    load.stop.store(true, Ordering::Relaxed);
    let mut ends = HashMap::new();
    while let Some(task) = tasks.join_next().await {
        let (key, done, maybe) = task.unwrap();
        let value: i64 = client.get(&key).await.unwrap();
        // More than was sent would be a repeated write. (Redis may lose some of what it acknowledged.)
        assert!(
            value <= done + maybe,
            "{key}: {value} of {done} and perhaps {maybe}"
        );
        if slot_of(key.as_bytes()) > 5460 {
            assert!(value >= done, "{key}: its node was not touched");
        }
        ends.insert(key, value);
    }
    assert_eq!(ends.len(), KEYS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_keys_transactions_and_refusals_in_a_cluster() {
    if !rufous_skip::has_program("redis-server") {
        return;
    }
    let nodes = redis_cluster().await;
    let client = connect(&nodes[2].url()).await;
    let pairs: Vec<(String, i64)> = (0..40).map(|n| (format!("m{n}"), n)).collect();
    let keys: Vec<&String> = pairs.iter().map(|(key, _)| key).collect();
    client.mset_split(&pairs).await.unwrap();
    let values: Vec<Option<i64>> = client.mget_split(&keys).await.unwrap();
    assert_eq!(values, (0..40).map(Some).collect::<Vec<_>>());
    let whole = cmd("MGET").args(&keys).run(&client).await.unwrap_err();
    assert_eq!(whole.code(), Some("CROSSSLOT"));

    let mut pipeline = Pipeline::new();
    for key in &keys {
        pipeline = pipeline.push(cmd("INCR").arg(key));
    }
    let replies: Vec<i64> = pipeline.query(&client).await.unwrap();
    assert_eq!(replies, (1..41).collect::<Vec<_>>());
    assert_eq!(client.del_split(&keys).await.unwrap(), 40);

    // From a client that knows nothing yet, too: the transaction is redirected as a whole.
    let both = Pipeline::new()
        .push(cmd("INCR").arg("{a}1"))
        .push(cmd("INCR").arg("{a}2"));
    let replies = both.atomic(&client).await.unwrap();
    assert_eq!(replies, [Value::Int(1), Value::Int(1)]);
    let torn = Pipeline::new()
        .push(cmd("INCR").arg("{a}1"))
        .push(cmd("INCR").arg("{b}1"));
    let refused = torn.atomic(&client).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    let value: i64 = client.get("{a}1").await.unwrap();
    assert_eq!(value, 1);

    let scan = cmd("SCAN").arg(0).run(&client).await.unwrap_err();
    assert!(matches!(scan, Error::Refused(_)), "{scan}");
    let db = Client::connect(&format!("{}/3", nodes[0].url())).await;
    assert!(matches!(db, Err(Error::Config(_))));
}
