//! What clients of lattice keyspaces ask for.

use super::act::{Act, Deed};
use super::{AUDITORS, Ask, Key, Kind, Lattice, Thing};
use rufous_resp::encode;

type Words = Vec<Vec<u8>>;

fn words(all: &[&[u8]]) -> Words {
    all.iter().map(|word| word.to_vec()).collect()
}

/// A thing as it is written.
pub(super) fn text(thing: Thing) -> Vec<u8> {
    let mut text = format!("m{thing}").into_bytes();
    // Now and then one that does not fit into a record, or a part of a log.
    if thing.is_multiple_of(17) {
        text.push(b'.');
        text.resize(2_000, b'x');
    }
    text
}

impl Lattice {
    /// What a client asks for next.
    pub fn compose(&mut self, client: usize, now_us: u64, bytes: &mut Vec<u8>) {
        if !self.clients[client].ready {
            let db = self.clients[client].random.weighted(&[(3, 4), (1, 5)]);
            let has_keys = self.keys.iter().any(|key| key.db == db);
            let db = if has_keys { db } else { 9 - db };
            return self.begin(client, db, bytes);
        }
        if self.clients[client].open.is_some() {
            return self.go_on(client, now_us, bytes);
        }
        let count = self.clients[client].random.between(1, self.pipeline);
        for _ in 0..count {
            self.clients[client].left = self.clients[client].left.saturating_sub(1);
            self.one_more(client, now_us, bytes);
            if self.clients[client].open.is_some() {
                break;
            }
        }
    }

    /// The database, and that all keyspaces are there.
    fn begin(&mut self, client: usize, db: usize, bytes: &mut Vec<u8>) {
        encode::request(bytes, &["SELECT", &db.to_string()]);
        for space in &self.spaces {
            let mut words = vec!["KEYSPACE".to_string(), "CREATE".into()];
            words.extend(space.words());
            encode::request(bytes, &words);
        }
        self.clients[client].db = db;
        let wanted = 1 + self.spaces.len();
        self.clients[client].ask(Ask::Ready, wanted);
    }

    /// An auditor reads all that is left to be looked at of its worker.
    pub fn audit(&mut self, client: usize, worker: usize, bytes: &mut Vec<u8>) {
        if !self.clients[client].ready {
            return self.begin(client, 4, bytes);
        }
        let mut left = self.audit.iter().filter(|(at, _)| *at == worker);
        let Some(&(_, key)) = left.next() else { return };
        encode::request(bytes, &["SELECT", &self.keys[key].db.to_string()]);
        encode::request(bytes, &self.reading(key));
        self.clients[client].ask(Ask::Look(vec![key]), 2);
    }

    pub(super) fn reading(&self, key: usize) -> Words {
        let name = &self.keys[key].name[..];
        match self.keys[key].kind {
            Kind::Set | Kind::Grown | Kind::TimedSet => words(&[b"SMEMBERS", name]),
            Kind::Hash | Kind::TimedHash => words(&[b"HKEYS", name]),
            Kind::Sketch => words(&[b"PFCOUNT", name]),
            Kind::Sorted | Kind::TimedSorted => words(&[b"ZRANGE", name, b"0", b"-1"]),
            Kind::HashCount | Kind::ClearedHash => words(&[b"HGET", name, b"n"]),
            Kind::ScoreCount | Kind::ClearedScore => words(&[b"ZSCORE", name, b"n"]),
            Kind::Note => words(&[b"CAUSAL.GET", name]),
            _ => words(&[b"GET", name]),
        }
    }

