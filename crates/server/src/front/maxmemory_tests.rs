//! The memory limit as clients observe it, over one to four workers.

use super::testing::Rig;
use crate::config::{Config, MaxmemoryPolicy};
use rufous_base::rng::Rng;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

const EVICTING: [MaxmemoryPolicy; 7] = [
    MaxmemoryPolicy::AllKeysLru,
    MaxmemoryPolicy::AllKeysLfu,
    MaxmemoryPolicy::AllKeysRandom,
    MaxmemoryPolicy::VolatileLru,
    MaxmemoryPolicy::VolatileLfu,
    MaxmemoryPolicy::VolatileRandom,
    MaxmemoryPolicy::VolatileTtl,
];

fn rig(workers: usize, maxmemory: u64, maxmemory_policy: MaxmemoryPolicy) -> Rig {
    Rig::with_config(
        workers,
        Config {
            maxmemory,
            maxmemory_policy,
            ..Config::in_memory()
        },
    )
}

/// Bytes charged for the data of all workers.
fn charged(rig: &Rig) -> usize {
    let charge = |f: &super::Front| f.kernel.shard.charged();
    rig.fronts.iter().map(charge).sum()
}

fn info(rig: &mut Rig, field: &str) -> u64 {
    let text = rig.run("INFO everything");
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|l| l.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {field} in {text}"))
}

#[test]
fn the_limit_holds_under_mixed_writes() {
    const LIMIT: usize = 1 << 20;
    for workers in 1..=4 {
        for policy in EVICTING {
            let mut rig = rig(workers, LIMIT as u64, policy);
            let mut rng = Rng::new(11);
            for i in 0..6_000 {
                let n = rng.below(4_000);
                let text = "x".repeat(match rng.below(50) {
                    0 => rng.below(40_000) as usize,
                    n if n < 10 => rng.below(2_000) as usize,
                    _ => rng.below(200) as usize + 1,
                });
                let request = match rng.below(8) {
                    0 => format!("APPEND a{n} {text}"),
                    1 => format!("INCR i{n}"),
                    2 => format!("SETRANGE r{n} {} {text}", rng.below(1_000)),
                    3 => format!("MSET m{n} {text} m{i} {text} m{} {text}", n + 1),
                    4 => format!("SETBIT b{n} {} 1", rng.below(10_000)),
                    5 => format!("COPY m{n} c{n}"),
                    _ => format!("SET s{n} {text}"),
                };
                let reply = rig.run(&request);
                assert!(!reply.starts_with("-ERR"), "{request}: {reply}");
                rig.run(&format!("EXPIRE s{n} {}", 100 + rng.below(1_000)));
                // Every worker's largest command may have crossed the limit.
                let used = charged(&rig);
                assert!(used <= LIMIT + 150_000, "{workers} {policy:?}: {used}");
            }
            rig.advance_ms(1_000);
            // Keys without an expiry time stay; the last write of one may have crossed the limit.
            let volatile = policy.choice().is_some_and(|choice| choice.volatile);
            let above = if volatile { 150_000 } else { 0 };
            assert!(charged(&rig) <= LIMIT + above, "{workers} {policy:?}");
            assert!(charged(&rig) > LIMIT * 3 / 4, "{workers} {policy:?}");
            assert!(info(&mut rig, "evicted_keys") > 100);
            rig.fronts.iter().for_each(|f| f.kernel.shard.check());
        }
    }
}

#[test]
fn a_policy_evicts_only_what_it_may() {
    for workers in [1, 3] {
        for policy in EVICTING {
            let mut rig = rig(workers, 400_000, policy);
            for i in 0..500 {
                rig.check(&format!("SET stays{i} value"), "+OK\r\n");
            }
            rig.advance_ms(2_000);
            for i in 0..4_000 {
                let reply = rig.run(&format!("SET goes{i} {} EX 1000", "v".repeat(100)));
                assert_eq!(reply, "+OK\r\n", "{workers} {policy:?} {i}");
            }
            assert!(info(&mut rig, "evicted_keys") > 500, "{policy:?}");
            let stayed = (0..500)
                .filter(|i| rig.run(&format!("EXISTS stays{i}")) == ":1\r\n")
                .count();
            let volatile = policy.choice().is_some_and(|choice| choice.volatile);
            assert_eq!(stayed == 500, volatile, "{workers} {policy:?}: {stayed}");
        }
    }
}

