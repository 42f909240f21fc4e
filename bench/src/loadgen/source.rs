//! What connections send: random command mixes, and preloads that run through a range of keys once.

use std::ops::Range;

use super::conn::{Batch, Expect};
use super::keys::Keys;
use super::reply::Check;
use super::template::{Command, Shape, Template};
use rufous_base::rng::Rng;

/// Writes the next batch of a connection.
pub trait Source {
    /// Appends requests and their expected replies for connection `conn`; nothing appended means
    /// that this connection is done.
    fn fill(&mut self, conn: usize, batch: &mut Batch);

    /// A reply marked with `number` has come.
    fn notified(&mut self, number: u64) {
        let _ = number;
    }
}

/// Commands drawn from a weighted mix, on keys drawn from a distribution, without end.
#[derive(Clone, Debug)]
pub struct Mix {
    commands: Vec<(u64, Template)>,
    total_weight: u64,
    keys: Keys,
    pipeline: usize,
    rng: Rng,
}

impl Mix {
    pub fn new(commands: &[(u64, Command)], shape: Shape, keys: Keys, pipeline: usize) -> Self {
        Self {
            commands: commands
                .iter()
                .map(|(w, c)| (*w, Template::new(*c, shape)))
                .collect(),
            total_weight: commands.iter().map(|(w, _)| w).sum(),
            keys,
            pipeline,
            rng: Rng::new(0x5EED),
        }
    }

    pub fn one(command: Command, shape: Shape, keys: Keys, pipeline: usize) -> Self {
        Self::new(&[(1, command)], shape, keys, pipeline)
    }

    /// The same mix in another order.
    pub fn reseeded(&self, seed: u64) -> Self {
        Self {
            rng: Rng::new(0x5EED ^ (seed << 16)),
            ..self.clone()
        }
    }

    fn draw(&mut self) -> usize {
        if self.commands.len() == 1 {
            return 0;
        }
        let mut ticket = self.rng.below(self.total_weight);
        self.commands
            .iter()
            .position(|(weight, _)| {
                let hit = ticket < *weight;
                ticket = ticket.saturating_sub(*weight);
                hit
            })
            .unwrap_or(0)
    }
}

impl Source for Mix {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for _ in 0..self.pipeline {
            let which = self.draw();
            let template = &self.commands[which].1;
            let expects = &mut batch.expects;
            template.emit(&mut batch.out, &self.keys, &mut self.rng, |check, last| {
                expects.push(Expect {
                    check,
                    class: last.then_some(which as u8),
                    since_previous: false,
                    notify: None,
                });
            });
        }
    }
}

/// One writing command over each key of a range, in order.
#[derive(Clone, Debug)]
pub struct Preload {
    template: Template,
    keys: Range<u64>,
    pipeline: usize,
}

impl Preload {
    /// `command` takes one key and answers a simple string.
    pub fn new(command: Command, shape: Shape, keys: Range<u64>, pipeline: usize) -> Self {
        Self {
            template: Template::new(command, shape),
            keys,
            pipeline,
        }
    }
}

impl Source for Preload {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for key in self.keys.by_ref().take(self.pipeline) {
            self.template.emit_from(&mut batch.out, key);
            batch.expects.push(Expect::completing(Check::Simple, 0));
        }
    }
}

/// The same bytes a limited number of times, one reply each.
#[derive(Clone, Debug)]
pub struct Repeat {
    pub request: Vec<u8>,
    pub check: Check,
    pub times: u64,
}

impl Source for Repeat {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        if self.times > 0 {
            self.times -= 1;
            batch.out.extend_from_slice(&self.request);
            batch.expects.push(Expect::completing(self.check, 0));
        }
    }
}

/// Ends another source after a number of batches.
#[derive(Clone, Debug)]
pub struct Limited<S> {
    pub source: S,
    pub batches: u64,
}

impl<S: Source> Source for Limited<S> {
    fn fill(&mut self, conn: usize, batch: &mut Batch) {
        if self.batches > 0 {
            self.batches -= 1;
            self.source.fill(conn, batch);
        }
    }

    fn notified(&mut self, number: u64) {
        self.source.notified(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_keep_their_weights() {
        let commands = [(95, Command::Get), (5, Command::Set)];
        let mut mix = Mix::new(&commands, Shape::default(), Keys::Uniform(1_000), 100);
        let mut counts = [0u32; 2];
        for _ in 0..1_000 {
            let mut batch = Batch::default();
            mix.fill(0, &mut batch);
            assert_eq!(batch.expects.len(), 100);
            for expect in &batch.expects {
                counts[usize::from(expect.class.unwrap())] += 1;
            }
        }
        assert_eq!(counts.iter().sum::<u32>(), 100_000);
        assert!((94_500..95_500).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn a_preload_covers_its_range_once() {
        let shape = Shape {
            key_bytes: 8,
            value_bytes: 8,
        };
        let mut preload = Preload::new(Command::Set, shape, 5..12, 3);
        let (mut sent, mut replies) = (Vec::new(), 0);
        loop {
            let mut batch = Batch::default();
            preload.fill(0, &mut batch);
            if batch.expects.is_empty() {
                break;
            }
            replies += batch.expects.len();
            sent.extend(batch.out);
        }
        assert_eq!(replies, 7);
        let text = String::from_utf8(sent).unwrap();
        for key in 5..12 {
            assert_eq!(
                text.matches(&format!("$8\r\n{key:08}\r\n$8\r\n{key:08}"))
                    .count(),
                1
            );
        }
    }

    #[test]
    fn limits_end_a_source() {
        let repeat = Repeat {
            request: b"x".to_vec(),
            check: Check::Simple,
            times: 9,
        };
        let mut limited = Limited {
            source: repeat,
            batches: 2,
        };
        let sizes: Vec<usize> = (0..4)
            .map(|_| {
                let mut batch = Batch::default();
                limited.fill(0, &mut batch);
                batch.expects.len()
            })
            .collect();
        assert_eq!(sizes, [1, 1, 0, 0]);
    }
}