    fn one_more(&mut self, client: usize, now_us: u64, bytes: &mut Vec<u8>) {
        let db = self.clients[client].db;
        let here = |n: &usize| self.keys[*n].db == db;
        let keys: Vec<_> = (0..self.keys.len()).filter(here).collect();
        let own = |n: &usize| self.keys[*n].alone && self.counts_alone(client, *n);
        let own: Vec<_> = keys.iter().copied().filter(own).collect();
        let random = &mut self.clients[client].random;
        let key = match !own.is_empty() && random.chance(0.3) {
            true => *random.pick(&own),
            false => *random.pick(&keys),
        };
        match random.below(100) {
            0 => {
                encode::request(bytes, &["FLUSHDB"]);
                self.act(client, vec![Deed::Flush { db }], 1, now_us);
            }
            1..4 => self.change_table(client, bytes),
            4..7 => self.ask_the_impossible(client, key, bytes),
            7..14 if self.begins => self.begin_open(client, &keys, bytes),
            7..22 => self.transaction(client, db, &keys, now_us, bytes),
            22..30 => {
                let other = |key: &&usize| self.keys[**key].kind != Kind::Note;
                let others: Vec<_> = keys.iter().filter(other).copied().collect();
                let several = random.picks(&others, 3);
                encode::request(bytes, &["MULTI"]);
                for key in &several {
                    encode::request(bytes, &self.reading(*key));
                }
                encode::request(bytes, &["EXEC"]);
                let wanted = several.len() + 2;
                self.clients[client].ask(Ask::Look(several), wanted);
            }
            55.. if self.kind(key) == Kind::Pair => {
                let of = |pair: &[usize; 2]| pair.contains(&key);
                let pair = self.pairs(db).into_iter().find(of);
                let pair = pair.unwrap_or([key, key]);
                self.write_group(client, &pair, now_us, bytes);
            }
            53 => {
                encode::request(bytes, &["KEYS", "*"]);
                self.clients[client].ask(Ask::List, 1);
            }
            n if n < 55 || !self.may_write(client, key) => {
                encode::request(bytes, &self.reading(key));
                self.clients[client].ask(Ask::Look(vec![key]), 1);
            }
            _ if self.keys[key].kind == Kind::Group => {
                let group = self.groups[db - 4].clone();
                self.write_group(client, &group, now_us, bytes);
            }
            _ => {
                let most = self.clients[client].random.weighted(&[(5, 1), (1, 3)]);
                let (words, deeds) = match self.kind(key).is_timed() {
                    true if self.clients[client].random.chance(0.4) => {
                        self.time(client, key, now_us)
                    }
                    _ => self.write(client, key, most),
                };
                encode::request(bytes, &words);
                self.act(client, deeds, 1, now_us);
            }
        }
    }

    pub(super) fn act(&mut self, client: usize, deeds: Vec<Deed>, wanted: usize, now_us: u64) {
        let number = self.acts.len();
        for deed in &deeds {
            match deed {
                Deed::Write {
                    value: Some(thing), ..
                }
                | Deed::Replace {
                    value: Some(thing), ..
                }
                | Deed::Add { thing, .. } => {
                    self.made.insert(*thing, number);
                }
                Deed::Remove {
                    thing: Some(thing), ..
                } => {
                    self.removed.insert(*thing);
                }
                Deed::Flush { db } => self.flushes.entry(*db).or_default().push(number),
                _ => {}
            }
            if let Some(key) = deed.key() {
                self.of_key[key].push(number);
            }
        }
        self.acts.push(Act {
            life: self.clients[client].session.life,
            worker: self.clients[client].worker,
            asked_us: now_us,
            answered_us: u64::MAX,
            refused: false,
            deeds,
        });
        self.clients[client].ask(Ask::Act(number), wanted);
    }

