//! Turning workloads into requests.

use super::records::{self, FIELD_BYTES, FIELDS, Inserted, RECORD_BYTES};
use super::workload::{Operation, Popularity, Workload};
use crate::client::encode;
use crate::loadgen::conn::{Batch, Expect};
use crate::loadgen::reply::Check;
use crate::loadgen::source::Source;
use crate::loadgen::zipf::{Latest, ScrambledZipfian};
use rufous_base::rng::Rng;

/// Scans take 1 to this many records.
const LONGEST_SCAN: u64 = 100;

/// Writes the records `next..end` once.
pub struct Loading {
    next: u64,
    end: u64,
    pipeline: usize,
}

impl Loading {
    pub fn new(records: u64, pipeline: usize) -> Self {
        Self {
            next: 0,
            end: records,
            pipeline,
        }
    }
}

impl Source for Loading {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for _ in 0..self.pipeline {
            if self.next == self.end {
                return;
            }
            insert(batch, self.next);
            batch
                .expects
                .push(Expect::completing(Check::Simple, Operation::Insert as u8));
            self.next += 1;
        }
    }
}

fn insert(batch: &mut Batch, number: u64) {
    let mut key = Vec::with_capacity(24);
    records::key(number, &mut key);
    let mut value = [b'i'; RECORD_BYTES];
    let first = records::first_bytes(number);
    value[..first.len()].copy_from_slice(&first);
    encode(&mut batch.out, &[b"SET", &key, &value]);
}

/// Chooses records by the workload's popularity.
enum Chooser {
    Zipfian { zipf: ScrambledZipfian, range: u64 },
    Latest(Latest),
}

impl Chooser {
    /// YCSB spreads zipfian choice over the records that the run is expected to insert as well (and
    /// twice as many, to be safe), and draws again when one does not exist yet.
    fn new(workload: Workload, existing: u64, operations: u64) -> Self {
        match workload.popularity() {
            Popularity::Latest => Self::Latest(Latest::new(existing)),
            Popularity::Zipfian => {
                let expected = (operations as f64 * workload.insert_share() * 2.0) as u64;
                Self::Zipfian {
                    zipf: ScrambledZipfian::ycsb(),
                    range: existing + expected,
                }
            }
        }
    }

    fn next(&mut self, rng: &mut Rng, existing: u64) -> u64 {
        match self {
            Self::Latest(latest) => latest.next(rng, existing),
            Self::Zipfian { zipf, range } => loop {
                let number = zipf.next(rng, *range);
                if number < existing {
                    return number;
                }
            },
        }
    }
}

/// A limited number of operations of one workload.
pub struct Running {
    workload: Workload,
    chooser: Chooser,
    pub inserted: Inserted,
    left: u64,
    pipeline: usize,
    rng: Rng,
    /// Records that a connection has read in its last batch in order to modify them.
    to_modify: Vec<Vec<u64>>,
    key: Vec<u8>,
}

impl Running {
    pub fn new(
        workload: Workload,
        inserted: Inserted,
        operations: u64,
        pipeline: usize,
        connections: usize,
    ) -> Self {
        Self {
            workload,
            chooser: Chooser::new(workload, inserted.existing(), operations),
            inserted,
            left: operations,
            pipeline,
            rng: Rng::new(0x4C5B ^ workload as u64),
            to_modify: vec![Vec::new(); connections],
            key: Vec::new(),
        }
    }

    fn choose(&mut self) -> u64 {
        self.chooser.next(&mut self.rng, self.inserted.existing())
    }

    fn read(&mut self, batch: &mut Batch, number: u64) -> Expect {
        records::key(number, &mut self.key);
        encode(&mut batch.out, &[b"GET", &self.key]);
        Expect::completing(value_of(number), Operation::Read as u8)
    }

    /// Overwrites one field of a record.
    fn write(&mut self, batch: &mut Batch, number: u64) {
        let index = self.rng.below(FIELDS);
        let filler = b'a' + self.rng.below(26) as u8;
        let mut field = [0; FIELD_BYTES];
        records::field(number, index, filler, &mut field);
        records::key(number, &mut self.key);
        let offset = (index * FIELD_BYTES as u64).to_string();
        encode(
            &mut batch.out,
            &[b"SETRANGE", &self.key, offset.as_bytes(), &field],
        );
    }