#[test]
fn without_eviction_reads_and_deletions_still_run() {
    let policies = [MaxmemoryPolicy::NoEviction, MaxmemoryPolicy::VolatileLru];
    for workers in 1..=4 {
        for policy in policies {
            let mut rig = rig(workers, 200_000, policy);
            let text = "x".repeat(500);
            let mut keys = 0;
            while rig.run(&format!("SET k{keys} {text}")) == "+OK\r\n" {
                keys += 1;
                assert!(keys < 1_000, "the limit is never reached");
            }
            let used = charged(&rig);
            assert!((200_000 - 3_000..202_000).contains(&used), "{used}");
            for request in [
                "SET k0 y",
                "SET new y",
                "SETNX new y",
                "SETEX new 100 y",
                "GETSET k0 y",
                "APPEND k0 y",
                "INCR n",
                "DECRBY n 5",
                "INCRBYFLOAT n 1.5",
                "SETRANGE k0 1 y",
                "SETBIT k0 1 1",
                "BITFIELD n SET u8 0 1",
                "BITOP AND new k0 k1 k2 k3",
                "MSET a 1 b 2 c 3 d 4",
                "MSETNX a 1 b 2 c 3 d 4",
                "COPY k0 new",
            ] {
                rig.check(request, OOM);
            }
            rig.check("STRLEN k1", ":500\r\n");
            rig.check("MGET nosuch1 nosuch2", "*2\r\n$-1\r\n$-1\r\n");
            rig.check("EXPIRE k1 1000", ":1\r\n");
            rig.check("PERSIST k1", ":1\r\n");
            rig.check("RENAME k1 k2", "+OK\r\n");
            assert_eq!(info(&mut rig, "evicted_keys"), 0);
            let stats = rig.run("INFO commandstats");
            assert!(
                stats.contains("cmdstat_mset:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"),
                "{stats}"
            );
            assert!(
                rig.run("INFO errorstats")
                    .contains("errorstat_OOM:count=17\r\n")
            );
            for i in (3..keys).step_by(2) {
                rig.check(&format!("DEL k{i}"), ":1\r\n");
            }
            rig.check("SET new y", "+OK\r\n");
            rig.check("FLUSHALL", "+OK\r\n");
            rig.check("INCR n", ":1\r\n");
        }
    }
}

#[test]
fn small_growth_of_many_keys_ends_at_the_limit_too() {
    let mut rig = rig(2, 100_000, MaxmemoryPolicy::NoEviction);
    let mut n = 0;
    while rig.run(&format!("INCR {n}")) == ":1\r\n" {
        n += 1;
        assert!(n < 10_000);
    }
    // Keys of four bytes with values of one byte: the index is a large part of the memory.
    assert!(
        n > 2_000 && charged(&rig) < 105_000,
        "{n} {}",
        charged(&rig)
    );
    rig.check(&format!("INCR {}", n - 1), OOM);
}

#[test]
fn the_growth_of_the_index_is_made_room_for() {
    for workers in [1, 4] {
        const LIMIT: usize = 1 << 20;
        let mut rig = rig(workers, LIMIT as u64, MaxmemoryPolicy::AllKeysRandom);
        let mut most = 0;
        for i in 0..60_000 {
            rig.check(&format!("SET {i} x"), "+OK\r\n");
            most = most.max(charged(&rig));
        }
        // One growth step of a segment, or a directory of twice the length.
        assert!((LIMIT..LIMIT + 20_000 * workers).contains(&most), "{most}");
    }
}

