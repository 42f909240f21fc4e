//! A client of a level of sessions: it writes and reads texts and sets, one operation after the other, over its pool.

use std::collections::BTreeSet;
use std::time::Duration;

use rufous_bench::client::Reply;
use rufous_sim::engine::random::Random;

use super::pool::Pool;
use super::record::Deed;
use super::{Scene, Stage};

/// Texts of a scene.
pub const TEXTS: u64 = 2;
/// Sets of a round.
const SETS: u64 = 2;
/// After a round clients use new sets: reads of one that grows without end would be slow.
const ROUND: Duration = Duration::from_millis(2_500);
/// Operations of a request of the application, most of them on the same keys.
const REQUEST: (u64, u64) = (3, 6);
/// Between two of these, in milliseconds.
const GAP_MS: (u64, u64) = (1, 5);
/// Operations of a request on any other keys.
const ELSEWHERE: f64 = 0.3;
/// Between two requests, in milliseconds.
const PAUSE_MS: (u64, u64) = (30, 90);

struct Client<'a> {
    scene: &'a Scene,
    pool: Pool<'a>,
    /// 0 or 1: it removes elements whose numbers are even, or odd.
    no: u64,
    /// What it may remove, of the set that it has read last.
    shown: Option<(u64, Vec<u64>)>,
    removed: BTreeSet<u64>,
}

pub fn work(stage: &Stage, scene: &Scene, no: u64, mut random: Random) {
    let pool = Pool::new(&scene.record, &stage.doors, scene.has_tokens());
    let mut client = Client {
        scene,
        pool,
        no,
        shown: None,
        removed: BTreeSet::new(),
    };
    while !stage.has_ended() {
        let (text, set) = (random.below(TEXTS), random.below(SETS));
        for _ in 0..random.between(REQUEST.0, REQUEST.1) {
            if client.pool.is_ready(&mut random) {
                client.act(text, set, &mut random);
                client.pool.keep_token();
            }
            pause(GAP_MS, &mut random);
        }
        pause(PAUSE_MS, &mut random);
    }
    scene.record.add(client.pool.counts);
}

fn pause((least, most): (u64, u64), random: &mut Random) {
    let time = random.between(least, most);
    std::thread::sleep(Duration::from_millis(time));
}

impl Client<'_> {
    /// One operation, mostly on this text or set.
    fn act(&mut self, text: u64, set: u64, random: &mut Random) {
        let (text, set) = if random.chance(ELSEWHERE) {
            (random.below(TEXTS), random.below(SETS))
        } else {
            (text, set)
        };
        let round = self.scene.record.elapsed().as_millis() / ROUND.as_millis();
        let set = round as u64 * SETS + set;
        match random.below(100) {
            0..20 => self.set(text),
            20..45 => self.get(text),
            45..65 => self.add(set),
            65..72 => self.remove(),
            _ => self.look(set),
        }
    }

    fn set(&mut self, key: u64) {
        let number = self.scene.record.new_number();
        let name = self.scene.text(key);
        self.write(key, Deed::Set(number), &["SET", &name, &number.to_string()]);
    }

    fn add(&mut self, key: u64) {
        let number = self.scene.record.new_number();
        let name = self.scene.set(key);
        self.write(
            key,
            Deed::Add(number),
            &["SADD", &name, &number.to_string()],
        );
    }

    fn remove(&mut self) {
        let Some((key, shown)) = &mut self.shown else {
            return;
        };
        let (key, Some(number)) = (*key, shown.pop()) else {
            return;
        };
        self.removed.insert(number);
        let name = self.scene.set(key);
        let words = ["SREM", name.as_str(), &number.to_string()];
        self.write(key, Deed::Remove(number), &words);
    }

    fn write(&mut self, key: u64, deed: Deed, words: &[&str]) {
        let record = &self.scene.record;
        let at = record.note(self.pool.session(), self.pool.node(), key, deed);
        match self.pool.ask(words) {
            None => record.on_no_reply(at),
            Some(Reply::Integer(1)) => record.on_reply(at),
            Some(Reply::Simple(ok)) if ok == "OK" => record.on_reply(at),
            Some(Reply::Integer(0)) => record.on_nothing_done(at),
            Some(other) => record.on_odd(format!("{}: {other:?}", words.join(" "))),
        }
    }

    fn get(&mut self, key: u64) {
        let (session, node) = (self.pool.session(), self.pool.node());
        let name = self.scene.text(key);
        let Some(reply) = self.pool.ask(&["GET", &name]) else {
            return;
        };
        match number(&reply) {
            Ok(found) => {
                self.scene.record.note(session, node, key, Deed::Got(found));
            }
            Err(odd) => self.scene.record.on_odd(format!("GET {name}: {odd}")),
        }
    }

    fn look(&mut self, key: u64) {
        let (session, node) = (self.pool.session(), self.pool.node());
        let name = self.scene.set(key);
        let Some(reply) = self.pool.ask(&["SMEMBERS", &name]) else {
            return;
        };
        match members(&reply) {
            Ok(members) => {
                let mine = |number: &u64| number % 2 == self.no && !self.removed.contains(number);
                let shown = members.iter().copied().filter(mine).collect();
                self.shown = Some((key, shown));
                let deed = Deed::Members(members);
                self.scene.record.note(session, node, key, deed);
            }
            Err(odd) => self.scene.record.on_odd(format!("SMEMBERS {name}: {odd}")),
        }
    }
}

/// The number of a text, or what else there is.
pub fn number(reply: &Reply) -> Result<Option<u64>, String> {
    let odd = || format!("{reply:?}");
    match reply {
        Reply::Nil => Ok(None),
        Reply::Bulk(text) => {
            let text = std::str::from_utf8(text).map_err(|_| odd())?;
            text.parse().map(Some).map_err(|_| odd())
        }
        _ => Err(odd()),
    }
}

/// The numbers of a set, or what else there is.
pub fn members(reply: &Reply) -> Result<BTreeSet<u64>, String> {
    let odd = || format!("{reply:?}");
    let Reply::Array(all) = reply else {
        return Err(odd());
    };
    let of = |one: &Reply| number(one)?.ok_or_else(odd);
    all.iter().map(of).collect()
}
