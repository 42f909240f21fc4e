//! Sessions in process [Anna §VI-D]: two workers below connections and commands, whose clients do six
//! operations at a time.
//!
//! A session stays with its worker, as a connection does: its level is what the worker does.

use anyhow::Result;
use rufous_base::Now;
use rufous_kernel::replicate::level::Level;
use rufous_lattice::Stamp;

use super::drive::{Client, Contestant, Reach};
use super::requests::{Key, VALUE_BYTES, Value};
use super::rufous::{Worker, workers_at};
use super::sixes::{OPERATIONS, STEPS, Way};

/// Keys of a request become so many operations.
pub(crate) const OPERATIONS_PER_KEY: f64 = OPERATIONS as f64 / 2.0;

/// A worker and its clients.
struct Served {
    worker: Worker,
    way: Way,
    reply: Box<Value>,
    /// What a client has of the two records of a transaction.
    own: Box<[Value; 2]>,
}

/// What clients do: their level, and how they do six operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub level: Level,
    pub way: Way,
}

/// So many workers with replicas of all keys, and clients.
pub(crate) fn contestant(
    name: &str,
    habit: Habit,
    keys: u64,
    threads: usize,
) -> Result<Contestant> {
    let workers = workers_at(habit.level, keys, threads, 0)?;
    let served = |worker| -> Box<dyn Client> { Box::new(Served::new(worker, habit.way)) };
    let clients = workers.into_iter().map(served).collect();
    Ok(Contestant::new(name, Reach::All, clients))
}

impl Served {
    fn new(worker: Worker, way: Way) -> Self {
        Self {
            worker,
            way,
            reply: Box::new([0; VALUE_BYTES]),
            own: Box::new([[0; VALUE_BYTES]; 2]),
        }
    }

    fn six(&mut self, records: &[Key; 2], now: Now) {
        let mut stamp = None;
        for (step, &(record, writes)) in STEPS.iter().enumerate() {
            match (self.way.asks(step), writes) {
                (true, true) => self.write(&records[record], None, &mut stamp, now),
                (true, false) => {
                    self.read(&records[record], now);
                    if self.way == Way::Cached {
                        self.own[record] = *self.reply;
                    }
                }
                (false, true) => self.own[record] = *self.worker.values.take(),
                (false, false) => *self.reply = self.own[record],
            }
        }
        if matches!(self.way, Way::Buffered | Way::Cached) {
            for (record, key) in records.iter().enumerate() {
                self.write(key, Some(record), &mut stamp, now);
            }
        }
    }

    fn read(&mut self, key: &Key, now: Now) {
        let shard = &mut self.worker.shard;
        let name = shard.key(key);
        if let Ok(Some(value)) = shard.get(0, name, now) {
            let bytes = value.bytes();
            self.reply[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Writes what the client has of a record, or something new. The writes of a transaction go on
    /// with its stamp.
    fn write(&mut self, key: &Key, own: Option<usize>, transaction: &mut Option<Stamp>, now: Now) {
        let worker = &mut self.worker;
        let stamp = match (self.way, *transaction) {
            (Way::Single, _) | (_, None) => worker.replicas.stamp(now),
            (_, Some(last)) => Stamp {
                step: last.step.saturating_add(1),
                ..last
            },
        };
        *transaction = Some(stamp);
        let value = match own {
            Some(record) => &self.own[record],
            None => worker.values.take(),
        };
        let name = worker.shard.key(key);
        let write = (stamp, worker.is_shared);
        worker.shard.put_register(0, name, write, value, now);
    }
}

impl Client for Served {
    fn update(&mut self, keys: &[Key]) {
        let now = self.worker.now();
        for records in keys.as_chunks::<2>().0 {
            self.six(records, now);
        }
        self.worker
            .replicas
            .wrote(now, self.worker.shard.changeset());
        self.worker.attend(now);
    }

    fn worker(&mut self) -> Option<&mut Worker> {
        Some(&mut self.worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::TURN;
    use crate::requests::Popularity;
    use rufous_base::rng::Rng;

    const KEYS: u64 = 300;

    fn served(level: &str, way: Way) -> (Vec<Served>, Vec<Key>) {
        let workers = workers_at(level.parse().unwrap(), KEYS, 2, 0).unwrap();
        let all = workers.into_iter().map(|w| Served::new(w, way));
        let requests = Popularity::new(KEYS, 0.5).requests(TURN, &mut Rng::new(7));
        (all.collect(), requests)
    }

    #[test]
    fn writes_of_a_transaction_have_one_time() {
        for (way, times) in [
            (Way::Single, 2),
            (Way::Begun("read-uncommitted"), 1),
            (Way::Buffered, 1),
            (Way::Cached, 1),
        ] {
            let (mut all, requests) = served("eventual", way);
            let pair = [
                requests[0],
                *requests.iter().find(|k| **k != requests[0]).unwrap(),
            ];
            let now = all[0].worker.now();
            all[0].six(&pair, now);
            let shard = &mut all[0].worker.shard;
            let newest = pair.map(|key| {
                let name = shard.key(&key);
                let shown = shard.show_replica(0, name, now, &mut |_, _| {});
                shown.unwrap().newest
            });
            assert!(newest[0] < newest[1], "{way:?}");
            assert_eq!(
                1 + usize::from(newest[0].time != newest[1].time),
                times,
                "{way:?}"
            );
        }
    }
}
