//! Commands as byte templates: encoded once, copied and patched with a key per operation.

use std::str::FromStr;

use anyhow::{Result, bail};

use super::keys::{self, DIGITS, Keys};
use super::reply::Check;
use rufous_base::rng::Rng;

/// What counters are preloaded with: beyond the small integers that Redis shares between keys.
const COUNTER_START: &[u8] = b"1000000";

/// The commands the generator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Ping,
    Get,
    /// A GET whose key may be gone.
    GetOrNil,
    Set,
    /// SET with an absolute expiry in Unix milliseconds.
    SetUntil(u64),
    /// SET to an integer, for INCR to start from.
    SetCounter,
    Incr,
    Mget(u32),
    Mset(u32),
}

impl FromStr for Command {
    type Err = anyhow::Error;

    /// `get`, `set`, `incr`, `ping`, `mget16`, `mset4`.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.to_ascii_lowercase();
        Ok(match text.as_str() {
            "ping" => Self::Ping,
            "get" => Self::Get,
            "set" => Self::Set,
            "incr" => Self::Incr,
            _ => match (text.strip_prefix("mget"), text.strip_prefix("mset")) {
                (Some(n), _) => Self::Mget(n.parse()?),
                (_, Some(n)) => Self::Mset(n.parse()?),
                _ => bail!("unknown command {text}: ping, get, set, incr, mget<n> or mset<n>"),
            },
        })
    }
}

/// The sizes of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub key_bytes: usize,
    pub value_bytes: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            key_bytes: 8,
            value_bytes: 64,
        }
    }
}

/// Where a key's digits go, and the beginning of its value if the command carries one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    digits_at: usize,
    value_at: Option<usize>,
}

/// One command, encoded, with the places of its keys and the replies it must get.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    command: Command,
    value_bytes: usize,
}

impl Template {
    pub fn new(command: Command, shape: Shape) -> Self {
        let mut this = Self {
            bytes: Vec::new(),
            slots: Vec::new(),
            command,
            value_bytes: shape.value_bytes,
        };
        match command {
            Command::Ping => this.words(1, b"PING"),
            Command::Get | Command::GetOrNil => this.words(2, b"GET"),
            Command::Set | Command::SetCounter => this.words(3, b"SET"),
            Command::SetUntil(_) => this.words(5, b"SET"),
            Command::Incr => this.words(2, b"INCR"),
            Command::Mget(n) => this.words(1 + n as usize, b"MGET"),
            Command::Mset(n) => this.words(1 + 2 * n as usize, b"MSET"),
        }
        match command {
            Command::Ping => {}
            Command::Get | Command::GetOrNil | Command::Incr => this.key(shape),
            Command::Set => this.pair(shape),
            Command::SetCounter => {
                this.key(shape);
                this.word(COUNTER_START);
            }
            Command::SetUntil(unix_ms) => {
                this.pair(shape);
                this.word(b"PXAT");
                this.word(unix_ms.to_string().as_bytes());
            }
            Command::Mget(n) => (0..n).for_each(|_| this.key(shape)),
            Command::Mset(n) => (0..n).for_each(|_| this.pair(shape)),
        }
        this
    }

    fn words(&mut self, count: usize, name: &[u8]) {
        self.bytes
            .extend_from_slice(format!("*{count}\r\n").as_bytes());
        self.word(name);
    }

    fn word(&mut self, word: &[u8]) {
        self.bytes
            .extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn key(&mut self, shape: Shape) {
        let mut key = keys::prefix(shape.key_bytes);
        key.extend_from_slice(&keys::digits(0));
        self.word(&key);
        let digits_at = self.bytes.len() - 2 - DIGITS;
        self.slots.push(Slot {
            digits_at,
            value_at: None,
        });
    }

    fn pair(&mut self, shape: Shape) {
        self.key(shape);
        self.word(&vec![b'v'; shape.value_bytes]);
        let value_at = self.bytes.len() - 2 - shape.value_bytes;
        if let Some(slot) = self.slots.last_mut() {
            slot.value_at = Some(value_at);
        }
    }

    /// Appends the command for freshly drawn keys, and each check that its reply must pass; the last
    /// of them completes the operation.
    pub fn emit(
        &self,
        out: &mut Vec<u8>,
        keys: &Keys,
        rng: &mut Rng,
        mut expect: impl FnMut(Check, bool),
    ) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        if let Command::Mget(n) = self.command {
            expect(Check::Array(n), n == 0);
        }
        for (i, slot) in self.slots.iter().enumerate() {
            let first = keys::digits(keys.next(rng));
            self.patch(&mut out[start..], *slot, &first);
            if let Some(check) = self.value_check(first) {
                expect(check, i + 1 == self.slots.len());
            }
        }
        match self.command {
            Command::Get | Command::GetOrNil | Command::Mget(_) => {}
            Command::Incr => expect(Check::Integer, true),
            _ => expect(Check::Simple, true),
        }
    }

