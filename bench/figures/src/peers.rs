//! Maps that threads share, each used as its documentation advises, and the ideal that shares
//! nothing: a map per thread without any synchronisation, whose threads never hear of each other.
//!
//! All have the same hash function and room for their keys, so that what differs is how threads meet.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use dashmap::DashMap;
use foldhash::fast::RandomState;

use super::drive::{Client, Contestant, Reach};
use super::requests::{Key, Value, Values, key, owner};

const SHARDS: usize = 64;
/// Epochs of reclamation are entered once for so many updates.
const PINNED: usize = 16;

/// A map that threads may update at the same time.
trait Shared: Send + Sync + 'static {
    fn load(&self, key: Key, value: &Value);
    /// Overwrites the values of keys that are there.
    fn update(&self, keys: &[Key], values: &mut Values);
    fn read(&self, key: &Key) -> Option<Box<Value>>;
}

struct SharedClient<M> {
    map: Arc<M>,
    values: Values,
}

impl<M: Shared> Client for SharedClient<M> {
    fn update(&mut self, keys: &[Key]) {
        self.map.update(keys, &mut self.values);
    }
}

impl Shared for DashMap<Key, Box<Value>, RandomState> {
    fn load(&self, key: Key, value: &Value) {
        self.insert(key, Box::new(*value));
    }

    fn update(&self, keys: &[Key], values: &mut Values) {
        for key in keys {
            if let Some(mut old) = self.get_mut(key) {
                old.copy_from_slice(values.take());
            }
        }
    }

    fn read(&self, key: &Key) -> Option<Box<Value>> {
        self.get(key).map(|value| value.clone())
    }
}

impl Shared for scc::HashMap<Key, Box<Value>, RandomState> {
    fn load(&self, key: Key, value: &Value) {
        self.upsert_sync(key, Box::new(*value));
    }

    fn update(&self, keys: &[Key], values: &mut Values) {
        for key in keys {
            self.update_sync(key, |_, old| old.copy_from_slice(values.take()));
        }
    }

    fn read(&self, key: &Key) -> Option<Box<Value>> {
        self.read_sync(key, |_, value| value.clone())
    }
}

/// Values in place, each behind a lock of its own.
struct PapayaLocked(papaya::HashMap<Key, Mutex<Box<Value>>, RandomState>);

impl Shared for PapayaLocked {
    fn load(&self, key: Key, value: &Value) {
        self.0.pin().insert(key, Mutex::new(Box::new(*value)));
    }

    fn update(&self, keys: &[Key], values: &mut Values) {
        for keys in keys.chunks(PINNED) {
            let map = self.0.pin();
            for old in keys.iter().filter_map(|key| map.get(key)) {
                if let Ok(mut old) = old.lock() {
                    old.copy_from_slice(values.take());
                }
            }
        }
    }

    fn read(&self, key: &Key) -> Option<Box<Value>> {
        let map = self.0.pin();
        map.get(key)?.lock().ok().map(|value| value.clone())
    }
}

/// Values that never change: an update is another value.
struct PapayaReplaced(papaya::HashMap<Key, Box<Value>, RandomState>);

impl Shared for PapayaReplaced {
    fn load(&self, key: Key, value: &Value) {
        self.0.pin().insert(key, Box::new(*value));
    }

    fn update(&self, keys: &[Key], values: &mut Values) {
        for keys in keys.chunks(PINNED) {
            let map = self.0.pin();
            for key in keys {
                map.insert(*key, Box::new(*values.take()));
            }
        }
    }

    fn read(&self, key: &Key) -> Option<Box<Value>> {
        self.0.pin().get(key).cloned()
    }
}

type Map = HashMap<Key, Box<Value>, RandomState>;

/// Each lock on cache lines of its own.
#[repr(align(128))]
struct Padded(Mutex<Map>);

struct Sharded {
    hasher: RandomState,
    shards: Vec<Padded>,
}

impl Sharded {
    fn new(keys: u64) -> Self {
        let each = (keys as usize / SHARDS) * 5 / 4;
        let map = || Map::with_capacity_and_hasher(each, RandomState::default());
        Self {
            hasher: RandomState::default(),
            shards: (0..SHARDS).map(|_| Padded(Mutex::new(map()))).collect(),
        }
    }

    fn with<R>(&self, key: &Key, f: impl FnOnce(&mut Map) -> R) -> Option<R> {
        let shard = self.hasher.hash_one(key) as usize % SHARDS;
        let mut map = self.shards[shard].0.lock().ok()?;
        Some(f(&mut map))
    }
}

impl Shared for Sharded {
    fn load(&self, key: Key, value: &Value) {
        self.with(&key, |map| map.insert(key, Box::new(*value)));
    }

    fn update(&self, keys: &[Key], values: &mut Values) {
        for key in keys {
            self.with(key, |map| {
                if let Some(old) = map.get_mut(key) {
                    old.copy_from_slice(values.take());
                }
            });
        }
    }

    fn read(&self, key: &Key) -> Option<Box<Value>> {
        self.with(key, |map| map.get(key).cloned())?
    }
}

