//! Epochs amid commands over several workers: they neither wait for the end of
//! all of them, nor show anything of one before it is committed everywhere.

use super::world::{DEL, SET, World};
use rufous_base::WorkerId;
use rufous_datatype::replicated::Writer;
use rufous_kernel::keyspace::Keyspace;
use rufous_kernel::shard::{ExpirySetting, NewValue};
use rufous_lattice::Stamp;

/// Three workers with logs; what is sent of one keyspace is taken over together,
/// another has no order.
fn world(seed: u64) -> World {
    let mut world = World::new(3, seed);
    world.restart(3);
    let of = |prefix: &str, cut| Keyspace {
        cut,
        gossip_ms: 1,
        ..World::keyspace(prefix, 0)
    };
    for keyspace in [of("cut:", true), of("free:", false)] {
        let table = world.workers[0].keyspaces().with(keyspace).unwrap();
        assert_eq!(world.change(0, table), b"OK");
    }
    world.run_to_quiet();
    world
}

/// A strict key of this worker.
fn strict(world: &World, owner: u16) -> Vec<u8> {
    let names = (0..).map(|n| format!("strict:{n}").into_bytes());
    let placement = world.workers[0].placement();
    let mut owned = names.filter(|name| placement.owner(name) == WorkerId(owner));
    owned.next().expect("there is one")
}

/// What the replica of a worker shows, whoever holds the key.
fn shown(world: &mut World, w: usize, name: &[u8]) -> Option<u64> {
    let (now, shard) = (world.now, &mut world.workers[w].shard);
    let key = shard.key(name);
    let value = shard.peek(0, key, now).expect("a string")?;
    Some(std::str::from_utf8(value.bytes()).unwrap().parse().unwrap())
}

#[test]
fn epochs_come_through_however_many_commands_hold_their_keys() {
    for seed in 0..10 {
        for name in [&b"cut:hot"[..], b"free:hot"] {
            let mut world = world(seed);
            let others = [strict(&world, 1), strict(&world, 2)];
            let mut asked = Vec::new();
            for round in 0..400u64 {
                // There is always one that holds the key, and one that waits.
                while asked.len() < 4 {
                    let other = &*others[world.draw(2)];
                    let value = round.to_string();
                    asked.push(world.submit(0, SET, value.as_bytes(), &[name, other]));
                }
                world.wait(100);
                (0..3).for_each(|w| world.end_turn(w));
                for _ in 0..world.draw(4) {
                    world.deliver();
                }
                asked.retain(|&seq| !world.is_answered(seq));
                assert!(!asked.is_empty() || round == 0);
            }
            let newest = shown(&mut world, 0, name).expect("it was written");
            assert!(newest > 300, "seed {seed}: the commands do not end");
            for w in [1, 2] {
                let there = shown(&mut world, w, name);
                assert!(there > Some(200), "seed {seed}: {there:?} of {newest}");
            }
            assert!(world.workers[0].replication_figures().epochs_waited > 0);
            world.run_to_quiet();
            world.assert_converged(&[name.to_vec()]);
        }
    }
}

#[test]
fn nothing_is_shown_elsewhere_that_a_crash_would_take_back() {
    for seed in 0..10 {
        for crash in [false, true] {
            for name in [&b"cut:key"[..], b"free:key"] {
                let mut world = world(seed);
                let other = strict(&world, 2);
                world.stalled = Some(2);
                world.submit(0, SET, b"7", &[name, &other]);
                for _ in 0..20 {
                    world.wait(1_000);
                    (0..3).for_each(|w| world.end_turn(w));
                    while world.deliver() {}
                }
                assert_eq!(shown(&mut world, 0, name), Some(7), "it is written here");
                assert_eq!(shown(&mut world, 1, name), None, "seed {seed}");
                world.stalled = None;
                let left = match crash {
                    true => {
                        world.restart(3);
                        &b"|"[..]
                    }
                    false => b"7|",
                };
                world.run_to_quiet();
                assert_eq!(world.read(name), left);
                world.assert_converged(&[name.to_vec()]);
            }
        }
    }
}

/// A clock that is ahead writes to a key of another worker; then its owner deletes the key. The real time was set back
/// meanwhile, by less than what refuses writes, so that the owner's clock has only the times that it has heard of.
#[test]
fn a_deletion_comes_after_a_write_of_a_worker_whose_clock_is_ahead() {
    let mut world = World::new(2, 1);
    world.create("one:", 1);
    let placement = world.workers[0].placement();
    let names = (0..).map(|n| format!("one:{n}").into_bytes());
    let (own, others): (Vec<_>, Vec<_>) = names
        .take(20)
        .partition(|name| placement.owner(name) == WorkerId(0));
    world.submit(0, SET, b"ahead", &[&own[0]]);
    world.now.unix_us -= 8_000_000;
    world.submit(0, SET, b"written", &[&own[0], &others[0]]);
    world.run_to_quiet();
    assert_eq!(world.read(&others[0]), b"written|");
    world.submit(1, DEL, b"", &[&others[0]]);
    world.run_to_quiet();
    assert_eq!(world.read(&others[0]), b"|");
}