    /// Appends the command for consecutive key numbers from `first` on, for commands with a simple
    /// reply.
    pub fn emit_from(&self, out: &mut Vec<u8>, first: u64) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for (i, slot) in self.slots.iter().enumerate() {
            self.patch(&mut out[start..], *slot, &keys::digits(first + i as u64));
        }
    }

    fn patch(&self, bytes: &mut [u8], slot: Slot, digits: &[u8; DIGITS]) {
        bytes[slot.digits_at..slot.digits_at + DIGITS].copy_from_slice(digits);
        if let Some(at) = slot.value_at {
            let known = DIGITS.min(self.value_bytes);
            bytes[at..at + known].copy_from_slice(&digits[..known]);
        }
    }

    fn value_check(&self, first: [u8; DIGITS]) -> Option<Check> {
        let len = self.value_bytes as u32;
        match self.command {
            Command::Get | Command::Mget(_) => Some(Check::Value { first, len }),
            Command::GetOrNil => Some(Check::ValueOrNil { first, len }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(command: Command, shape: Shape, key: u32) -> (String, Vec<(Check, bool)>) {
        let (mut out, mut checks) = (Vec::new(), Vec::new());
        let keys = Keys::Listed(vec![key]);
        Template::new(command, shape).emit(&mut out, &keys, &mut Rng::new(1), |check, last| {
            checks.push((check, last));
        });
        (String::from_utf8(out).unwrap(), checks)
    }

    #[test]
    fn commands_are_encoded_with_their_keys() {
        let shape = Shape {
            key_bytes: 10,
            value_bytes: 12,
        };
        let (text, checks) = emitted(Command::Set, shape, 42);
        assert_eq!(
            text,
            "*3\r\n$3\r\nSET\r\n$10\r\nkk00000042\r\n$12\r\n00000042vvvv\r\n"
        );
        assert_eq!(checks, [(Check::Simple, true)]);
        let (text, checks) = emitted(Command::Get, shape, 42);
        assert_eq!(text, "*2\r\n$3\r\nGET\r\n$10\r\nkk00000042\r\n");
        let value = Check::Value {
            first: *b"00000042",
            len: 12,
        };
        assert_eq!(checks, [(value, true)]);
        let (text, checks) = emitted(Command::Mget(2), Shape::default(), 7);
        assert_eq!(
            text,
            "*3\r\n$4\r\nMGET\r\n$8\r\n00000007\r\n$8\r\n00000007\r\n"
        );
        let value = Check::Value {
            first: *b"00000007",
            len: 64,
        };
        assert_eq!(
            checks,
            [(Check::Array(2), false), (value, false), (value, true)]
        );
        let (text, _) = emitted(
            Command::SetUntil(99),
            Shape {
                key_bytes: 8,
                value_bytes: 4,
            },
            1,
        );
        assert_eq!(
            text,
            "*5\r\n$3\r\nSET\r\n$8\r\n00000001\r\n$4\r\n0000\r\n$4\r\nPXAT\r\n$2\r\n99\r\n"
        );
    }

    #[test]
    fn consecutive_keys() {
        let mut out = Vec::new();
        let shape = Shape {
            key_bytes: 8,
            value_bytes: 8,
        };
        Template::new(Command::Mset(2), shape).emit_from(&mut out, 9);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("*5\r\n$4\r\nMSET\r\n$8\r\n00000009\r\n$8\r\n00000009\r\n"));
        assert!(text.ends_with("$8\r\n00000010\r\n$8\r\n00000010\r\n"));
    }

    #[test]
    fn names_parse() {
        assert_eq!("GET".parse::<Command>().unwrap(), Command::Get);
        assert_eq!("mget16".parse::<Command>().unwrap(), Command::Mget(16));
        assert_eq!("mset4".parse::<Command>().unwrap(), Command::Mset(4));
        assert!("mgetx".parse::<Command>().is_err());
        assert!("lpush".parse::<Command>().is_err());
    }
}