/// A thread's own map.
struct Private {
    map: Map,
    values: Values,
}

impl Client for Private {
    fn update(&mut self, keys: &[Key]) {
        for key in keys {
            if let Some(old) = self.map.get_mut(key) {
                old.copy_from_slice(self.values.take());
            }
        }
    }
}

/// One that makes only the last of a turn's writes of a key, as a worker does.
struct Joining(Private);

impl Client for Joining {
    fn update(&mut self, keys: &[Key]) {
        let Private { map, values } = &mut self.0;
        let value = values.take_some(keys.len());
        for (at, key) in keys.iter().enumerate() {
            if !keys[at + 1..].contains(key)
                && let Some(old) = map.get_mut(key)
            {
                old.copy_from_slice(value(at));
            }
        }
    }
}

pub(crate) const IDEAL: &str = "private maps of all keys";
pub(crate) const OWN_IDEAL: &str = "private maps of own keys";
pub(crate) const JOINING: &str = "private maps, turns joined";
/// Which keys a thread of each is asked for.
pub(crate) const IDEALS: [(&str, Reach); 2] = [(IDEAL, Reach::All), (OWN_IDEAL, Reach::Own)];

/// What the maps are called in tables.
pub(crate) const PEERS: [&str; 5] = [
    "DashMap",
    "scc",
    "papaya, values behind mutexes",
    "papaya, values replaced",
    "map in 64 mutexes",
];

/// Fills peer `at` of [`PEERS`] with `keys` keys, for so many threads.
pub(crate) fn peer(at: usize, keys: u64, threads: usize) -> Result<Contestant> {
    let (room, hasher) = (keys as usize, RandomState::default());
    let name = PEERS[at];
    match at {
        0 => shared(name, keys, threads, {
            DashMap::with_capacity_and_hasher(room, hasher)
        }),
        1 => shared(name, keys, threads, {
            scc::HashMap::with_capacity_and_hasher(room, hasher)
        }),
        2 => shared(name, keys, threads, {
            PapayaLocked(papaya::HashMap::with_capacity_and_hasher(room, hasher))
        }),
        3 => shared(name, keys, threads, {
            PapayaReplaced(papaya::HashMap::with_capacity_and_hasher(room, hasher))
        }),
        _ => shared(name, keys, threads, Sharded::new(keys)),
    }
}

fn shared<M: Shared>(name: &str, keys: u64, threads: usize, map: M) -> Result<Contestant> {
    let mut values = Values::new(0);
    (0..keys).for_each(|n| map.load(key(n), values.take()));
    // What a map does not hold it would update very fast.
    let mut client = SharedClient {
        map: Arc::new(map),
        values: Values::new(1),
    };
    let probe = key(keys / 2);
    client.update(&[probe]);
    let written = client.map.read(&probe);
    let mut expected = Values::new(1);
    ensure!(
        written.as_deref() == Some(expected.take()),
        "{name} does not hold what was written"
    );
    let clients = (0..threads).map(|thread| -> Box<dyn Client> {
        Box::new(SharedClient {
            map: Arc::clone(&client.map),
            values: Values::new(thread as u64),
        })
    });
    Ok(Contestant::new(name, Reach::All, clients.collect()))
}

fn private(thread: usize, names: impl Iterator<Item = Key>, room: u64) -> Private {
    let mut values = Values::new(thread as u64);
    let mut map = Map::with_capacity_and_hasher(room as usize, RandomState::default());
    map.extend(names.map(|key| (key, Box::new(*values.take()))));
    Private { map, values }
}

/// A private map per thread, of all keys or of those that it alone has.
pub(crate) fn ideal(name: &str, reach: Reach, keys: u64, threads: usize) -> Contestant {
    let clients = (0..threads).map(|thread| -> Box<dyn Client> {
        let names = (0..keys).map(key);
        let mine = names.filter(|key| reach == Reach::All || owner(key, threads) == thread);
        Box::new(private(thread, mine, keys))
    });
    Contestant::new(name, reach, clients.collect())
}

/// What [`ideal`] would be with a worker's way of taking a turn together.
pub(crate) fn joining(keys: u64, threads: usize) -> Contestant {
    let clients = (0..threads).map(|thread| -> Box<dyn Client> {
        Box::new(Joining(private(thread, (0..keys).map(key), keys)))
    });
    Contestant::new(JOINING, Reach::All, clients.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_turns_leave_what_each_write_leaves() {
        let mut rng = rufous_base::rng::Rng::new(1);
        let mut each = private(3, (0..5).map(key), 5);
        let mut joining = Joining(private(3, (0..5).map(key), 5));
        for _ in 0..50 {
            let keys: Vec<Key> = (0..7).map(|_| key(rng.below(5))).collect();
            each.update(&keys);
            joining.update(&keys);
            assert_eq!(each.map, joining.0.map);
        }
    }

    #[test]
    fn every_peer_holds_what_is_written() {
        for (at, name) in PEERS.iter().enumerate() {
            let contestant = peer(at, 500, 2).unwrap();
            assert_eq!((contestant.threads(), &*contestant.name), (2, *name));
        }
    }
}