/// Where a clock was set back by more, writes are refused until the wall clock has reached the stamps, also after a
/// start: they are in the files.
#[test]
fn writes_are_refused_while_stamps_lead_and_after_a_start() {
    let mut world = World::new(2, 1);
    world.restart(2);
    world.create("all:", 0);
    world.submit(0, SET, b"ahead", &[b"all:k"]);
    world.run_to_quiet();
    world.now.unix_us -= 3_600_000_000;
    for is_new in [false, true] {
        if is_new {
            world.restart(2);
        }
        for worker in [0, 1] {
            let seq = world.submit(worker, SET, b"later", &[b"all:k"]);
            world.run_to_quiet();
            let reply = String::from_utf8(world.reply(seq)).expect("text");
            assert!(reply.contains("stamps that lead"), "{reply}");
            assert_eq!(world.read(b"all:k"), b"ahead|");
            let seq = world.submit(worker, SET, b"strict", &[b"other"]);
            world.run_to_quiet();
            assert_eq!(world.reply(seq), b"");
        }
    }
    world.wait(3_600_000_000);
    for worker in [0, 1] {
        let (seq, text) = (
            world.submit(worker, SET, b"later", &[b"all:k"]),
            &b"later|"[..],
        );
        world.run_to_quiet();
        assert_eq!(world.reply(seq), b"");
        assert_eq!(world.read(b"all:k"), text);
        world.submit(worker, DEL, b"", &[b"all:k"]);
        world.run_to_quiet();
        assert_eq!(world.read(b"all:k"), b"|");
    }
}

/// A reading in another age is never followed: later writes and deletions count, also after a start.
#[test]
fn a_reading_beyond_all_stamps_leaves_nothing_behind() {
    let mut world = World::new(2, 1);
    world.restart(2);
    world.create("all:", 0);
    world.submit(0, SET, b"first", &[b"all:k"]);
    world.run_to_quiet();
    let right = world.now;
    world.now.unix_us = 1 << 52;
    for is_new in [false, true] {
        if is_new {
            world.restart(2);
        }
        for worker in [0, 1] {
            let seq = world.submit(worker, SET, b"lost", &[b"all:k"]);
            world.run_to_quiet();
            let reply = String::from_utf8(world.reply(seq)).expect("text");
            assert!(reply.contains("beyond the year 2099"), "{reply}");
            assert_eq!(world.read(b"all:k"), b"first|");
        }
    }
    world.now.unix_us = right.unix_us + (world.now.mono_us - right.mono_us);
    for is_new in [false, true] {
        if is_new {
            world.restart(2);
        }
        for (worker, text) in [(0, &b"second"[..]), (1, b"third")] {
            world.submit(worker, SET, text, &[b"all:k"]);
            world.run_to_quiet();
            assert_eq!(world.read(b"all:k"), [text, b"|"].concat());
            world.submit(worker, DEL, b"", &[b"all:k"]);
            world.run_to_quiet();
            assert_eq!(world.read(b"all:k"), b"|");
        }
    }
}

/// Files of an earlier version may have stamps at the end of time, above which there is none. Writes are refused instead
/// of being ignored, and a keyspace that becomes strict and lattice again, with a start in between, has new stamps.
#[test]
fn stamps_at_the_end_of_time_are_left_by_a_change_of_regime() {
    let mut world = World::new(1, 1);
    world.restart(1);
    world.create("all:", 0);
    let last = Stamp::new(u64::MAX, 0);
    let shard = &mut world.workers[0].shard;
    shard.begin_lattice(Writer { stamp: last });
    let key = shard.key(b"all:k");
    let value = NewValue::Copy(b"old");
    shard.set(0, key, value, ExpirySetting::Clear, world.now);
    shard.end_lattice();
    world.run_to_quiet();
    world.restart(1);
    for (command, key) in [(SET, &b"all:k"[..]), (DEL, b"all:k"), (SET, b"all:new")] {
        let seq = world.submit(0, command, b"v", &[key]);
        world.run_to_quiet();
        let reply = String::from_utf8(world.reply(seq)).expect("text");
        assert!(reply.contains("stamps that lead"), "{reply}");
    }
    assert_eq!(world.read(b"all:k"), b"old|");
    let strict = world.workers[0].keyspaces().without("all").unwrap();
    assert_eq!(world.change(0, strict), b"OK");
    world.run_to_quiet();
    world.restart(1);
    world.create("all:", 0);
    for is_new in [false, true] {
        if is_new {
            world.restart(1);
        }
        assert_eq!(world.read(b"all:k"), b"old|");
        for text in [&b"a"[..], b"old"] {
            world.submit(0, SET, text, &[b"all:k"]);
            world.run_to_quiet();
            assert_eq!(world.read(b"all:k"), [text, b"|"].concat());
        }
    }
}