#[test]
fn one_value_may_be_larger_than_the_limit_until_the_next_write() {
    for workers in [1, 2] {
        let mut rig = rig(workers, 16 << 20, MaxmemoryPolicy::AllKeysLru);
        for i in 0..1_000 {
            rig.check(&format!("SET k{i} value"), "+OK\r\n");
        }
        rig.advance_ms(2_000);
        rig.check("SETRANGE large 100000000 x", ":100000001\r\n");
        for i in 0..100 {
            rig.check(&format!("SET k{i} value"), "+OK\r\n");
            rig.advance_ms(100);
        }
        rig.check("EXISTS large", ":0\r\n");
        assert!(charged(&rig) <= 16 << 20);
    }
}

#[test]
fn a_lowered_limit_takes_effect_by_itself() {
    for workers in 1..=4 {
        let mut rig = rig(workers, 0, MaxmemoryPolicy::NoEviction);
        for i in 0..10_000 {
            rig.check(&format!("SET k{i} {}", "v".repeat(100)), "+OK\r\n");
        }
        let before = charged(&rig);
        rig.check("CONFIG SET maxmemory 1000kb", "+OK\r\n");
        rig.advance_ms(1_000);
        assert_eq!(charged(&rig), before);
        rig.check("SET new value", OOM);
        rig.check("CONFIG SET maxmemory-policy allkeys-lru", "+OK\r\n");
        rig.advance_ms(1_000);
        assert!(charged(&rig) <= 1000 << 10);
        assert!(charged(&rig) > 900 << 10);
        rig.check("SET new value", "+OK\r\n");
        rig.check("CONFIG SET maxmemory 100kb maxmemory-samples 10", "+OK\r\n");
        rig.check("SET new value", "+OK\r\n");
        rig.advance_ms(1_000);
        assert!(charged(&rig) <= 100 << 10);
        let evicted = info(&mut rig, "evicted_keys");
        let left: usize = rig.fronts.iter().map(|f| f.kernel.shard.len(0)).sum();
        assert_eq!(evicted as usize + left, 10_001);
        rig.check("CONFIG RESETSTAT", "+OK\r\n");
        assert_eq!(info(&mut rig, "evicted_keys"), 0);
        rig.check("CONFIG SET maxmemory 0", "+OK\r\n");
        for i in 0..10_000 {
            rig.check(&format!("SET k{i} {}", "v".repeat(100)), "+OK\r\n");
        }
        assert_eq!(info(&mut rig, "evicted_keys"), 0);
    }
}

#[test]
fn what_has_expired_goes_before_anything_is_evicted() {
    let mut rig = rig(1, 200_000, MaxmemoryPolicy::AllKeysLru);
    rig.run("DEBUG SET-ACTIVE-EXPIRE 0");
    for i in 0..1_000 {
        rig.check(
            &format!("SET short{i} {} PX 100", "v".repeat(100)),
            "+OK\r\n",
        );
    }
    for i in 0..1_000 {
        rig.check(&format!("SET long{i} {}", "v".repeat(100)), "+OK\r\n");
        rig.advance_ms(1);
    }
    let evicted = info(&mut rig, "evicted_keys");
    let expired = info(&mut rig, "expired_keys");
    assert_eq!(evicted, 0);
    assert!(expired > 100, "{expired}");
    assert_eq!(rig.fronts[0].kernel.shard.len(0) as u64, 2_000 - expired);
}

