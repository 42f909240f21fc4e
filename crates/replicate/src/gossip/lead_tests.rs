//! Stamps of a node whose clock is ahead are not taken before the clock here has reached them.

use super::tests::{Node, at, node};
use super::{Gossip, Sent};
use rufous_base::Now;

/// The clock of the node that is ahead.
fn ahead(ms: u64, by_ms: u64) -> Now {
    Now {
        unix_us: at(ms).unix_us + by_ms * 1_000,
        ..at(ms)
    }
}

fn deliver(to: &mut Node, from: u16, now: Now, sent: Vec<Sent>) {
    for Sent { peer, .. } in sent {
        to.hear(now, from, peer);
    }
    let held = Gossip::take_held(&mut to.gossip, now);
    to.take_all(now, held);
}

#[test]
fn what_leads_too_far_waits_until_the_clock_here_has_reached_it() {
    let [mut a, mut b] = [0, 1].map(node);
    a.gossip.up(1);
    b.gossip.up(0);
    let lead_ms = 60_000;
    let exchange = |a: &mut Node, b: &mut Node, range: std::ops::Range<u64>| {
        for ms in range.step_by(5) {
            let sent = a.say(ahead(ms, lead_ms));
            deliver(b, 0, at(ms), sent);
            let sent = b.say(at(ms));
            deliver(a, 1, ahead(ms, lead_ms), sent);
        }
    };
    a.set(ahead(1, lead_ms), b"k", b"early");
    b.set(at(2), b"k", b"own");
    exchange(&mut a, &mut b, 2..400);
    assert_eq!(b.get(at(400), b"k").as_deref(), Some(&b"own"[..]));
    assert!(b.gossip.figures().leading > 0);
    // Its own clock does not follow.
    assert!(b.replicas.stamp(at(400)).unix_us() < at(1_000).unix_us);
    a.set(ahead(401, lead_ms), b"kk", b"later");
    exchange(&mut a, &mut b, 401..49_000);
    assert_eq!(b.get(at(49_000), b"kk"), None);
    // The stamps lead by no more than the limit.
    exchange(&mut a, &mut b, 51_000..60_000);
    assert_eq!(b.get(at(60_000), b"kk").as_deref(), Some(&b"later"[..]));
    assert_eq!(b.get(at(60_000), b"k").as_deref(), Some(&b"early"[..]));
}