    fn scan(&mut self, batch: &mut Batch) {
        let first = self.choose();
        let length = 1 + self.rng.below(LONGEST_SCAN);
        let end = self.inserted.existing().min(first + length);
        let keys: Vec<Vec<u8>> = (first..end)
            .map(|number| {
                let mut key = Vec::with_capacity(24);
                records::key(number, &mut key);
                key
            })
            .collect();
        let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..])
            .chain(keys.iter().map(Vec::as_slice))
            .collect();
        encode(&mut batch.out, &words);
        batch
            .expects
            .push(Expect::part(Check::Array(keys.len() as u32)));
        for number in first..end {
            batch.expects.push(Expect::part(value_of(number)));
        }
        if let Some(last) = batch.expects.last_mut() {
            last.class = Some(Operation::Scan as u8);
        }
    }

    fn step(&mut self, conn: usize, batch: &mut Batch) {
        let ticket = self.rng.below(100);
        match self.workload.operation(ticket) {
            Operation::Read => {
                let number = self.choose();
                let expect = self.read(batch, number);
                batch.expects.push(expect);
            }
            Operation::Update => {
                let number = self.choose();
                self.write(batch, number);
                batch
                    .expects
                    .push(Expect::completing(Check::Integer, Operation::Update as u8));
            }
            Operation::Insert => {
                let number = self.inserted.hand_out();
                insert(batch, number);
                let mut expect = Expect::completing(Check::Simple, Operation::Insert as u8);
                expect.notify = Some(number);
                batch.expects.push(expect);
            }
            Operation::Scan => self.scan(batch),
            // The read goes out now, the write with this connection's next batch.
            Operation::ReadModifyWrite => {
                let number = self.choose();
                let expect = Expect {
                    class: None,
                    ..self.read(batch, number)
                };
                batch.expects.push(expect);
                self.to_modify[conn].push(number);
            }
        }
    }
}

fn value_of(number: u64) -> Check {
    Check::Value {
        first: records::first_bytes(number),
        len: RECORD_BYTES as u32,
    }
}

impl Source for Running {
    fn fill(&mut self, conn: usize, batch: &mut Batch) {
        for number in std::mem::take(&mut self.to_modify[conn]) {
            self.write(batch, number);
            let class = Operation::ReadModifyWrite as u8;
            let mut expect = Expect::completing(Check::Integer, class);
            expect.since_previous = true;
            batch.expects.push(expect);
        }
        while self.left > 0 && batch.expects.len() < self.pipeline {
            self.left -= 1;
            self.step(conn, batch);
        }
    }

    fn notified(&mut self, number: u64) {
        self.inserted.answered(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a workload against nothing, answering every insert; returns completed operations by
    /// class and the commands sent.
    fn drive(workload: Workload, operations: u64) -> ([u64; 5], String, Running) {
        let mut running = Running::new(workload, Inserted::with(1_000), operations, 1, 1);
        let (mut counts, mut sent) = ([0; 5], Vec::new());
        loop {
            let mut batch = Batch::default();
            running.fill(0, &mut batch);
            if batch.expects.is_empty() {
                return (counts, String::from_utf8(sent).unwrap(), running);
            }
            for expect in &batch.expects {
                if let Some(class) = expect.class {
                    counts[usize::from(class)] += 1;
                }
                if let Some(number) = expect.notify {
                    running.notified(number);
                }
            }
            sent.extend(batch.out);
        }
    }

    #[test]
    fn every_operation_completes_once_in_its_share() {
        for workload in Workload::IN_ORDER {
            let (counts, _, _) = drive(workload, 20_000);
            assert_eq!(counts.iter().sum::<u64>(), 20_000, "{workload:?}");
            for (percent, operation) in workload.mix() {
                let got = counts[*operation as usize] as f64 / 200.0;
                assert!(
                    (got - *percent as f64).abs() < 1.5,
                    "{workload:?} {operation:?} {got}"
                );
            }
        }
    }

    #[test]
    fn modifying_reads_and_then_writes_the_same_key() {
        let (counts, sent, _) = drive(Workload::F, 2_000);
        let writes = counts[Operation::ReadModifyWrite as usize] as usize;
        assert_eq!(sent.matches("$8\r\nSETRANGE\r\n").count(), writes);
        assert_eq!(sent.matches("$3\r\nGET\r\n").count(), 2_000);
        // With one operation in flight, the write follows its read directly.
        let commands: Vec<&str> = sent.split('*').skip(1).collect();
        for pair in commands
            .windows(2)
            .filter(|pair| pair[1].contains("SETRANGE"))
        {
            let key = pair[0].split("\r\n").nth(4).unwrap();
            assert!(pair[1].contains(&format!("\r\n{key}\r\n")), "{pair:?}");
        }
    }

    #[test]
    fn inserts_add_records_and_scans_stay_within_them() {
        let (counts, sent, running) = drive(Workload::E, 2_000);
        let inserts = counts[Operation::Insert as usize];
        assert_eq!(running.inserted.existing(), 1_000 + inserts);
        assert_eq!(
            sent.matches("$4\r\nMGET\r\n").count() as u64,
            2_000 - inserts
        );
        let mut longest = 0;
        for command in sent
            .split('*')
            .skip(1)
            .filter(|c| c.contains("\r\nMGET\r\n"))
        {
            let words: u64 = command.split("\r\n").next().unwrap().parse().unwrap();
            assert!((2..=LONGEST_SCAN + 1).contains(&words), "{words}");
            longest = longest.max(words);
        }
        assert!(longest > 90, "{longest}");
    }
}