#[test]
fn settings_and_figures() {
    let mut rig = rig(2, 0, MaxmemoryPolicy::NoEviction);
    let get = |rig: &mut Rig, name: &str| {
        let reply = rig.run(&format!("CONFIG GET {name}"));
        reply.split("\r\n").nth(4).unwrap_or_default().to_owned()
    };
    assert_eq!(get(&mut rig, "maxmemory"), "0");
    assert_eq!(get(&mut rig, "maxmemory-samples"), "5");
    rig.check("CONFIG SET maxmemory 100mb maxmemory-samples 64", "+OK\r\n");
    assert_eq!(get(&mut rig, "maxmemory"), "104857600");
    assert_eq!(get(&mut rig, "maxmemory-samples"), "64");
    for wrong in [
        "maxmemory -1",
        "maxmemory 1x",
        "maxmemory-samples 0",
        "maxmemory-samples 65",
    ] {
        let reply = rig.run(&format!("CONFIG SET {wrong}"));
        assert!(reply.starts_with("-ERR CONFIG SET failed"), "{reply}");
    }
    rig.run("SET key value");
    let memory = rig.run("INFO memory");
    for line in [
        "maxmemory:104857600",
        "maxmemory_human:100.00M",
        "maxmemory_policy:noeviction",
    ] {
        assert!(memory.contains(&format!("\r\n{line}\r\n")), "{memory}");
    }
    let counted = info(&mut rig, "used_memory") - info(&mut rig, "mem_not_counted_for_evict");
    assert_eq!(counted as usize, charged(&rig));
}

#[test]
fn other_workers_make_room_below_their_share_where_this_one_cannot() {
    let mut rig = rig(2, 200_000, MaxmemoryPolicy::VolatileLru);
    let owner = |rig: &Rig, key: &str| {
        rig.fronts[0]
            .kernel
            .placement()
            .owner(key.as_bytes())
            .index()
    };
    let names = |rig: &Rig, prefix: &str, at: usize, count: usize| -> Vec<String> {
        let all = (0..).map(|i| format!("{prefix}{i}"));
        all.filter(|key| owner(rig, key) == at)
            .take(count)
            .collect()
    };
    for key in names(&rig, "goes", 1, 300) {
        rig.check(&format!("SET {key} {} EX 1000", "v".repeat(100)), "+OK\r\n");
    }
    let stays = names(&rig, "stays", 0, 3_000);
    let accepted = stays
        .iter()
        .take_while(|key| rig.run(&format!("SET {key} {}", "v".repeat(100))) == "+OK\r\n")
        .count();
    assert!(accepted > 1_000 && accepted < 2_900, "{accepted}");
    assert_eq!(rig.fronts[1].kernel.shard.counted_expiring_len(0), 0);
    assert_eq!(rig.fronts[0].kernel.shard.len(0), accepted);
}

/// The values of these keys as a client of this worker reads them.
fn values(rig: &mut Rig, worker: usize, keys: u64) -> Vec<String> {
    let client = rig.connect(worker);
    let get = |n| rig.run_on(client, &format!("GET c:{n}"));
    (0..keys).map(get).collect()
}

#[test]
fn keys_of_lattice_keyspaces_are_evicted_at_all_replicas() {
    const LIMIT: usize = 1 << 20;
    const KEYS: u64 = 3_000;
    for workers in 1..=4 {
        for policy in EVICTING.into_iter().skip(workers % 2).step_by(workers) {
            let volatile = policy.choice().is_some_and(|choice| choice.volatile);
            let mut rig = rig(workers, LIMIT as u64, policy);
            rig.run("KEYSPACE CREATE c PREFIX c: REGIME lattice GOSSIP 5");
            rig.run("KEYSPACE CREATE kept PREFIX c:kept REGIME lattice EVICT no");
            rig.run("SETEX c:kept 10000 value");
            let clients: Vec<_> = (0..workers).map(|worker| rig.connect(worker)).collect();
            let mut rng = Rng::new(11);
            for i in 0..6_000 {
                let (n, client) = (rng.below(KEYS), clients[i % workers]);
                let text = "x".repeat(rng.below(900) as usize);
                let request = if volatile {
                    format!("SETEX c:{n} {} {text}", 100 + n)
                } else {
                    format!("SET c:{n} {text}")
                };
                let reply = rig.run_on(client, &request);
                assert_eq!(reply, "+OK\r\n", "{workers} {policy:?}");
                if i % 8 == 0 {
                    rig.advance_ms(5);
                }
                // What is deleted is free some epochs later.
                let used = charged(&rig);
                assert!(used <= LIMIT + LIMIT / 4, "{workers} {policy:?}: {used}");
            }
            rig.advance_ms(2_000);
            let (used, kept) = (charged(&rig), info(&mut rig, "evicted_keys"));
            assert!(used <= LIMIT + 1_000, "{workers} {policy:?}: {used}");
            assert!(used > LIMIT / 2, "{workers} {policy:?}: {used}");
            assert!(kept > 300, "{workers} {policy:?}: {kept}");
            assert_eq!(info(&mut rig, "evicted_lattice_keys"), kept);
            let one = values(&mut rig, 0, KEYS);
            for worker in 0..workers {
                assert_eq!(values(&mut rig, worker, KEYS), one, "{policy:?}");
            }
            rig.check("GET c:kept", "$5\r\nvalue\r\n");
        }
    }
}

