//! Tests of evictors over shards, without workers.

use super::*;
use crate::shard::{ExpirySetting, NewValue, Policy};

fn at(ms: u64) -> Now {
    Now {
        mono_us: ms * 1000,
        unix_us: 1_700_000_000_000_000 + ms * 1000,
    }
}

struct Node {
    ledger: Arc<Ledger>,
    workers: Vec<(Shard, Evictor)>,
    now: Now,
}

impl Node {
    fn new(workers: usize, settings: Settings) -> Self {
        let ledger = Arc::new(Ledger::new(workers));
        let worker = |w| {
            let mut shard = Shard::new(w as u64);
            shard.set_policy(Policy {
                lfu: settings.choice.is_some_and(|c| c.by == By::Frequency),
                ..Policy::default()
            });
            let mut evictor = Evictor::new(Arc::clone(&ledger), w, 1);
            evictor.configure(settings, &shard);
            (shard, evictor)
        };
        let workers = (0..workers).map(worker).collect();
        Self {
            ledger,
            workers,
            now: at(1000),
        }
    }

    fn limit(&mut self, settings: Settings) {
        for (shard, evictor) in &mut self.workers {
            evictor.configure(settings, shard);
        }
    }

    /// One write in a step of its own, as a worker does it. Returns false if it was refused.
    fn set(&mut self, worker: usize, key: &str, len: usize, expiry: ExpirySetting) -> bool {
        let (shard, evictor) = &mut self.workers[worker];
        evictor.look();
        if evictor.make_room(shard, self.now, |_, _| Some(May::Evict)) == Room::None {
            return false;
        }
        let key = shard.key(key.as_bytes());
        shard.set(0, key, NewValue::Copy(&vec![7; len]), expiry, self.now);
        evictor.publish(shard);
        if evictor.take_asks() {
            for (_, (shard, evictor)) in self
                .workers
                .iter_mut()
                .enumerate()
                .filter(|w| w.0 != worker)
            {
                evictor.on_asked();
                evictor.step(shard, self.now, |_, _| Some(May::Evict));
                evictor.publish(shard);
            }
        }
        true
    }

    /// Ticks of all workers; returns the number of slices.
    fn ticks(&mut self) -> usize {
        let mut slices = 0;
        loop {
            let mut more = false;
            for (shard, evictor) in &mut self.workers {
                more |= evictor.step(shard, self.now, |_, _| Some(May::Evict));
                evictor.publish(shard);
            }
            slices += 1;
            if !more || slices > 100_000 {
                return slices;
            }
        }
    }

    fn has(&mut self, worker: usize, key: &str) -> bool {
        let shard = &mut self.workers[worker].0;
        let key = shard.key(key.as_bytes());
        shard.contains(0, key, self.now)
    }

    fn evicted(&self) -> u64 {
        self.workers.iter().map(|w| w.1.counters().evicted).sum()
    }
}

fn settings(bytes: usize, volatile: bool, by: By) -> Settings {
    Settings {
        bytes,
        choice: Some(Choice { volatile, by }),
        samples: 5,
    }
}

const KEEP: ExpirySetting = ExpirySetting::Clear;

fn expiring(now: Now, in_s: u64) -> ExpirySetting {
    ExpirySetting::At(now.unix_ms() + in_s * 1000)
}

const ALL_BY: [By; 4] = [By::Recency, By::Frequency, By::Random, By::Expiry];

#[test]
fn the_limit_holds_for_every_number_of_workers() {
    const LIMIT: usize = 1 << 20;
    for workers in 1..=4 {
        for by in &ALL_BY[..3] {
            let mut node = Node::new(workers, settings(LIMIT, false, *by));
            let mut rng = Rng::new(3);
            for i in 0..20_000u64 {
                // Sizes from tiny to large, and now and then a big value.
                let len = match rng.below(100) {
                    0 => rng.below(60_000),
                    n if n < 20 => rng.below(2000),
                    _ => rng.below(100),
                } as usize;
                let worker = rng.below(workers as u64) as usize;
                assert!(node.set(worker, &format!("k{i}"), len, KEEP));
                // One command of each worker may have crossed it.
                assert!(node.ledger.total() <= LIMIT + workers * 70_000);
            }
            node.ticks();
            assert!(node.ledger.total() <= LIMIT);
            // The limit is used: no more than the largest value was given up.
            assert!(node.ledger.total() > LIMIT - 100_000, "{workers} {by:?}");
            assert!(node.evicted() > 1000);
            for (shard, _) in &node.workers {
                shard.check();
            }
        }
    }
}