    /// Epochs of another length, another level, other replicas of keys that are
    /// there or none, a keyspace of no keys.
    fn change_table(&mut self, client: usize, bytes: &mut Vec<u8>) {
        let random = &mut self.clients[client].random;
        let space = random.pick(&self.spaces);
        let (name, gossip) = (&space.name[..], random.skewed(1, 300).to_string());
        match random.below(6) {
            0 if !space.is_fixed => {
                let level = random.pick(&["eventual", "pram", "item-cut"]);
                encode::request(bytes, &["KEYSPACE", "ALTER", name, "LEVEL", level]);
            }
            1 if !space.is_fixed => {
                let threads = random.pick(&["all", "1", "2"]);
                encode::request(bytes, &["KEYSPACE", "ALTER", name, "THREADS", threads]);
            }
            2 => {
                let words = ["KEYSPACE", "CREATE", "none", "PREFIX", "none:"];
                encode::request(bytes, &[&words[..], &["REGIME", "lattice"]].concat());
            }
            3 => encode::request(bytes, &["KEYSPACE", "DROP", "none"]),
            // The next client that connects creates it again.
            4 if !space.is_fixed => encode::request(bytes, &["KEYSPACE", "DROP", name]),
            5 if !space.is_fixed => {
                let regime = random.pick(&["strict", "lattice"]);
                encode::request(bytes, &["KEYSPACE", "ALTER", name, "REGIME", regime]);
            }
            _ => encode::request(bytes, &["KEYSPACE", "ALTER", name, "GOSSIP", &gossip]),
        }
        self.clients[client].ask(Ask::Table, 1);
    }

    fn ask_the_impossible(&mut self, client: usize, key: usize, bytes: &mut Vec<u8>) {
        let name = &self.keys[key].name[..];
        // Where it is strict by now, it can be done.
        let space = self.keys[key].space.map(|space| &self.spaces[space]);
        if !space.is_some_and(|space| space.is_fixed) {
            encode::request(bytes, &["PING"]);
            return self.clients[client].ask(Ask::Table, 1);
        }
        let all: [&[&[u8]]; 7] = [
            &[b"SETNX", name, b"m0"],
            &[b"SET", name, b"m0", b"NX"],
            &[b"RPUSH", name, b"m0"],
            &[b"SPOP", name],
            &[b"GETDEL", name],
            &[b"HSETNX", name, b"m0", b"m0"],
            &[b"RENAMENX", name, b"strict:none"],
        ];
        // At level causal the value of a string may be taken by several.
        let space = self.keys[key].space.map(|at| &self.spaces[at]);
        let is_causal = space.is_some_and(|space| space.level == "causal");
        let most = if is_causal { 4 } else { all.len() };
        let request = self.clients[client].random.pick(&all[..most]);
        encode::request(bytes, request);
        self.clients[client].ask(Ask::Impossible, 1);
    }

    pub(super) fn new_thing(&mut self) -> Thing {
        self.next += 1;
        self.next
    }

    /// One write, and what it does; it adds so many things.
    pub(super) fn write(&mut self, client: usize, key: usize, count: u64) -> (Words, Vec<Deed>) {
        let kind = self.keys[key].kind;
        let name = self.keys[key].name.clone();
        if kind.is_register() {
            return self.write_register(client, key, &name);
        }
        if kind.counts() {
            return self.count(client, key, &name);
        }
        if kind == Kind::Note {
            return self.write_note(client, key, &name);
        }
        if kind == Kind::Sketch {
            return self.write_sketch(client, key, count);
        }
        let chance = match kind {
            Kind::Grown => 0,
            _ => self.clients[client].random.below(20),
        };
        match chance {
            0..13 => self.add(client, key, &name, count),
            13..19 => self.remove(client, key, &name),
            _ => {
                let removal = Deed::Remove {
                    key,
                    thing: None,
                    covered: Vec::new(),
                };
                (words(&[b"DEL", &name]), vec![removal])
            }
        }
    }