#[test]
fn an_eviction_spares_what_it_has_not_seen() {
    let mut rig = rig(2, 1 << 20, MaxmemoryPolicy::AllKeysLru);
    rig.run("KEYSPACE CREATE c PREFIX c: REGIME lattice GOSSIP 60000");
    let clients = [rig.connect(0), rig.connect(1)];
    // Both add to each set, of which one worker is the primary; then there is no room.
    for n in 0..200 {
        for (at, client) in clients.into_iter().enumerate() {
            rig.run_on(client, &format!("SADD c:{n} member-{at}"));
        }
    }
    rig.advance_ms(1_000);
    let one = rig.run_on(clients[0], "KEYS *").lines().count();
    let half = charged(&rig) / 2;
    rig.run(&format!("CONFIG SET maxmemory {half}"));
    rig.advance_ms(1_000);
    let evicted = info(&mut rig, "evicted_lattice_keys") as usize;
    assert!((1..one).contains(&evicted), "{evicted}");
    rig.run("CONFIG SET maxmemory 0");
    rig.run("KEYSPACE ALTER c GOSSIP 5");
    rig.advance_ms(2_000);
    let (mut both, mut single) = (0, 0);
    for n in 0..200 {
        let members = rig.run(&format!("SCARD c:{n}"));
        match &*members {
            ":2\r\n" => both += 1,
            ":1\r\n" => single += 1,
            _ => panic!("{members}"),
        }
    }
    assert_eq!((both, single), (200 - evicted, evicted));
}

/// The keys of least value may not be evicted: others go.
#[test]
fn keys_that_stay_do_not_stand_in_the_way_of_others() {
    for (regime, policy) in [
        ("strict", MaxmemoryPolicy::AllKeysLru),
        ("lattice", MaxmemoryPolicy::AllKeysLru),
        ("lattice", MaxmemoryPolicy::VolatileTtl),
        ("strict", MaxmemoryPolicy::AllKeysRandom),
    ] {
        let mut rig = rig(2, 1 << 20, policy);
        rig.run("KEYSPACE CREATE c PREFIX c: REGIME lattice GOSSIP 5");
        rig.run(&format!(
            "KEYSPACE CREATE k PREFIX k: REGIME {regime} EVICT no"
        ));
        let clients = [rig.connect(0), rig.connect(1)];
        let text = "x".repeat(500);
        for n in 0..600 {
            rig.run_on(clients[n % 2], &format!("SETEX k:{n} 10000 {text}"));
        }
        rig.advance_ms(1_000);
        for n in 0..2_000 {
            for key in ["c:", "s"] {
                let set = format!("SETEX {key}{n} 20000 {text}");
                let reply = rig.run_on(clients[n % 2], &set);
                assert_eq!(reply, "+OK\r\n", "{regime} {policy:?}, {key}{n}");
            }
            rig.advance_ms(3);
        }
        rig.advance_ms(1_000);
        let used = charged(&rig);
        assert!(used <= (1 << 20) + 1_000, "{regime} {policy:?}: {used}");
        for client in clients {
            for n in 0..600 {
                rig.check_on(client, &format!("EXISTS k:{n}"), ":1\r\n");
            }
        }
    }
}
