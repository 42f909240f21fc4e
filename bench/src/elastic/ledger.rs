//! What one writer was told, and whether that is what it reads.
//!
//! A writer has keys of its own and asks for one thing at a time, so it knows what each
//! key must have: what was acknowledged last. A write without an answer is *in doubt*: it
//! may be done, now or later. Its key is left alone from then on, and read at the end only:
//! it may have what was acknowledged, or that and the write.

use std::collections::VecDeque;

/// Half of the keys are texts, half of them counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Counter,
}

/// What a key must have: of a text the number of its value, of a counter its count; 0 is
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    kind: Kind,
    acknowledged: u64,
    /// What it may have instead.
    doubt: Option<u64>,
}

/// A question or a change, about the writer's key at `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    place: usize,
    write: Option<u64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered(Answer),
    /// The server said that it has done nothing.
    NotDone,
    /// Nobody can say.
    Doubt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Nil,
    Number(i64),
    Text(Vec<u8>),
    /// What makes no sense here.
    Other(String),
}

/// See the module's description.
#[derive(Debug)]
pub struct Ledger {
    name: String,
    keys: Vec<Key>,
    /// Those with a write in doubt.
    left: Vec<Key>,
    made: u64,
    values: u64,
    turn: u64,
    value_bytes: usize,
    pub acknowledged: u64,
    /// Answers that cannot be, in words.
    pub wrong: VecDeque<String>,
    pub wrongs: u64,
}

/// Wrong answers that are kept in words.
const KEPT: usize = 20;

impl Ledger {
    /// `name` begins the names of all keys.
    pub fn new(name: &str, keys: usize, value_bytes: usize) -> Self {
        let mut ledger = Self {
            name: name.to_owned(),
            keys: Vec::new(),
            left: Vec::new(),
            made: 0,
            values: 0,
            turn: 0,
            value_bytes,
            acknowledged: 0,
            wrong: VecDeque::new(),
            wrongs: 0,
        };
        for place in 0..keys.max(2) {
            let key = ledger.make(place);
            ledger.keys.push(key);
        }
        ledger
    }

    fn make(&mut self, place: usize) -> Key {
        self.made += 1;
        Key {
            name: format!("{}:{}", self.name, self.made),
            kind: match place % 2 {
                0 => Kind::Text,
                _ => Kind::Counter,
            },
            acknowledged: 0,
            doubt: None,
        }
    }

    /// What to ask for next: each key is written, and read some other time.
    pub fn next_request(&mut self) -> Request {
        self.turn += 1;
        let keys = self.keys.len() as u64;
        // Reads go another way through the keys than writes.
        let (place, write) = match self.turn % 2 {
            0 => ((self.turn / 2) % keys, true),
            _ => ((self.turn / 2).wrapping_mul(7919) % keys, false),
        };
        let place = place as usize;
        let write = write.then(|| match self.keys[place].kind {
            Kind::Text => {
                self.values += 1;
                self.values
            }
            Kind::Counter => self.keys[place].acknowledged + 1,
        });
        Request { place, write }
    }

    /// The words of a request.
    pub fn words(&self, request: Request) -> Vec<Vec<u8>> {
        let key = &self.keys[request.place];
        let name = key.name.clone().into_bytes();
        match (request.write, key.kind) {
            (None, _) => vec![b"GET".to_vec(), name],
            (Some(_), Kind::Counter) => vec![b"INCR".to_vec(), name],
            (Some(value), Kind::Text) => {
                vec![b"SET".to_vec(), name, text(value, self.value_bytes)]
            }
        }
    }

