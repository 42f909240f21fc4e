//! What is known about others, and what that allows to be forgotten.

use super::*;
use proptest::prelude::*;

fn said(upto: u64, least: u64, horizon: u64) -> Report {
    Report {
        upto,
        least,
        horizon,
        ..Report::default()
    }
}

fn by(epoch: u64, all: u64) -> Report {
    Report {
        epoch,
        ..said(all, all, all)
    }
}

fn nodes(all: &[u16]) -> BTreeSet<u16> {
    all.iter().copied().collect()
}

/// Worker 1 of node 1 of two workers, in a cluster with nodes 0 and 2.
fn in_cluster() -> Heard {
    let mut heard = Heard::new(65, 64, 2);
    heard.act_by(1, &nodes(&[0, 1, 2]), 3);
    heard.hear(64, &by(1, 50));
    heard
}

#[test]
fn nothing_is_known_before_every_node_has_spoken() {
    let mut heard = in_cluster();
    assert_eq!((heard.least(), heard.horizon()), (0, 0));
    assert_eq!(heard.least_here(), 50);
    heard.meet(0, 1);
    heard.meet(2, 2);
    heard.hear(0, &by(1, 40));
    heard.hear(128, &by(1, 30));
    assert_eq!(heard.settled(), 0, "the other worker of node 2");
    heard.hear(129, &by(1, 45));
    assert_eq!((heard.least(), heard.settled()), (30, 30));
    assert_eq!(heard.nodes(), [(0, 40), (2, 30)]);
}

/// A node that starts hears its own workers first.
#[test]
fn nothing_is_forgotten_before_the_mapping_is_known() {
    for workers in 1..3 {
        let mut heard = Heard::new(64, 64, workers);
        heard.await_mapping();
        if workers > 1 {
            heard.hear(65, &by(0, 50));
        }
        assert_eq!((heard.horizon(), heard.settled()), (0, 0));
        heard.forget(20);
        assert_eq!(heard.settled(), 20, "what others had forgotten");
        heard.act_by(1, &nodes(&[0, 1]), 2);
        assert_eq!(heard.settled(), 20);
        heard.meet(0, 1);
        heard.hear(0, &by(1, 40));
        assert_eq!(heard.settled(), 40);
    }
}

#[test]
fn who_is_dropped_is_awaited_until_all_know_and_never_heard_again() {
    let mut heard = in_cluster();
    heard.meet(0, 1);
    heard.meet(2, 1);
    heard.hear(0, &by(1, 40));
    heard.hear(128, &by(1, 10));
    heard.act_by(2, &nodes(&[0, 1]), 3);
    heard.hear(0, &by(1, 41));
    assert_eq!(heard.settled(), 10, "node 0 may tell what it has of node 2");
    heard.hear(0, &by(2, 42));
    assert_eq!(heard.settled(), 10, "so may the other worker here");
    heard.hear(64, &by(2, 60));
    assert_eq!((heard.least(), heard.settled()), (42, 42));
    heard.meet(2, 1);
    assert!(!heard.knows(128));
    // A joining node is waited for, and the horizon does not go back.
    heard.pass(42);
    heard.act_by(3, &nodes(&[0, 1, 3]), 4);
    assert_eq!((heard.least(), heard.horizon()), (0, 42));
    assert_eq!(heard.settled(), 0);
}

#[test]
fn who_comes_before_the_mapping_says_so_is_awaited() {
    let mut heard = in_cluster();
    heard.meet(0, 1);
    heard.meet(2, 1);
    for replica in [0, 128] {
        heard.hear(replica, &by(1, 40));
    }
    assert_eq!(heard.settled(), 40);
    heard.meet(3, 1);
    heard.act_by(1, &nodes(&[0, 1, 2]), 3);
    assert_eq!(heard.settled(), 0);
    heard.hear(192, &by(2, 44));
    assert_eq!(heard.settled(), 40);
    // It joined and left between two mappings that were received here.
    heard.meet(4, 1);
    heard.act_by(4, &nodes(&[0, 1, 2, 3]), 5);
    assert!(heard.settled() == 0 && heard.knows(256));
    for replica in [0, 64, 128, 192] {
        heard.hear(replica, &by(4, 50));
    }
    assert!(heard.settled() == 50 && !heard.knows(256));
}

