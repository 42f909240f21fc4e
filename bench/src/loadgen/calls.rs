//! Commands written word by word by a function of their number, for data types, whose commands differ
//! in more than a key.

use std::io::Write;
use std::ops::Range;

use super::conn::{Batch, Expect};
use super::keys::digits;
use super::reply::Check;
use super::source::Source;
use rufous_base::rng::Rng;

/// Writes the command of this number and tells what its reply has to be.
pub type Caller = fn(&mut Call<'_>, u64) -> Check;

/// The command under way.
pub struct Call<'a> {
    out: &'a mut Vec<u8>,
    pub rng: &'a mut Rng,
    /// How many collections there are.
    pub collections: u64,
    /// How many elements each of them has.
    pub elements: u64,
}

impl Call<'_> {
    /// The head of a command of so many words, its name included.
    pub fn begin(&mut self, words: u64, name: &str) -> &mut Self {
        self.head(b'*', words);
        self.word(name.as_bytes())
    }

    pub fn word(&mut self, word: &[u8]) -> &mut Self {
        self.head(b'$', word.len() as u64);
        self.out.extend_from_slice(word);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// A letter and eight digits: no integer, so that nothing can be kept as one.
    pub fn name(&mut self, letter: u8, number: u64) -> &mut Self {
        let mut name = [letter; 9];
        name[1..].copy_from_slice(&digits(number));
        self.word(&name)
    }

    pub fn number(&mut self, number: u64) -> &mut Self {
        let mut text = [0; 20];
        let mut rest = &mut text[..];
        // A u64 has at most twenty digits.
        let _ = write!(rest, "{number}");
        let left = rest.len();
        self.word(&text[..20 - left])
    }

    /// A key of `letter`, uniformly drawn.
    pub fn any_key(&mut self, letter: u8) -> &mut Self {
        let number = self.rng.below(self.collections);
        self.name(letter, number)
    }

    fn head(&mut self, kind: u8, number: u64) {
        self.out.push(kind);
        if number < 10 {
            self.out.push(b'0' + number as u8);
        } else {
            // Writing to a vector cannot fail.
            let _ = write!(self.out, "{number}");
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

/// The commands of a range of numbers, several per write.
#[derive(Clone)]
pub struct Calls {
    pub caller: Caller,
    pub numbers: Range<u64>,
    pub collections: u64,
    pub elements: u64,
    pub pipeline: usize,
    rng: Rng,
}

impl Calls {
    pub fn new(caller: Caller, numbers: Range<u64>, pipeline: usize) -> Self {
        Self {
            caller,
            numbers,
            collections: 1,
            elements: 1,
            pipeline,
            rng: Rng::new(0x0007_17E5),
        }
    }

    /// Over so many collections of so many elements each.
    pub fn over(mut self, collections: u64, elements: u64) -> Self {
        (self.collections, self.elements) = (collections, elements);
        self
    }
}

impl Source for Calls {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for number in self.numbers.by_ref().take(self.pipeline) {
            let mut call = Call {
                out: &mut batch.out,
                rng: &mut self.rng,
                collections: self.collections,
                elements: self.elements,
            };
            let check = (self.caller)(&mut call, number);
            batch.expects.push(Expect::completing(check, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_written_in_turn_and_end() {
        let caller: Caller = |call, number| {
            call.begin(4, "HSET").name(b'h', number).word(b"f");
            call.number(number * 1_000);
            Check::Integer
        };
        let mut calls = Calls::new(caller, 1..4, 2);
        let mut batch = Batch::default();
        calls.fill(0, &mut batch);
        assert_eq!(batch.expects.len(), 2);
        let text = String::from_utf8(batch.out).unwrap();
        let first = "*4\r\n$4\r\nHSET\r\n$9\r\nh00000001\r\n$1\r\nf\r\n$4\r\n1000\r\n";
        assert!(text.starts_with(first), "{text}");
        let mut rest = Batch::default();
        calls.fill(0, &mut rest);
        calls.fill(0, &mut rest);
        assert_eq!(rest.expects.len(), 1);
        assert!(String::from_utf8(rest.out).unwrap().contains("h00000003"));
    }

    #[test]
    fn long_commands_tell_their_length() {
        let caller: Caller = |call, _| {
            call.begin(13, "SADD").any_key(b's');
            (0..11).for_each(|i| {
                call.name(b'm', i);
            });
            Check::Integer
        };
        let mut batch = Batch::default();
        Calls::new(caller, 0..1, 1).over(7, 11).fill(0, &mut batch);
        let text = String::from_utf8(batch.out).unwrap();
        assert!(text.starts_with("*13\r\n$4\r\nSADD\r\n$9\r\ns0000000"));
        assert_eq!(text.matches("$9\r\nm").count(), 11);
    }
}