    pub fn note(&mut self, request: Request, outcome: &Outcome) {
        let key = &mut self.keys[request.place];
        let wrong = match (outcome, request.write, key.kind) {
            (Outcome::NotDone, ..) | (Outcome::Doubt, None, _) => None,
            (Outcome::Doubt, Some(value), _) => {
                key.doubt = Some(value);
                let new = self.make(request.place);
                let old = std::mem::replace(&mut self.keys[request.place], new);
                self.left.push(old);
                None
            }
            (Outcome::Answered(answer), None, _) => {
                let wrong = key.judge(answer);
                // What is wrong once is told once.
                if let (Some(_), Some(value)) = (&wrong, number(answer)) {
                    key.acknowledged = value;
                }
                wrong
            }
            (Outcome::Answered(Answer::Done), Some(value), Kind::Text) => {
                key.acknowledged = value;
                self.acknowledged += 1;
                None
            }
            (Outcome::Answered(Answer::Number(count)), Some(value), Kind::Counter) => {
                self.acknowledged += 1;
                key.acknowledged = u64::try_from(*count).unwrap_or(0);
                let name = &key.name;
                (key.acknowledged != value)
                    .then(|| format!("INCR {name} counted {count}, not {value}"))
            }
            (Outcome::Answered(other), Some(_), _) => {
                Some(format!("a write of {} was answered {other:?}", key.name))
            }
        };
        if let Some(wrong) = wrong {
            self.tell(wrong);
        }
    }

    fn tell(&mut self, wrong: String) {
        self.wrongs += 1;
        if self.wrong.len() < KEPT {
            self.wrong.push_back(wrong);
        }
    }

    /// Writes without an answer.
    pub fn doubts(&self) -> usize {
        self.left.len()
    }

    /// All keys that were ever written to, for the account at the end.
    pub fn all(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().chain(&self.left)
    }
}

impl Key {
    /// What is wrong with an answer to `GET`.
    pub fn judge(&self, answer: &Answer) -> Option<String> {
        let name = &self.name;
        let Some(value) = number(answer) else {
            return Some(format!("{name} was answered {answer:?}"));
        };
        if value == self.acknowledged || self.doubt == Some(value) {
            return None;
        }
        let must = match self.doubt {
            Some(doubt) => format!("{} or {doubt}", self.acknowledged),
            None => self.acknowledged.to_string(),
        };
        Some(match (value, self.kind) {
            (0, _) => format!("{name} is lost, it had {must}"),
            (_, Kind::Text) => format!("{name} has value {value}, not {must}"),
            (_, Kind::Counter) => format!("{name} counts {value}, not {must}"),
        })
    }
}

fn text(value: u64, bytes: usize) -> Vec<u8> {
    let mut text = format!("{value} ").into_bytes();
    text.resize(bytes.max(text.len()), b'.');
    text
}

