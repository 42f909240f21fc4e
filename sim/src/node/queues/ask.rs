//! What clients of queues ask for.

use super::{Ask, DB, Queues};
use crate::engine::random::Random;
use crate::model::act::End;
use crate::model::pops::{How, seconds};
use rufous_resp::encode;

impl Queues {
    /// What a client asks for next.
    pub fn compose(&mut self, client: usize, bytes: &mut Vec<u8>) -> (Ask, usize) {
        // One client pushes, the others wait: some client waits most of the time.
        let pushes = client == 0;
        let me = &mut self.clients[client];
        if !me.ready {
            encode::request(bytes, &["SELECT", &DB.to_string()]);
            encode::request(bytes, &["EXISTS", "anything"]);
            return (Ask::Select, 2);
        }
        if self.invited == Some(client) {
            return self.compose_wait(client, bytes);
        }
        me.left = me.left.saturating_sub(1);
        let a = me.random.index(self.keys.len());
        if pushes {
            let count = me.random.weighted(&[(5, 1), (1, 3)]);
            let several = me.random.chance(0.2);
            let b = me.random.index(self.keys.len());
            return self.push(client, &[a, b], count, several, bytes);
        }
        let ms = match me.random.chance(0.5) {
            true => 0,
            false => me.random.skewed(1, 3_000),
        };
        let alike = self.alike(a);
        let b = alike[self.clients[client].random.index(alike.len())];
        let random = &mut self.clients[client].random;
        if !self.sorted[a] && random.chance(0.3) {
            let quiet = random.chance(0.2);
            return self.shift((a, b), ms, quiet, bytes);
        }
        let names = match random.chance(0.4) {
            true => [&[a, b][..], &alike[..1]].concat(),
            false => vec![a],
        };
        self.wait(client, names, ms, bytes)
    }

    /// Mostly for one key, and always without an end.
    fn compose_wait(&mut self, client: usize, bytes: &mut Vec<u8>) -> (Ask, usize) {
        self.invited = None;
        let a = self.clients[client].random.index(self.keys.len());
        let alike = self.alike(a);
        let b = alike[self.clients[client].random.index(alike.len())];
        let random = &mut self.clients[client].random;
        if !self.sorted[a] && random.chance(0.15) {
            return self.shift((a, b), 0, false, bytes);
        }
        if random.chance(0.15) {
            return self.wait(client, vec![a, b], 0, bytes);
        }
        self.line.join(client, a);
        self.wait(client, vec![a], 0, bytes)
    }

    /// Keys of the same type.
    fn alike(&self, key: usize) -> Vec<usize> {
        let all = 0..self.keys.len();
        all.filter(|k| self.sorted[*k] == self.sorted[key])
            .collect()
    }

    fn how(random: &mut Random, sorted: bool) -> How {
        let most = random.between(1, 3);
        let first = random.chance(0.7);
        let end = if first { End::Left } else { End::Right };
        match (sorted, random.chance(0.7)) {
            (false, true) => How::One(end),
            (false, false) => How::Some(end, most),
            (true, true) => How::Ranked(first),
            (true, false) => How::RankedSome(first, most),
        }
    }

    fn wait(
        &mut self,
        client: usize,
        keys: Vec<usize>,
        ms: u64,
        bytes: &mut Vec<u8>,
    ) -> (Ask, usize) {
        let how = Self::how(&mut self.clients[client].random, self.sorted[keys[0]]);
        let names: Vec<_> = keys.iter().map(|key| &self.keys[*key][..]).collect();
        encode::request(bytes, &how.request(&names, &seconds(ms)));
        (Ask::Pop(keys, how, (ms > 0).then_some(ms * 1_000)), 1)
    }

    fn shift(
        &self,
        (from, to): (usize, usize),
        ms: u64,
        quiet: bool,
        bytes: &mut Vec<u8>,
    ) -> (Ask, usize) {
        let timeout = seconds(ms);
        let request = [b"BLMOVE", &self.keys[from][..], &self.keys[to]];
        let rest = [&b"LEFT"[..], b"RIGHT", &timeout];
        let first = if quiet { &[&b"QUIET"[..]][..] } else { &[] };
        encode::request(bytes, &[first, &request, &rest].concat());
        (Ask::Move(from, to, (ms > 0).then_some(ms * 1_000)), 1)
    }

    /// Elements for one key, or for several at once in a transaction.
    fn push(
        &mut self,
        client: usize,
        keys: &[usize],
        count: u64,
        several: bool,
        bytes: &mut Vec<u8>,
    ) -> (Ask, usize) {
        let mut pushed = Vec::new();
        let keys = if several { keys } else { &keys[..1] };
        if several {
            encode::request(bytes, &["MULTI"]);
        }
        for &key in keys {
            let command = if self.sorted[key] { "ZADD" } else { "RPUSH" };
            let mut request = vec![command.into(), self.keys[key].clone()];
            for _ in 0..count {
                if self.sorted[key] {
                    let score = self.clients[client].random.below(5);
                    request.push(score.to_string().into_bytes());
                }
                self.next += 1;
                pushed.push((key, self.next));
                request.push(format!("q{}", self.next).into_bytes());
            }
            encode::request(bytes, &request);
        }
        if several {
            encode::request(bytes, &["EXEC"]);
        }
        let replies = if several { keys.len() + 2 } else { 1 };
        (Ask::Push(pushed), replies)
    }

    pub fn feed(&mut self, key: usize, bytes: &mut Vec<u8>) -> (Ask, usize) {
        self.fed.retain(|k| *k != key);
        self.push(self.auditor(), &[key], 1, false, bytes)
    }

    pub fn look(&self, key: usize, bytes: &mut Vec<u8>) -> (Ask, usize) {
        let command = if self.sorted[key] { "ZRANGE" } else { "LRANGE" };
        encode::request(bytes, &[command.as_bytes(), &self.keys[key], b"0", b"-1"]);
        (Ask::Look(key), 1)
    }
}
