//! What two processors of this machine cost one another: the constants that the model of more of them
//! is made of.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use rtrb::RingBuffer;
use serde::Serialize;

use super::drive::thread_cpu_ns;
use super::requests::{Value, Values};
use rufous_bench::servers::pin_this_thread;
use rufous_bench::stats::Summary;

/// Each figure is the lowest quartile of so many tries: anything that disturbs makes one slower.
const TRIES: usize = 41;
const ROUNDS: u64 = 2_000;
const MESSAGES: usize = 4096;
/// A flag waited for so long has a partner that does not run: only then is the processor given up.
const SPINS: u32 = 20_000;

/// Nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Constants {
    /// From a store of one processor until another has seen it.
    pub line: f64,
    /// Another processor takes a lock and overwrites 1 KiB that the first has just written.
    pub handover: f64,
    /// A message of a batch through a ring, at both ends together.
    pub ring: f64,
}

impl Constants {
    pub(crate) fn measure() -> Result<Self> {
        let line = lowest(|| turns(|_| ()))?;
        let value: Arc<Mutex<Box<Value>>> = Arc::new(Mutex::new(Box::new([0; _])));
        let mut values = [Values::new(0), Values::new(1)].map(Mutex::new);
        let handover = lowest(|| {
            turns(|side| {
                if let (Ok(mut held), Ok(mut mine)) = (value.lock(), values[side].lock()) {
                    held.copy_from_slice(mine.take());
                }
            })
        })?;
        black_box(&mut values);
        Ok(Self {
            line,
            handover,
            ring: lowest(ring)?,
        })
    }
}

fn lowest(mut one: impl FnMut() -> Result<f64>) -> Result<f64> {
    let tries: Result<Vec<f64>> = (0..TRIES).map(|_| one()).collect();
    Ok(Summary::of(tries?).low_quartile)
}

/// A line of its own.
#[repr(align(128))]
struct Flag(AtomicU64);

impl Flag {
    fn wait(&self, for_value: u64) {
        let mut spins = 0;
        while self.0.load(Ordering::Acquire) != for_value {
            spins += 1;
            if spins % SPINS == 0 {
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
    }
}

/// What one turn takes where two processors take turns to do `work`.
fn turns(work: impl Fn(usize) + Sync) -> Result<f64> {
    let flag = Flag(AtomicU64::new(0));
    let side = |own: u64| -> Result<f64> {
        pin_this_thread(own as usize)?;
        let began = Instant::now();
        for round in 0..ROUNDS {
            let turn = 2 * round + own;
            flag.wait(turn);
            work(own as usize);
            flag.0.store(turn + 1, Ordering::Release);
        }
        Ok(began.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64)
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| side(1));
        let own = scope.spawn(|| side(0));
        let ends = [own, other].map(|end| {
            end.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let [own, other] = ends;
        Ok(own?.min(other?))
    })
}

/// Batches that one processor sends and the other looks into, per message.
fn ring() -> Result<f64> {
    let (mut into, mut out) = RingBuffer::<Arc<[u8]>>::new(MESSAGES);
    let bytes: Arc<[u8]> = Arc::from(&[7u8; 64][..]);
    let all: Vec<_> = (0..MESSAGES).map(|_| bytes.as_ref().into()).collect();
    let sender = move || -> Result<f64> {
        pin_this_thread(0)?;
        let began = thread_cpu_ns();
        for message in all {
            black_box(into.push(message).is_ok());
        }
        Ok(thread_cpu_ns() - began)
    };
    let sent = thread::scope(|scope| join(scope.spawn(sender)))?;
    let receiver = move || -> Result<f64> {
        pin_this_thread(1)?;
        let began = thread_cpu_ns();
        while let Ok(message) = out.pop() {
            black_box(message[0]);
        }
        Ok(thread_cpu_ns() - began)
    };
    let received = thread::scope(|scope| join(scope.spawn(receiver)))?;
    Ok((sent + received) / MESSAGES as f64)
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn sides_take_turns() {
        let last = AtomicUsize::new(1);
        let wrong = AtomicUsize::new(0);
        let took = turns(|side| {
            if last.swap(side, Ordering::Relaxed) == side {
                wrong.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(took.unwrap() > 0.0);
        assert_eq!(wrong.into_inner(), 0);
    }
}