#[test]
fn only_the_small_worker_grows_and_the_large_one_pays() {
    const LIMIT: usize = 1 << 20;
    let mut node = Node::new(2, settings(LIMIT, false, By::Recency));
    for i in 0..20_000 {
        assert!(node.set(0, &format!("a{i}"), 64, KEEP));
    }
    assert!(node.workers[1].0.is_empty(0));
    for i in 0..4_000 {
        assert!(node.set(1, &format!("b{i}"), 64, KEEP));
        assert!(node.ledger.total() <= LIMIT + 10_000);
    }
    // Less than half of the limit, so none of it had to be evicted.
    assert_eq!(node.workers[1].0.len(0), 4_000);
    for i in 4_000..40_000 {
        assert!(node.set(1, &format!("b{i}"), 64, KEEP));
    }
    let charges: Vec<_> = node.workers.iter().map(|w| w.0.charged()).collect();
    assert!(
        charges.iter().all(|c| c.abs_diff(LIMIT / 2) < LIMIT / 16),
        "{charges:?}"
    );
}

#[test]
fn a_lowered_limit_is_reached_in_slices() {
    let mut node = Node::new(3, settings(8 << 20, false, By::Recency));
    for i in 0..30_000 {
        assert!(node.set(i % 3, &format!("k{i}"), 100, KEEP));
    }
    assert_eq!(node.evicted(), 0);
    node.limit(settings(1 << 20, false, By::Recency));
    let before = node.evicted();
    let (shard, evictor) = &mut node.workers[0];
    assert!(evictor.step(shard, node.now, |_, _| Some(May::Evict)));
    assert_eq!(evictor.counters().evicted - before, SLICE_KEYS as u64);
    assert!(node.ticks() > 10);
    assert!(node.ledger.total() <= 1 << 20);
    let charges: Vec<_> = node.workers.iter().map(|w| w.0.charged()).collect();
    assert!(charges.iter().all(|c| *c > (1 << 20) / 4), "{charges:?}");
}

#[test]
fn volatile_choices_take_what_expires_and_nothing_else() {
    for by in ALL_BY {
        let mut node = Node::new(1, settings(1 << 20, true, by));
        for i in 0..2_000 {
            assert!(node.set(0, &format!("stays{i}"), 100, KEEP));
        }
        for i in 0..20_000 {
            let expiry = expiring(node.now, 100 + i % 500);
            assert!(node.set(0, &format!("goes{i}"), 100, expiry));
        }
        assert!(node.evicted() > 5_000, "{by:?}");
        assert!((0..2_000).all(|i| node.has(0, &format!("stays{i}"))));
        // Without keys that expire there is no room; with some there is.
        let mut refused = 0;
        for i in 0..20_000 {
            refused += u32::from(!node.set(0, &format!("more{i}"), 100, KEEP));
        }
        assert!(refused > 5_000, "{by:?}");
        assert_eq!(node.workers[0].0.counted_expiring_len(0), 0);
        assert!((0..2_000).all(|i| node.has(0, &format!("stays{i}"))));
    }
}

#[test]
fn keys_that_expire_elsewhere_are_asked_for() {
    const LIMIT: usize = 1 << 20;
    let mut node = Node::new(2, settings(LIMIT, true, By::Recency));
    for i in 0..3_000 {
        let expiry = expiring(node.now, 1000);
        assert!(node.set(1, &format!("goes{i}"), 100, expiry));
    }
    let mut accepted = 0;
    while node.set(0, &format!("stays{accepted}"), 100, KEEP) {
        assert!(node.ledger.total() <= LIMIT + LIMIT / 8);
        accepted += 1;
    }
    assert!(
        node.workers[1].0.is_empty(0),
        "all that could go went first"
    );
    assert!((LIMIT - 1000..LIMIT + 1000).contains(&node.ledger.total()));
    assert!(!node.set(1, "here neither", 100, KEEP));
}

#[test]
fn the_soonest_to_expire_goes_first() {
    let mut node = Node::new(1, settings(1 << 20, true, By::Expiry));
    let mut rng = Rng::new(8);
    let mut order: Vec<u64> = (0..5_000).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    for n in &order {
        let expiry = expiring(node.now, 1000 + n);
        assert!(node.set(0, &format!("k{n}"), 100, expiry));
    }
    assert_eq!(node.evicted(), 0);
    node.limit(settings(300_000, true, By::Expiry));
    node.ticks();
    let evicted = node.evicted();
    assert!(evicted > 1_000);
    for n in 0..5_000 {
        assert_eq!(node.has(0, &format!("k{n}")), n >= evicted, "{n}");
    }
}

