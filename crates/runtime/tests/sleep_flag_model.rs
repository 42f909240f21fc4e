//! Every interleaving of the protocol that wakes a sleeping worker: the very
//! file that the rings use, compiled against loom's atomics.

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
}

#[path = "../src/ring/sleep_flag.rs"]
mod sleep_flag;

use sleep_flag::SleepFlag;
use sync::Ordering;

/// The tail of a ring: published with release, looked at with acquire, as rtrb does.
struct World {
    flag: SleepFlag,
    tails: [AtomicUsize; 2],
    wakes: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            flag: SleepFlag::new(),
            tails: [AtomicUsize::new(0), AtomicUsize::new(0)],
            wakes: AtomicUsize::new(0),
        })
    }

    fn publish(&self, ring: usize) {
        self.tails[ring].fetch_add(1, Ordering::Release);
        if self.flag.must_wake() {
            self.wakes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Looks, and looks again before sleep; returns what the last look saw.
    fn go_to_sleep(&self) -> usize {
        self.flag.withdraw();
        self.flag.announce();
        let seen = self.arrived();
        if seen > 0 {
            self.flag.withdraw();
        }
        seen
    }

    fn arrived(&self) -> usize {
        let arrived = self.tails.iter().map(|tail| tail.load(Ordering::Acquire));
        arrived.sum()
    }
}

#[test]
fn a_message_is_seen_before_sleep_or_wakes_from_it() {
    loom::model(|| {
        let world = World::new();
        let sender = thread::spawn({
            let world = Arc::clone(&world);
            move || world.publish(0)
        });
        let seen = world.go_to_sleep();
        sender.join().expect("sent");
        let wakes = world.wakes.load(Ordering::SeqCst);
        assert!(seen == 1 || wakes == 1, "lost");
        assert!(wakes <= 1);
    });
}

#[test]
fn of_two_senders_one_wakes_a_sleeper_that_saw_neither() {
    // Three threads: every interleaving with up to three preemptions.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = World::new();
        let senders = [0, 1].map(|ring| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.publish(ring))
        });
        let seen = world.go_to_sleep();
        for sender in senders {
            sender.join().expect("sent");
        }
        let wakes = world.wakes.load(Ordering::SeqCst);
        assert!(
            seen > 0 || wakes == 1,
            "lost, or woken twice from one sleep"
        );
    });
}

#[test]
fn a_second_message_is_not_lost_behind_the_first() {
    loom::model(|| {
        let world = World::new();
        let sender = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.publish(0);
                world.publish(0);
            }
        });
        let mut seen = world.go_to_sleep();
        if seen == 1 {
            // It has taken the first, and goes to sleep for more.
            world.flag.announce();
            seen = world.arrived();
        }
        sender.join().expect("sent");
        let wakes = world.wakes.load(Ordering::SeqCst);
        assert!(seen == 2 || wakes > 0, "lost");
    });
}
