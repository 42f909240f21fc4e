//! How well eviction chooses: hit rates of a cache with the policies of the
//! memory limit, beside exact LRU and LFU over the same requests, and beside a
//! redis-server where its socket is given.
//!
//! Requests are reads of keys with Zipf's distribution; a missing key is put
//! in. The first half of the requests fills the cache and is not counted.
//!
//! `cargo run --release -p rufous-store --example eviction -- [--rate N]
//! [--requests N] [--keys N] [--redis PATH-OF-UNIX-SOCKET]`

use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_store::evict::{By, Choice, Evictor, Ledger, Settings};
use rufous_store::shard::{ExpirySetting, NewValue, Policy, Shard};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const VALUE: [u8; 64] = [b'v'; 64];
/// Reads that are sent to a server at a time.
const PIPELINE: usize = 16;

struct Options {
    rate: u64,
    requests: usize,
    keys: usize,
    redis: Option<String>,
}

/// What is measured: a cache that can be asked for a key, which it then holds.
trait Cache {
    /// Whether each key was there.
    fn read(&mut self, keys: &[u32], hits: &mut Vec<bool>) -> Result<()>;
}

fn main() -> Result<()> {
    let options = parse()?;
    println!(
        "{} keys, {} requests, {} requests a second; hit rates in percent\n",
        options.keys, options.requests, options.rate
    );
    println!("| Zipf | cache | cache is | hits |\n|---|---|---|---|");
    for exponent in [0.9, 0.99, 1.1] {
        let requests = trace(exponent, &options);
        for percent in [10, 30] {
            let room = options.keys * percent / 100;
            let show = |name: &str, cache: &mut dyn Cache| -> Result<()> {
                let rate = hit_rate(&requests, cache)?;
                println!("| {exponent} | {percent} % | {name} | {rate:.2} |");
                Ok(())
            };
            show("exact LRU", &mut ExactLru::new(room))?;
            show(
                "exact LFU, counts of what is cached",
                &mut ExactLfu::new(room, false),
            )?;
            show(
                "exact LFU, counts of everything",
                &mut ExactLfu::new(room, true),
            )?;
            for (name, by) in [
                ("allkeys-lru", By::Recency),
                ("allkeys-lfu", By::Frequency),
                ("allkeys-random", By::Random),
            ] {
                for samples in [3, 5, 10] {
                    if by == By::Random && samples != 5 {
                        continue;
                    }
                    let mut cache = Rufous::new(by, samples, room, options.rate);
                    show(&format!("Rufous {name}, {samples} samples"), &mut cache)?;
                    if let Some(socket) = &options.redis {
                        let mut cache = Redis::new(socket, name, samples, room)?;
                        show(&format!("Redis {name}, {samples} samples"), &mut cache)?;
                        cache.report(room)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn parse() -> Result<Options> {
    let mut options = Options {
        rate: 50_000,
        requests: 2_000_000,
        keys: 100_000,
        redis: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option without a value")?;
        match word.as_str() {
            "--rate" => options.rate = value.parse()?,
            "--requests" => options.requests = value.parse()?,
            "--keys" => options.keys = value.parse()?,
            "--redis" => options.redis = Some(value),
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    Ok(options)
}

/// Keys in the order of requests: by the cumulative distribution, exactly.
fn trace(exponent: f64, options: &Options) -> Vec<u32> {
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=options.keys)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let mut rng = Rng::new(42);
    (0..options.requests)
        .map(|_| {
            let at = rng.unit() * sum;
            cumulative.partition_point(|&below| below <= at) as u32
        })
        .collect()
}

/// In percent, over the second half of the requests.
fn hit_rate(requests: &[u32], cache: &mut dyn Cache) -> Result<f64> {
    let (mut hits, mut counted, mut hit) = (Vec::new(), 0u64, 0u64);
    for (number, keys) in requests.chunks(PIPELINE).enumerate() {
        hits.clear();
        cache.read(keys, &mut hits)?;
        if number * PIPELINE * 2 >= requests.len() {
            counted += hits.len() as u64;
            hit += hits.iter().filter(|&&h| h).count() as u64;
        }
    }
    Ok(hit as f64 * 100.0 / counted as f64)
}

/// Evicts the key whose last use is longest ago.
struct ExactLru {
    room: usize,
    clock: u64,
    used: BTreeMap<u32, u64>,
    order: BTreeMap<u64, u32>,
}

impl ExactLru {
    fn new(room: usize) -> Self {
        Self {
            room,
            clock: 0,
            used: BTreeMap::new(),
            order: BTreeMap::new(),
        }
    }
}

impl Cache for ExactLru {
    fn read(&mut self, keys: &[u32], hits: &mut Vec<bool>) -> Result<()> {
        for &key in keys {
            self.clock += 1;
            let before = self.used.insert(key, self.clock);
            hits.push(before.is_some());
            match before {
                Some(before) => {
                    self.order.remove(&before);
                }
                None if self.used.len() > self.room => {
                    if let Some((_, oldest)) = self.order.pop_first() {
                        self.used.remove(&oldest);
                    }
                }
                None => {}
            }
            self.order.insert(self.clock, key);
        }
        Ok(())
    }
}

/// Evicts the key that was used least, and of those the one whose last use is
/// longest ago.
struct ExactLfu {
    room: usize,
    clock: u64,
    /// Whether the uses of evicted keys are still known when they come back.
    remembers: bool,
    uses: BTreeMap<u32, (u64, u64)>,
    order: BTreeSet<(u64, u64, u32)>,
}

impl ExactLfu {
    fn new(room: usize, remembers: bool) -> Self {
        Self {
            room,
            clock: 0,
            remembers,
            uses: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl Cache for ExactLfu {
    fn read(&mut self, keys: &[u32], hits: &mut Vec<bool>) -> Result<()> {
        for &key in keys {
            self.clock += 1;
            let uses = self.uses.entry(key).or_default();
            let hit = self.order.remove(&(uses.0, uses.1, key));
            hits.push(hit);
            *uses = (uses.0 + 1, self.clock);
            let entry = (uses.0, uses.1, key);
            if !hit
                && self.order.len() == self.room
                && let Some((_, _, least)) = self.order.pop_first()
                && !self.remembers
            {
                self.uses.remove(&least);
            }
            self.order.insert(entry);
        }
        Ok(())
    }
}

/// A shard with its evictor, in virtual time.
struct Rufous {
    shard: Shard,
    evictor: Evictor,
    requests: u64,
    rate: u64,
}

impl Rufous {
    /// With a limit that `room` keys just keep to.
    fn new(by: By, samples: usize, room: usize, rate: u64) -> Self {
        let mut full = Shard::new(1);
        for key in 0..room as u32 {
            fill(&mut full, key, Now::default());
        }
        let mut shard = Shard::new(2);
        shard.set_policy(Policy {
            lfu: by == By::Frequency,
            ..Policy::default()
        });
        let mut evictor = Evictor::new(Arc::new(Ledger::new(1)), 0, 3);
        let settings = Settings {
            bytes: full.charged(),
            choice: Some(Choice {
                volatile: false,
                by,
            }),
            samples,
        };
        evictor.configure(settings, &shard);
        Self {
            shard,
            evictor,
            requests: 0,
            rate,
        }
    }
}

fn name(key: u32) -> [u8; 8] {
    let mut name = *b"k0000000";
    let digits = format!("{key:07}");
    name[1..].copy_from_slice(&digits.as_bytes()[..7]);
    name
}

fn fill(shard: &mut Shard, key: u32, now: Now) {
    let name = name(key);
    let key = shard.key(&name);
    shard.set(0, key, NewValue::Copy(&VALUE), ExpirySetting::Clear, now);
}

impl Cache for Rufous {
    fn read(&mut self, keys: &[u32], hits: &mut Vec<bool>) -> Result<()> {
        for &key in keys {
            self.requests += 1;
            let mono_us = self.requests * 1_000_000 / self.rate;
            let now = Now {
                mono_us,
                unix_us: mono_us,
            };
            let name = name(key);
            let hashed = self.shard.key(&name);
            let hit = self.shard.get(0, hashed, now).expect("a string").is_some();
            hits.push(hit);
            if !hit {
                self.evictor.look();
                self.evictor.make_room(&mut self.shard, now, |_, _| {
                    Some(rufous_store::evict::May::Evict)
                });
                fill(&mut self.shard, key, now);
            }
        }
        Ok(())
    }
}

/// A server over its socket, in real time.
struct Redis {
    stream: BufReader<UnixStream>,
    out: Vec<u8>,
    started: Instant,
    requests: u64,
}

impl Redis {
    /// Empties the server and gives it a limit that `room` keys just keep to.
    fn new(socket: &str, policy: &str, samples: usize, room: usize) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        let mut redis = Self {
            stream: BufReader::new(stream),
            out: Vec::new(),
            started: Instant::now(),
            requests: 0,
        };
        redis.call(&[b"CONFIG", b"SET", b"maxmemory", b"0"])?;
        redis.call(&[b"CONFIG", b"SET", b"maxmemory-policy", policy.as_bytes()])?;
        let samples = samples.to_string();
        redis.call(&[b"CONFIG", b"SET", b"maxmemory-samples", samples.as_bytes()])?;
        redis.call(&[b"FLUSHALL"])?;
        for key in 0..room as u32 {
            redis.call(&[b"SET", &name(key), &VALUE])?;
        }
        let info = redis.call(&[b"INFO", b"memory"])?.unwrap_or_default();
        let info = String::from_utf8_lossy(&info).into_owned();
        let used = info.lines().find_map(|l| l.strip_prefix("used_memory:"));
        let used = used.ok_or("INFO shows no used_memory")?.trim().to_owned();
        redis.call(&[b"FLUSHALL"])?;
        redis.call(&[b"CONFIG", b"SET", b"maxmemory", used.as_bytes()])?;
        redis.started = Instant::now();
        Ok(redis)
    }

    /// How many keys it held, and at what rate it was asked.
    fn report(&mut self, room: usize) -> Result<()> {
        let rate = self.requests as f64 / self.started.elapsed().as_secs_f64();
        let keys = self.call(&[b"DBSIZE"])?.unwrap_or_default();
        let keys = String::from_utf8_lossy(&keys).into_owned();
        eprintln!("  Redis: {keys} keys where {room} were meant, {rate:.0} requests a second");
        Ok(())
    }

    fn call(&mut self, words: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        self.send(words);
        self.flush()?;
        self.reply()
    }

    fn send(&mut self, words: &[&[u8]]) {
        self.out.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            self.out.extend(format!("${}\r\n", word.len()).bytes());
            self.out.extend_from_slice(word);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.get_mut().write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn reply(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("$", "-1")) => Ok(None),
            Some(("$", len)) => {
                let mut bytes = vec![0; len.parse::<usize>()? + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Some(bytes))
            }
            Some(("+" | ":", text)) => Ok(Some(text.into())),
            _ => Err(format!("the server answered {line:?}").into()),
        }
    }
}

impl Cache for Redis {
    fn read(&mut self, keys: &[u32], hits: &mut Vec<bool>) -> Result<()> {
        self.requests += keys.len() as u64;
        let first = hits.len();
        keys.iter()
            .for_each(|&key| self.send(&[b"GET", &name(key)]));
        self.flush()?;
        for _ in keys {
            hits.push(self.reply()?.is_some());
        }
        let missed: Vec<u32> = keys
            .iter()
            .zip(&hits[first..])
            .filter_map(|(&key, &hit)| (!hit).then_some(key))
            .collect();
        missed
            .iter()
            .for_each(|&key| self.send(&[b"SET", &name(key), &VALUE]));
        self.flush()?;
        for _ in missed {
            self.reply()?;
        }
        Ok(())
    }
}