#[test]
fn one_worker_alone_forgets_at_once() {
    let heard = Heard::new(0, 0, 1);
    assert_eq!((heard.least(), heard.horizon()), (u64::MAX, u64::MAX));
}

#[test]
fn the_horizon_waits_for_the_slowest_and_for_what_it_says() {
    let mut heard = Heard::new(1, 0, 3);
    heard.hear(0, &said(10, 5, 0));
    assert_eq!((heard.least(), heard.horizon()), (0, 0));
    heard.hear(2, &said(7, 9, 6));
    assert_eq!((heard.least(), heard.horizon()), (7, 5));
    heard.hear(0, &said(9, 8, 3));
    assert_eq!(heard.settled(), 3);
    assert_eq!(
        (heard.least(), heard.horizon()),
        (7, 7),
        "nothing is unsaid"
    );
    heard.hear(1, &said(1, 1, 1));
    assert_eq!(heard.least(), 7, "what it hears of itself means nothing");
}

#[test]
fn what_a_change_may_depend_on_is_covered_or_not() {
    let mut heard = Heard::new(2, 0, 3);
    heard.hear(
        0,
        &Report {
            sent: 10,
            ..Report::default()
        },
    );
    heard.hear(
        1,
        &Report {
            sent: 4,
            ..Report::default()
        },
    );
    heard.hear(1, &said(99, 0, 0));
    assert!(heard.covers(0, &[(0, 99), (1, 4), (2, 99)]));
    assert!(!heard.covers(0, &[(0, 99), (1, 5), (2, 99)]));
    assert!(heard.covers(1, &[(0, 10), (1, 99), (2, 0)]));
    assert!(!heard.covers(1, &[(0, 11), (1, 0), (2, 0)]));
}

proptest! {
    /// Changes are given out by a common clock, sent in order on wires of
    /// any speed: whatever is below a worker's horizon, everybody has.
    #[test]
    fn nobody_lacks_what_is_below_a_horizon(
        workers in 2usize..5,
        steps in prop::collection::vec((0usize..5, 0usize..5, 0u8..3), 0..300),
    ) {
        type Said = (u64, u64, u64, Vec<u64>);
        let mut heard: Vec<_> = (0..workers).map(|w| Heard::new(w as u16, 0, workers)).collect();
        let mut wires = vec![vec![std::collections::VecDeque::<Said>::new(); workers]; workers];
        let mut fresh = vec![Vec::<u64>::new(); workers];
        let mut has = vec![BTreeSet::<u64>::new(); workers];
        let mut clock = 0;
        for (a, b, what) in steps {
            let (a, b) = (a % workers, b % workers);
            match what {
                0 => {
                    clock += 1;
                    fresh[a].push(clock);
                    has[a].insert(clock);
                }
                1 => {
                    clock += 1;
                    let changes = std::mem::take(&mut fresh[a]);
                    let said = (clock, heard[a].least(), heard[a].horizon(), changes);
                    for to in (0..workers).filter(|&to| to != a) {
                        wires[a][to].push_back(said.clone());
                    }
                }
                _ => if let Some((upto, least, horizon, changes)) = wires[a][b].pop_front() {
                    has[b].extend(changes);
                    heard[b].hear(a as u16, &said(upto, least, horizon));
                }
            }
            let all: BTreeSet<u64> = has.iter().flatten().copied().collect();
            let horizons = heard.iter().map(Heard::horizon);
            let lowest = horizons.min().unwrap_or(0);
            for heard in &heard {
                prop_assert!(heard.settled() <= lowest);
                let below = || all.range(..=heard.horizon());
                prop_assert!(has.iter().all(|has| below().all(|t| has.contains(t))));
            }
        }
    }
}
