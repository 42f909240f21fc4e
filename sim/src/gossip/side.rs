//! A second keyspace beside the one that is judged: its level is eventual, and it has no causal cuts. Its changes travel in
//! the same epochs, under other rules; when all is quiet its replicas are equal.

use super::deeds::same;
use super::seat::Seat;
use crate::engine::random::Random;
use rufous_kernel::shard::{ExpirySetting, NewValue};

/// All of its keys begin so.
pub const PREFIX: &[u8] = b"j";
const KEYS: [&str; 3] = ["j1", "j2", "j3"];

/// See the module's description.
#[derive(Debug)]
pub struct Side {
    random: Random,
    written: u64,
}

impl Side {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed, "gossip's side"),
            written: 0,
        }
    }

    pub fn pick(&mut self, nodes: &[usize]) -> usize {
        *self.random.pick(nodes)
    }

    /// Which of a node's workers writes next, if one does, and what.
    pub fn draw(&mut self, workers: usize) -> Option<(usize, &'static str)> {
        let (worker, key) = (self.random.index(workers), *self.random.pick(&KEYS));
        self.random.chance(0.3).then_some((worker, key))
    }

    /// Writes or removes a key, at a worker that has a replica of it.
    pub fn write(&mut self, seat: &mut Seat, key: &str, us: u64) {
        let removes = self.random.chance(0.3);
        self.written += 1;
        let text = self.written.to_string();
        seat.write(us, |shard, now| {
            let name = shard.key(key.as_bytes());
            if removes {
                shard.remove(0, name, now);
                return;
            }
            let value = NewValue::Copy(text.as_bytes());
            shard.set(0, name, value, ExpirySetting::Clear, now);
        });
    }
}

/// When all is quiet, of the workers of all nodes.
pub fn judge(seats: &mut [&mut Seat], us: u64) -> Result<(), String> {
    for key in KEYS {
        same(seats, key, |seat| seat.text(us, key.as_bytes()))?;
    }
    Ok(())
}