    fn write_register(&mut self, client: usize, key: usize, name: &[u8]) -> (Words, Vec<Deed>) {
        let new = self.next + 1;
        let random = &mut self.clients[client].random;
        let ms = random.skewed(5, 5_000);
        let px = ms.to_string();
        let write = |value, px| {
            vec![Deed::Write {
                key,
                value,
                px,
                over: Vec::new(),
            }]
        };
        let fleeting = self.keys[key].kind == Kind::Fleeting;
        let (request, deeds) = match random.below(10) {
            0 => return (words(&[b"DEL", name]), write(None, None)),
            1 => (
                words(&[b"GETSET", name, &text(new)]),
                write(Some(new), None),
            ),
            2 if fleeting => {
                let expire = Deed::expire(key, Some(ms));
                return (words(&[b"PEXPIRE", name, px.as_bytes()]), expire);
            }
            3 if fleeting => return (words(&[b"PERSIST", name]), Deed::expire(key, None)),
            4..8 if fleeting => {
                let request = words(&[b"SET", name, &text(new), b"PX", px.as_bytes()]);
                (request, write(Some(new), Some(ms)))
            }
            _ => (words(&[b"SET", name, &text(new)]), write(Some(new), None)),
        };
        self.next = new;
        (request, deeds)
    }

    pub(super) fn counts_alone(&self, client: usize, key: usize) -> bool {
        key % (self.clients.len() - AUDITORS) == client
    }

    /// Whether a client may write to a key, other than in a transaction.
    fn may_write(&mut self, client: usize, key: usize) -> bool {
        !self.keys[key].alone || self.may_count(client, key)
    }

    /// A counter that is cleared is written by one client, and in a life of the
    /// node at one worker: what was removed elsewhere and has not come yet would
    /// take along what is counted now.
    fn may_count(&mut self, client: usize, key: usize) -> bool {
        let me = &self.clients[client];
        let at = (me.session.life, me.worker);
        if !self.counts_alone(client, key) {
            return false;
        }
        let last = self.written_at.entry(key).or_insert(at);
        if last.0 < at.0 {
            *last = at;
        }
        *last == at
    }

    fn clear(&mut self, client: usize, key: usize, name: &[u8]) -> (Words, Vec<Deed>) {
        let whole = self.clients[client].random.chance(0.5);
        let request = match self.keys[key].kind {
            Kind::ClearedHash if !whole => words(&[b"HDEL", name, b"n"]),
            Kind::ClearedScore if !whole => words(&[b"ZREM", name, b"n"]),
            _ => words(&[b"DEL", name]),
        };
        (request, vec![Deed::Clear { key }])
    }

    fn count(&mut self, client: usize, key: usize, name: &[u8]) -> (Words, Vec<Deed>) {
        if self.keys[key].kind.is_cleared() && self.clients[client].random.chance(0.3) {
            return self.clear(client, key, name);
        }
        let random = &mut self.clients[client].random;
        let by = random.between(0, 12) as i64 - 3;
        let whole = by.to_string();
        let part = (by as f64 / 4.0).to_string();
        let (request, by) = match self.keys[key].kind {
            Kind::Float => (words(&[b"INCRBYFLOAT", name, part.as_bytes()]), by),
            Kind::HashCount | Kind::ClearedHash => {
                (words(&[b"HINCRBY", name, b"n", whole.as_bytes()]), 4 * by)
            }
            Kind::ScoreCount | Kind::ClearedScore => {
                (words(&[b"ZINCRBY", name, part.as_bytes(), b"n"]), by)
            }
            _ => (words(&[b"INCRBY", name, whole.as_bytes()]), 4 * by),
        };
        (request, vec![Deed::Count { key, by }])
    }

    fn add(&mut self, client: usize, key: usize, name: &[u8], count: u64) -> (Words, Vec<Deed>) {
        let needs = self.needs(client, key);
        let command: &[u8] = match self.keys[key].kind {
            Kind::Hash | Kind::TimedHash => b"HSET",
            Kind::Sorted | Kind::TimedSorted => b"ZADD",
            _ => b"SADD",
        };
        let (mut request, mut deeds) = (words(&[command, name]), Vec::new());
        for _ in 0..count {
            let thing = self.new_thing();
            match self.keys[key].kind {
                Kind::Hash | Kind::TimedHash => request.extend([text(thing), b"v".to_vec()]),
                Kind::Sorted | Kind::TimedSorted => {
                    request.extend([thing.to_string().into_bytes(), text(thing)])
                }
                _ => request.push(text(thing)),
            }
            deeds.push(Deed::Add {
                key,
                thing,
                needs: needs.clone(),
            });
        }
        (request, deeds)
    }

