//! Sessions in process [Anna §VI-D]: two workers below connections and commands, whose clients do six
//! operations at a time.
//!
//! A session that stays with its worker, as a connection does, need not keep anything: there its level
//! is what the worker does. One that may move notes what it has seen, and now and then goes elsewhere
//! with all of that; here it comes back to the same worker, which costs as much.

use anyhow::Result;
use rufous_base::Now;
use rufous_kernel::replicate::level::{
    Level, monotonic_reads, monotonic_writes, read_your_writes, writes_follow_reads,
};
use rufous_kernel::replicate::session::{Seen, Session, State};
use rufous_lattice::Stamp;

use super::drive::{Client, Contestant, Reach};
use super::requests::{Key, VALUE_BYTES, Value};
use super::rufous::{Worker, workers_at};
use super::sixes::{OPERATIONS, STEPS, Way};

/// Clients of a worker.
const SESSIONS: usize = 512;
/// One in so many times six operations of a worker's sessions is the first after a move.
pub(crate) const SIXES_A_MOVE: usize = 10_000;
/// Keys of a request become so many operations.
pub(crate) const OPERATIONS_PER_KEY: f64 = OPERATIONS as f64 / 2.0;

/// A worker and its clients.
struct Served {
    worker: Worker,
    level: Level,
    way: Way,
    /// Sessions may move, and have something to keep for that.
    keeps: bool,
    sessions: Vec<Session>,
    next: usize,
    /// Times six operations since a session moved.
    since_move: usize,
    horizon: u64,
    reply: Box<Value>,
    /// What a client has of the two records of a transaction.
    own: Box<[Value; 2]>,
}

/// What clients do: their level, how they do six operations, and whether they may move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub level: Level,
    pub way: Way,
    pub moves: bool,
}

/// So many workers with replicas of all keys, and clients.
pub(crate) fn contestant(
    name: &str,
    habit: Habit,
    keys: u64,
    threads: usize,
) -> Result<Contestant> {
    let workers = workers_at(habit.level, keys, threads, 0)?;
    let served = |worker| -> Box<dyn Client> { Box::new(Served::new(worker, habit)) };
    let clients = workers.into_iter().map(served).collect();
    Ok(Contestant::new(name, Reach::All, clients))
}

/// Whether a level promises a session anything.
pub(crate) fn is_of_sessions(level: Level) -> bool {
    let guarantees = [
        monotonic_reads::LEVEL,
        monotonic_writes::LEVEL,
        read_your_writes::LEVEL,
        writes_follow_reads::LEVEL,
    ];
    guarantees.iter().any(|spec| level.has(spec))
}

impl Served {
    fn new(worker: Worker, Habit { level, way, moves }: Habit) -> Self {
        Self {
            worker,
            level,
            way,
            keeps: moves && is_of_sessions(level),
            sessions: vec![Session::new(level); SESSIONS],
            next: 0,
            since_move: 0,
            horizon: 0,
            reply: Box::new([0; VALUE_BYTES]),
            own: Box::new([[0; VALUE_BYTES]; 2]),
        }
    }

    fn six(&mut self, records: &[Key; 2], now: Now) {
        self.next = (self.next + 1) % SESSIONS;
        self.since_move += 1;
        if self.keeps && self.since_move == SIXES_A_MOVE {
            self.since_move = 0;
            self.leave(now);
        }
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
        if self.keeps {
            self.bring(key, now);
        }
        let shard = &mut self.worker.shard;
        let name = shard.key(key);
        if let Ok(Some(value)) = shard.get(0, name, now) {
            let bytes = value.bytes();
            self.reply[..bytes.len()].copy_from_slice(bytes);
        }
        if self.keeps {
            self.after_read(key, now);
        }
    }

    fn after_read(&mut self, key: &Key, now: Now) {
        if !self.level.has(&monotonic_reads::LEVEL) && !self.level.has(&writes_follow_reads::LEVEL)
        {
            return;
        }
        let shard = &mut self.worker.shard;
        let name = shard.key(key);
        if let Some(replica) = shard.show_replica(0, name, now, &mut |_, _| {}) {
            let newest = replica.newest.time;
            self.sessions[self.next].after_read(Seen { db: 0, key, newest });
        }
    }

