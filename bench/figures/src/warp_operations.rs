//! What clients send in Warp's figures: operations of a workload, one at a time, one behind the other, or in a
//! transaction.

use rufous_base::rng::Rng;
use rufous_bench::client::encode;
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::loadgen::zipf::{Latest, YCSB_THETA, Zipfian};

use super::callers::key;

pub(crate) const VALUE_BYTES: usize = 64;

/// Which keys are used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// By YCSB's popularity.
    Popular,
    Evenly,
    /// The newest are read most, and a write makes a new one.
    Latest,
}

/// Parts of operations, in percent; the others are increments, which read, change and write a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub name: &'static str,
    pub reads: u64,
    pub writes: u64,
    pub drawn: Drawn,
}

/// How operations are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The next one after the reply to the one before.
    OneByOne,
    /// So many in one write.
    Pipeline(usize),
    /// So many between `MULTI` and `EXEC`, in one write.
    Transaction(usize),
}

/// A source of numbers of keys.
#[derive(Clone)]
enum Numbers {
    Popular(Zipfian),
    Evenly,
    Latest(Latest),
}

/// See the module's description.
#[derive(Clone)]
pub(crate) struct Operations {
    workload: Workload,
    numbers: Numbers,
    /// Keys that there are.
    pub keys: u64,
    way: Way,
    rng: Rng,
}

impl Operations {
    pub(crate) fn new(workload: Workload, keys: u64) -> Self {
        let numbers = match workload.drawn {
            Drawn::Popular => Numbers::Popular(Zipfian::new(keys, YCSB_THETA)),
            Drawn::Evenly => Numbers::Evenly,
            Drawn::Latest => Numbers::Latest(Latest::new(keys)),
        };
        Self {
            workload,
            numbers,
            keys,
            way: Way::OneByOne,
            rng: Rng::new(0),
        }
    }

    /// They are sent like that from now on, and are those of this seed.
    pub(crate) fn send(&mut self, way: Way, seed: u64) {
        (self.way, self.rng) = (way, Rng::new(seed));
    }

    fn number(&mut self) -> u64 {
        match &mut self.numbers {
            Numbers::Popular(popularity) => popularity.next(&mut self.rng),
            Numbers::Evenly => self.rng.below(self.keys),
            Numbers::Latest(latest) => latest.next(&mut self.rng, self.keys),
        }
    }

    /// Appends one; what its reply must look like.
    fn one(&mut self, out: &mut Vec<u8>) -> Check {
        let drawn = self.rng.below(100);
        let is_read = drawn < self.workload.reads;
        let is_write = drawn < self.workload.reads + self.workload.writes;
        if !is_read && matches!(self.numbers, Numbers::Latest(_)) {
            self.keys += 1;
            let name = key(self.keys - 1);
            encode(out, &[b"SET", name.as_bytes(), &[b'v'; VALUE_BYTES]]);
            return Check::Simple;
        }
        let number = self.number();
        let name = key(number);
        if is_read {
            encode(out, &[b"GET", name.as_bytes()]);
            // Or nil: the newest may not be there yet.
            Check::Bulk
        } else if is_write {
            encode(out, &[b"SET", name.as_bytes(), &[b'v'; VALUE_BYTES]]);
            Check::Simple
        } else {
            encode(out, &[b"INCR", format!("n{number:08}").as_bytes()]);
            Check::Integer
        }
    }
}

impl Source for Operations {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        let (size, is_grouped) = match self.way {
            Way::OneByOne => (1, false),
            Way::Pipeline(size) => (size, false),
            Way::Transaction(size) => (size, true),
        };
        if is_grouped {
            encode(&mut batch.out, &[b"MULTI"]);
            batch.expects.push(Expect::part(Check::Simple));
        }
        let mut checks = Vec::new();
        for _ in 0..size {
            checks.push(self.one(&mut batch.out));
        }
        if is_grouped {
            encode(&mut batch.out, &[b"EXEC"]);
            let queued = checks.iter().map(|_| Expect::part(Check::Simple));
            batch.expects.extend(queued);
            let whole = Check::Array(checks.len() as u32);
            batch.expects.push(Expect::part(whole));
        }
        let each = checks.into_iter();
        let completing = each.map(|check| Expect::completing(check, 0));
        batch.expects.extend(completing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(workload: Workload, way: Way) -> (String, usize) {
        let mut source = Operations::new(workload, 1000);
        source.send(way, 7);
        let mut batch = Batch::default();
        source.fill(0, &mut batch);
        (String::from_utf8(batch.out).unwrap(), batch.expects.len())
    }

    fn workload(reads: u64, drawn: Drawn) -> Workload {
        Workload {
            name: "",
            reads,
            writes: 100 - reads,
            drawn,
        }
    }

    #[test]
    fn the_same_operations_are_alone_and_in_a_transaction() {
        let half = workload(50, Drawn::Popular);
        let (alone, replies) = sent(half, Way::Pipeline(8));
        let (grouped, more) = sent(half, Way::Transaction(8));
        assert_eq!((replies, more), (8, 18));
        let inside = grouped.strip_prefix("*1\r\n$5\r\nMULTI\r\n").unwrap();
        assert_eq!(inside.strip_suffix("*1\r\n$4\r\nEXEC\r\n"), Some(&*alone));
        let (one, replies) = sent(half, Way::OneByOne);
        assert!(replies == 1 && alone.starts_with(&one));
    }

    #[test]
    fn writes_of_the_latest_make_new_keys() {
        let (sent, _) = sent(workload(0, Drawn::Latest), Way::Pipeline(2));
        let (first, second) = (sent.find("k00001000"), sent.find("k00001001"));
        assert!(first.is_some() && first < second, "{sent}");
    }
}