#[test]
fn without_eviction_there_is_no_room_until_something_is_deleted() {
    let none = Settings {
        choice: None,
        ..settings(1 << 20, false, By::Random)
    };
    let mut node = Node::new(2, none);
    let mut keys = 0;
    while node.set(keys % 2, &format!("k{keys}"), 1000, KEEP) {
        keys += 1;
    }
    assert!(keys > 800);
    assert!(!node.set(1, "x", 1, KEEP));
    let shard = &mut node.workers[0].0;
    for i in (0..100).step_by(2) {
        let name = format!("k{i}");
        let key = shard.key(name.as_bytes());
        assert!(shard.remove(0, key, node.now));
    }
    node.ticks();
    assert!(node.set(1, "x", 1, KEEP));
    assert_eq!(node.evicted(), 0);
    assert!(node.workers.iter().any(|w| w.1.counters().refused > 0));
}

#[test]
fn the_least_recently_and_the_least_frequently_used_go() {
    for by in [By::Recency, By::Frequency] {
        let mut node = Node::new(1, settings(8 << 20, false, by));
        for i in 0..10_000 {
            assert!(node.set(0, &format!("k{i}"), 100, KEEP));
        }
        for round in 1..=50 {
            node.now = at(1000 + round * 1000);
            for i in 0..1_000 {
                let name = format!("k{i}");
                let shard = &mut node.workers[0].0;
                let key = shard.key(name.as_bytes());
                assert!(shard.get(0, key, node.now).expect("a string").is_some());
            }
        }
        node.limit(settings(400_000, false, by));
        node.ticks();
        let left = node.workers[0].0.len(0);
        let kept = (0..1_000).filter(|i| node.has(0, &format!("k{i}"))).count();
        assert!((2_000..5_000).contains(&left), "{left}");
        assert!(kept >= 995, "{by:?} kept {kept}");
    }
}

#[test]
fn large_growth_is_paid_back_by_those_who_come_after() {
    const LIMIT: usize = 32 << 20;
    let mut node = Node::new(1, settings(LIMIT, false, By::Recency));
    for i in 0..400_000 {
        assert!(node.set(0, &format!("k{i}"), 20, KEEP));
    }
    let (shard, evictor) = &mut node.workers[0];
    assert!(evictor.make_room(shard, node.now, |_, _| Some(May::Evict)) == Room::Enough);
    for i in 0..8 {
        let name = format!("large{i}");
        let (shard, _) = &mut node.workers[0];
        let key = shard.key(name.as_bytes());
        shard.edit((0, key), 1 << 20, [], node.now, |_| ());
        assert!(node.set(0, "small", 1, KEEP));
        assert!(node.workers[0].0.charged() <= LIMIT + LIMIT / OWED_SHARE + (2 << 20));
    }
    let before = node.evicted();
    for i in 0..2_000 {
        assert!(node.set(0, &format!("small{i}"), 1, KEEP));
    }
    assert!(node.evicted() - before < 2_000 * (COMMAND_KEYS as u64 + 2));
    assert!(node.workers[0].0.charged() <= LIMIT + 10_000);
}

#[test]
fn keys_that_must_stay_are_passed_over() {
    let mut node = Node::new(1, settings(1 << 20, false, By::Random));
    for i in 0..2_000 {
        assert!(node.set(0, &format!("k{i}"), 100, KEEP));
    }
    node.limit(settings(100_000, false, By::Random));
    let (shard, evictor) = &mut node.workers[0];
    let kept = |key: &[u8]| key.ends_with(b"7");
    while evictor.step(shard, node.now, |_, key| (!kept(key)).then_some(May::Evict)) {}
    let charged = shard.charged();
    assert!(charged <= 100_000, "{charged}");
    assert!((0..200).all(|i| node.has(
        0,
        &format!("k{}7", if i == 0 { String::new() } else { i.to_string() })
    )));
    // Nothing but them: the search ends.
    let (shard, evictor) = &mut node.workers[0];
    evictor.configure(settings(1, false, By::Random), shard);
    while evictor.step(shard, node.now, |_, key| (!kept(key)).then_some(May::Evict)) {}
    assert_eq!(shard.len(0), 200);
}

/// Entries of books are charged, but room is made by keys alone.
#[test]
fn books_are_charged_and_never_evicted() {
    const LIMIT: usize = 1 << 20;
    for by in ALL_BY {
        let mut node = Node::new(1, settings(LIMIT, false, by));
        let fill = |node: &mut Node, ids: std::ops::Range<u8>| {
            let shard = &mut node.workers[0].0;
            for n in ids {
                shard.set_book(7, &[n; 18], (&[n; 10_000], b""), node.now);
            }
        };
        fill(&mut node, 0..50);
        let expiry = expiring(node.now, 1000);
        (0..100).for_each(|n| assert!(node.set(0, &format!("k{n}"), 10_000, expiry)));
        assert!(node.evicted() > 30, "{by:?}");
        fill(&mut node, 50..110);
        while node.set(0, "last", 10_000, expiry) {
            node.ticks();
        }
        assert_eq!(node.workers[0].0.len(0), 0, "no key is left");
        assert_eq!(node.workers[0].0.books().count(), 110);
    }
}