    /// Mostly one that was seen there.
    fn remove(&mut self, client: usize, key: usize, name: &[u8]) -> (Words, Vec<Deed>) {
        let me = &mut self.clients[client];
        let known: Vec<_> = me.session.known(key).collect();
        let thing = match known.is_empty() || me.random.chance(0.1) {
            true => me.random.between(1, self.next.max(1)),
            false => *me.random.pick(&known),
        };
        let command: &[u8] = match self.keys[key].kind {
            Kind::Hash | Kind::TimedHash => b"HDEL",
            Kind::Sorted | Kind::TimedSorted => b"ZREM",
            _ => b"SREM",
        };
        let removal = Deed::Remove {
            key,
            thing: Some(thing),
            covered: Vec::new(),
        };
        (words(&[command, name, &text(thing)]), vec![removal])
    }

    /// All of a group get the same value, or something is added to several
    /// sets, or anything is done together.
    fn transaction(
        &mut self,
        client: usize,
        db: usize,
        keys: &[usize],
        now_us: u64,
        bytes: &mut Vec<u8>,
    ) {
        let group = self.groups[db - 4].clone();
        let random = &mut self.clients[client].random;
        match random.below(4) {
            0 | 1 if !group.is_empty() => self.write_group(client, &group, now_us, bytes),
            0..3 => {
                let grown = |key: &&usize| self.keys[**key].kind == Kind::Grown;
                let grown: Vec<_> = keys.iter().filter(grown).copied().collect();
                let some: Vec<_> = grown.into_iter().filter(|_| random.chance(0.6)).collect();
                self.write_together(client, &some, now_us, bytes);
            }
            _ => {
                let any = |key: &&usize| {
                    let Key { kind, alone, .. } = self.keys[**key];
                    !matches!(kind, Kind::Group | Kind::Note | Kind::Pair) && !alone
                };
                let any: Vec<_> = keys.iter().filter(any).copied().collect();
                let some = random.picks(&any, 3);
                self.write_together(client, &some, now_us, bytes);
            }
        }
    }

    fn write_group(&mut self, client: usize, group: &[usize], now_us: u64, bytes: &mut Vec<u8>) {
        let value = self.new_thing();
        let write = |key: &usize| Deed::Write {
            key: *key,
            value: Some(value),
            px: None,
            over: Vec::new(),
        };
        let deeds: Vec<_> = group.iter().map(write).collect();
        if self.clients[client].random.chance(0.3) {
            let mut request = words(&[b"MSET"]);
            for key in group {
                request.extend([self.keys[*key].name.clone(), text(value)]);
            }
            encode::request(bytes, &request);
            return self.act(client, deeds, 1, now_us);
        }
        let request = |key: &usize| words(&[b"SET", &self.keys[*key].name, &text(value)]);
        let requests: Vec<_> = group.iter().map(request).collect();
        self.exec(client, &requests, deeds, now_us, bytes);
    }

    fn write_together(&mut self, client: usize, keys: &[usize], now_us: u64, bytes: &mut Vec<u8>) {
        let (mut requests, mut deeds) = (Vec::new(), Vec::new());
        for key in keys {
            // Each command does one thing: its reply is that of its deed.
            let (request, mut done) = self.write(client, *key, 1);
            requests.push(request);
            deeds.append(&mut done);
        }
        self.exec(client, &requests, deeds, now_us, bytes);
    }

    fn exec(
        &mut self,
        client: usize,
        requests: &[Words],
        deeds: Vec<Deed>,
        now_us: u64,
        bytes: &mut Vec<u8>,
    ) {
        encode::request(bytes, &["MULTI"]);
        for request in requests {
            encode::request(bytes, request);
        }
        encode::request(bytes, &["EXEC"]);
        self.act(client, deeds, requests.len() + 2, now_us);
    }
}