/// The number that an answer to `GET` stands for.
fn number(answer: &Answer) -> Option<u64> {
    match answer {
        Answer::Nil => Some(0),
        Answer::Text(text) => {
            let text = std::str::from_utf8(text).ok()?;
            let digits = text.split(' ').next()?;
            digits.parse().ok().filter(|number| *number > 0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of one writer that does as it is told, but for what a test has it do.
    #[derive(Default)]
    struct Store(std::collections::BTreeMap<Vec<u8>, Vec<u8>>);

    impl Store {
        fn run(&mut self, words: &[Vec<u8>]) -> Answer {
            let key = words[1].clone();
            let had = self.0.get(&key).cloned();
            match words[0].as_slice() {
                b"GET" => had.map_or(Answer::Nil, Answer::Text),
                b"SET" => {
                    self.0.insert(key, words[2].clone());
                    Answer::Done
                }
                _ => {
                    let count =
                        had.map_or(0, |had| String::from_utf8(had).unwrap().parse().unwrap());
                    self.0.insert(key, format!("{}", count + 1).into_bytes());
                    Answer::Number(count + 1)
                }
            }
        }
    }

    fn drive(ledger: &mut Ledger, store: &mut Store, requests: usize) {
        for _ in 0..requests {
            let request = ledger.next_request();
            let answer = store.run(&ledger.words(request));
            ledger.note(request, &Outcome::Answered(answer));
        }
    }

    fn audit(ledger: &Ledger, store: &mut Store) -> Vec<String> {
        let read = |key: &Key| {
            let words = [b"GET".to_vec(), key.name.clone().into_bytes()];
            key.judge(&store.run(&words))
        };
        ledger.all().filter_map(read).collect()
    }

    fn driven() -> (Ledger, Store) {
        let (mut ledger, mut store) = (Ledger::new("w", 10, 20), Store::default());
        drive(&mut ledger, &mut store, 400);
        assert_eq!(ledger.wrong, VecDeque::<String>::new());
        assert_eq!(ledger.acknowledged, 200);
        assert_eq!(audit(&ledger, &mut store), Vec::<String>::new());
        assert_eq!(store.0.len(), 10);
        (ledger, store)
    }

    #[test]
    fn a_lost_key_and_an_older_value_are_found() {
        let (ledger, mut store) = driven();
        let all: Vec<_> = store.0.keys().cloned().collect();
        for key in all {
            let had = store.0.remove(&key);
            let found = audit(&ledger, &mut store);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("is lost"), "{found:?}");
            for other in ["1", "99999"] {
                store.0.insert(key.clone(), other.into());
                assert_eq!(audit(&ledger, &mut store).len(), 1, "{other}");
            }
            store.0.insert(key, had.unwrap());
        }
    }

    #[test]
    fn they_are_found_while_the_writer_goes_on() {
        let (mut ledger, mut store) = driven();
        store.0.clear();
        drive(&mut ledger, &mut store, 100);
        // All counters, and the texts that were read before they were written again.
        assert!(ledger.wrongs > 5, "{:?}", ledger.wrong);
        // Each is told of once: what is there now is what must be there.
        let before = ledger.wrongs;
        drive(&mut ledger, &mut store, 100);
        assert_eq!(ledger.wrongs, before);
    }

    #[test]
    fn a_count_that_was_added_twice_is_found() {
        let (mut ledger, mut store) = driven();
        loop {
            let request = ledger.next_request();
            let words = ledger.words(request);
            let answer = store.run(&words);
            let answer = if words[0] == b"INCR" {
                store.run(&words)
            } else {
                answer
            };
            ledger.note(request, &Outcome::Answered(answer));
            if words[0] == b"INCR" {
                break;
            }
        }
        assert_eq!(ledger.wrongs, 1);
    }

    #[test]
    fn a_write_in_doubt_may_be_there_or_not_and_nothing_else() {
        for happens in [false, true] {
            let (mut ledger, mut store) = driven();
            for _ in 0..40 {
                let request = ledger.next_request();
                let words = ledger.words(request);
                let answer = match happens || words[0] == b"GET" {
                    true => store.run(&words),
                    false => Answer::Nil,
                };
                let outcome = match words[0] == b"GET" {
                    true => Outcome::Answered(answer),
                    false => Outcome::Doubt,
                };
                ledger.note(request, &outcome);
            }
            assert_eq!(ledger.doubts(), 20);
            assert_eq!(audit(&ledger, &mut store), Vec::<String>::new());
            assert_eq!(ledger.wrongs, 0, "{:?}", ledger.wrong);
            // An acknowledged write that a doubtful one followed is not forgotten.
            store.0.clear();
            assert!(audit(&ledger, &mut store).len() >= 10);
        }
    }

    #[test]
    fn what_was_refused_changes_nothing() {
        let (mut ledger, mut store) = driven();
        for _ in 0..40 {
            let request = ledger.next_request();
            ledger.note(request, &Outcome::NotDone);
        }
        assert_eq!(audit(&ledger, &mut store), Vec::<String>::new());
        let request = ledger.next_request();
        ledger.note(request, &Outcome::Answered(Answer::Other("ERR".into())));
        assert_eq!(ledger.wrongs, 1);
    }
}
