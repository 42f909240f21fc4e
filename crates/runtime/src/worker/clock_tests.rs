//! The time of a step is read after its input has arrived, whatever came before in the turn.

use super::Driven;
use crate::clock::Clock;
use rufous_base::{Actor, ConnId, Effects, Input, Now, Read};
use std::time::Duration;

const BLOCKED: Duration = Duration::from_millis(20);

/// Blocks in each step, as a slow command or a write to a disk that does not answer may.
#[derive(Default)]
struct Slow {
    times_us: Vec<u64>,
}

impl Actor for Slow {
    type Message = ();

    fn step(&mut self, now: Now, _: Input<'_, ()>, fx: &mut Effects<()>) {
        self.times_us.push(now.mono_us);
        // The third step has work left over.
        fx.more = self.times_us.len() == 3;
        std::thread::sleep(BLOCKED);
    }
}

#[test]
fn what_arrives_during_a_step_is_not_stepped_with_its_time() {
    let clock = Clock::new();
    let mut driven = Driven {
        actor: Slow::default(),
        fx: Effects::default(),
        clock,
        now: clock.now(),
        steps: 0,
    };
    let conn = ConnId {
        slot: 0,
        generation: 1,
    };
    let (start, end) = (0, 1);
    let reads = [Read { conn, start, end }];
    driven.step(Input::Tick, &[]);
    let bytes = &b"x"[..];
    driven.step(
        Input::Received {
            bytes,
            reads: &reads,
        },
        bytes,
    );
    driven.step(Input::Closed { conn }, &[]);
    let times = driven.actor.times_us;
    let least = BLOCKED.as_micros() as u64;
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        times.len() == 4 && steps.into_iter().all(|us| us >= least),
        "{times:?}"
    );
}