    /// Writes what the client has of a record, or something new. The writes of a transaction go on
    /// with its stamp.
    fn write(&mut self, key: &Key, own: Option<usize>, transaction: &mut Option<Stamp>, now: Now) {
        if self.keeps {
            self.bring(key, now);
        }
        let (worker, floor) = (&mut self.worker, self.sessions[self.next].floor());
        let time = |time| Stamp {
            time,
            ..Stamp::ZERO
        };
        worker.replicas.observe(time(floor));
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
        if self.keeps {
            let newest = stamp.time;
            self.sessions[self.next].after_write(Seen { db: 0, key, newest }, newest);
        }
    }

    /// Brings along what the session knows of the key. It has never left this worker, which so cannot
    /// be behind it.
    fn bring(&mut self, key: &Key, now: Now) {
        let (worker, session) = (&mut self.worker, &mut self.sessions[self.next]);
        let Ok(Some(state)) = session.before(0, key, worker.replicas.least()) else {
            return;
        };
        worker.replicas.observe(Stamp {
            time: state.newest,
            ..Stamp::ZERO
        });
        for chunk in &state.chunks {
            let name = worker.shard.key(key);
            let done = worker.shard.merge(0, name, state.tag, chunk, now);
            assert!(done.is_ok(), "a state of its type");
        }
    }

    /// The session takes along what it knows.
    fn leave(&mut self, now: Now) {
        let shard = &mut self.worker.shard;
        self.sessions[self.next].leave(|db, key| {
            let (name, mut chunks) = (shard.key(key), Vec::new());
            let mut keep = |_, chunk: &[u8]| chunks.push(chunk.to_vec());
            let replica = shard.show_replica(usize::from(db), name, now, &mut keep)?;
            Some(State {
                newest: replica.newest.time,
                tag: replica.tag,
                chunks,
            })
        });
    }

    /// Sessions forget what all replicas have.
    fn prune(&mut self) {
        let horizon = self.worker.replicas.horizon();
        if self.keeps && horizon > self.horizon {
            self.horizon = horizon;
            for session in &mut self.sessions {
                session.prune(horizon);
            }
        }
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
        self.prune();
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

    fn served(level: &str, way: Way, moves: bool) -> (Vec<Served>, Vec<Key>) {
        let level: Level = level.parse().unwrap();
        let workers = workers_at(level, KEYS, 2, 0).unwrap();
        let habit = Habit { level, way, moves };
        let all = workers.into_iter().map(|w| Served::new(w, habit));
        let requests = Popularity::new(KEYS, 0.5).requests(TURN, &mut Rng::new(7));
        (all.collect(), requests)
    }

    #[test]
    fn sessions_keep_what_their_level_says_and_forget_it() {
        for (level, states, floor) in [
            ("eventual", false, false),
            ("monotonic-reads", true, false),
            ("monotonic-writes", false, true),
            ("read-your-writes", true, false),
            ("pram", true, true),
        ] {
            let (mut all, requests) = served(level, Way::Single, false);
            all[0].update(&requests);
            let kept = |s: &Session| s.known() > 0 || s.floor() > 0;
            assert!(!all[0].sessions.iter().any(kept), "{level}");
            let (mut all, requests) = served(level, Way::Single, true);
            all[0].update(&requests);
            let sessions = &all[0].sessions;
            assert_eq!(sessions.iter().any(|s| s.known() > 0), states, "{level}");
            assert_eq!(sessions.iter().any(|s| s.floor() > 0), floor, "{level}");
            all[0].horizon = 0;
            for session in &mut all[0].sessions {
                session.prune(u64::MAX);
                assert_eq!(session.known(), 0);
            }
        }
    }

    #[test]
    fn sessions_move_and_take_states_along() {
        let (mut all, requests) = served("monotonic-reads", Way::Single, true);
        all[0].since_move = SIXES_A_MOVE - TURN / 4;
        all[0].update(&requests);
        let before = all[0].sessions.iter().map(Session::known).sum::<usize>();
        let now = all[0].worker.now();
        all[0].next = 0;
        all[0].leave(now);
        // Notes of one key become one state.
        let after = all[0].sessions.iter().map(Session::known).sum::<usize>();
        assert!(all[0].since_move < TURN && (1..=before).contains(&after));
        all[0].update(&requests);
    }

    #[test]
    fn writes_of_a_transaction_have_one_time() {
        for (way, times) in [
            (Way::Single, 2),
            (Way::Begun("read-uncommitted"), 1),
            (Way::Buffered, 1),
            (Way::Cached, 1),
        ] {
            let (mut all, requests) = served("eventual", way, false);
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
