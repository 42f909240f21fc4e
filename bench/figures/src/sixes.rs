//! Six operations that belong together, as a client of each level does them [Anna §VIII-D]: two records
//! are read, one is changed, both are read again, and the other is changed.

use std::sync::Arc;

use super::rmw::{get, set};
use super::served::SHAPE;
use rufous_bench::client::encode;
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::loadgen::template::{Command, Template};

pub(crate) const OPERATIONS: usize = 6;

/// Which of the two records an operation is on, and whether it writes.
pub(crate) const STEPS: [(usize, bool); OPERATIONS] = [
    (0, false),
    (1, false),
    (0, true),
    (0, false),
    (1, false),
    (1, true),
];

/// How a client does them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each by itself.
    Single,
    /// Each by itself between BEGIN, which goes with the first, and COMMIT, which goes with the last.
    Begun(&'static str),
    /// Writes wait with the client until the end, and go as one MULTI; what it has written it reads
    /// there.
    Buffered,
    /// Likewise, and what it has read it does not ask for again.
    Cached,
}

impl Way {
    /// The operations that ask the server one by one, before the last request.
    pub(crate) fn asks(self, step: usize) -> bool {
        let (record, writes) = STEPS[step];
        let is_known = |writing: bool| STEPS[..step].contains(&(record, writing));
        match self {
            Self::Single | Self::Begun(_) => true,
            Self::Buffered => !writes && !is_known(true),
            Self::Cached => !writes && !is_known(true) && !is_known(false),
        }
    }

    /// Times that a client waits for a reply.
    pub(crate) fn round_trips(self) -> usize {
        let asked = (0..OPERATIONS).filter(|&step| self.asks(step)).count();
        asked + usize::from(matches!(self, Self::Buffered | Self::Cached))
    }
}

/// Clients that do so without end.
pub(crate) struct Sixes {
    numbers: Arc<[u32]>,
    at: usize,
    way: Way,
    /// Of each client the records, and what comes next.
    clients: Vec<([u32; 2], usize)>,
    get: Template,
    set: Template,
}

impl Sixes {
    pub(crate) fn new(numbers: &Arc<[u32]>, way: Way, clients: usize) -> Self {
        Self {
            numbers: Arc::clone(numbers),
            at: 0,
            way,
            clients: vec![([0; 2], 0); clients],
            get: Template::new(Command::Get, SHAPE),
            set: Template::new(Command::Set, SHAPE),
        }
    }

    fn draw(&mut self) -> [u32; 2] {
        let pair = [self.at, self.at + 1].map(|at| self.numbers[at % self.numbers.len()]);
        self.at = (self.at + 2) % self.numbers.len();
        pair
    }

    /// What was kept until now.
    fn commit(&self, records: [u32; 2], batch: &mut Batch) {
        encode(&mut batch.out, &[b"MULTI"]);
        let writes = STEPS.iter().filter(|(_, writes)| *writes);
        let writes: Vec<u32> = writes.map(|(record, _)| records[*record]).collect();
        for &number in &writes {
            self.set.emit_from(&mut batch.out, u64::from(number));
        }
        encode(&mut batch.out, &[b"EXEC"]);
        let queued = [Check::Simple].repeat(1 + writes.len());
        let done = [Check::Simple].repeat(writes.len());
        let head = Check::Array(writes.len() as u32);
        let checks = queued.into_iter().chain([head]).chain(done);
        let first = batch.expects.len();
        batch.expects.extend(checks.map(Expect::part));
        // Those that did not ask end here.
        let kept = (0..OPERATIONS).filter(|&step| !self.way.asks(step)).count();
        let from = first.max(batch.expects.len() - kept);
        for expect in &mut batch.expects[from..] {
            expect.class = Some(0);
        }
    }
}

impl Source for Sixes {
    fn fill(&mut self, conn: usize, batch: &mut Batch) {
        let (mut records, mut step) = self.clients[conn];
        if step == 0 {
            records = self.draw();
            if let Way::Begun(level) = self.way {
                encode(&mut batch.out, &[b"BEGIN", level.as_bytes()]);
                batch.expects.push(Expect::part(Check::Simple));
            }
        }
        while step < OPERATIONS && !self.way.asks(step) {
            step += 1;
        }
        if let Some((record, writes)) = STEPS.get(step) {
            match writes {
                true => set(&self.set, records[*record], batch),
                false => get(&self.get, records[*record], batch),
            }
            step += 1;
        } else {
            self.commit(records, batch);
            step = 0;
        }
        if step == OPERATIONS && matches!(self.way, Way::Single | Way::Begun(_)) {
            if let Way::Begun(_) = self.way {
                encode(&mut batch.out, &[b"COMMIT"]);
                batch.expects.push(Expect::part(Check::Any));
            }
            step = 0;
        }
        self.clients[conn] = (records, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_bench::loadgen::keys::{digits, prefix};

    /// The name of a record, as the commands have it.
    fn name(number: u64) -> String {
        let name = [&prefix(SHAPE.key_bytes)[..], &digits(number)].concat();
        String::from_utf8(name).unwrap()
    }

    /// The commands of one client's round trips, and the operations that each completes.
    fn run(way: Way) -> Vec<(Vec<String>, usize)> {
        let numbers: Arc<[u32]> = Arc::from([3, 4, 5, 6]);
        let mut sixes = Sixes::new(&numbers, way, 1);
        let mut trips = Vec::new();
        for _ in 0..way.round_trips() {
            let mut batch = Batch::default();
            sixes.fill(0, &mut batch);
            let text = String::from_utf8(batch.out).unwrap();
            let named = |word: &str| match word {
                "GET" | "SET" | "MULTI" | "EXEC" | "BEGIN" | "COMMIT" => Some(word.to_owned()),
                _ if word == name(3) => Some("a".into()),
                _ if word == name(4) => Some("b".into()),
                _ => None,
            };
            let words: Vec<String> = text.split("\r\n").filter_map(named).collect();
            let done = batch.expects.iter().filter(|e| e.class.is_some()).count();
            trips.push((words, done));
        }
        assert_eq!(sixes.clients[0].1, 0, "it begins anew");
        assert_eq!(sixes.draw(), [5, 6]);
        trips
    }

    fn show(way: Way) -> Vec<String> {
        let trips = run(way);
        let done: usize = trips.iter().map(|(_, done)| done).sum();
        assert_eq!(done, OPERATIONS, "{trips:?}");
        trips
            .into_iter()
            .map(|(words, _)| words.join(" "))
            .collect()
    }

    #[test]
    fn each_level_asks_for_what_it_must() {
        assert_eq!(
            show(Way::Single),
            ["GET a", "GET b", "SET a", "GET a", "GET b", "SET b"]
        );
        let begun = show(Way::Begun("item-cut"));
        assert_eq!(
            (begun[0].as_str(), begun[5].as_str()),
            ("BEGIN GET a", "SET b COMMIT")
        );
        assert_eq!(begun.len(), 6);
        assert_eq!(
            show(Way::Buffered),
            ["GET a", "GET b", "GET b", "MULTI SET a SET b EXEC"]
        );
        assert_eq!(
            show(Way::Cached),
            ["GET a", "GET b", "MULTI SET a SET b EXEC"]
        );
    }
}
