//! What clients of lattice keys asked for and were answered, and when which node had to
//! answer them. Both as lines of a history.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};
use rufous_sim::oracle::lattice::{Deed, Told};

use super::keys::Key;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Of a counter or a set.
    Deed(Deed),
    /// Writes a text: a number that no other text is.
    Put(u64),
    Get,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A sum, a count of elements, or a text.
    Number(u64),
    /// All members of a set, in their order.
    All(Vec<u64>),
    /// A text is written.
    Done,
    /// No text is there.
    Nothing,
    /// It was said that it was not done.
    NotDone,
    /// Nobody can say.
    Unknown,
}

impl Came {
    pub fn is_answer(&self) -> bool {
        !matches!(self, Came::NotDone | Came::Unknown)
    }

    /// For the judge of counters and sets.
    pub fn told(&self) -> Option<Told> {
        match self {
            Came::Number(number) => Some(Told::Number(*number)),
            Came::All(all) => Some(Told::All(all.iter().copied().collect::<BTreeSet<_>>())),
            _ => None,
        }
    }
}

/// One operation. Times are microseconds since the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub key: Key,
    /// Where it was asked for.
    pub node: usize,
    /// Which connection: each asks for one thing at a time, and is at one node.
    pub session: u64,
    pub asked_us: u64,
    /// When that came, or when it was given up.
    pub ended_us: u64,
    pub what: What,
    pub came: Came,
    /// It was asked for in the end, when everything was quiet.
    pub is_last: bool,
}

/// How a node was while a fault lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Others and it reached each other, some of them at least.
    Met,
    /// No other node reached it, or it reached none.
    Alone,
}

/// While a fault lasted: clients reached this node, and it must answer them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub node: usize,
    pub how: How,
    pub from_us: u64,
    pub until_us: u64,
}

/// The first words of lines.
pub const ACT: &str = "lattice";
pub const LAST: &str = "in-the-end";
pub const WINDOW: &str = "serves";

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            node,
            session,
            asked_us,
            ended_us,
            ..
        } = self;
        let first = if self.is_last { LAST } else { ACT };
        write!(f, "{first} {key} {node} {session} {asked_us} {ended_us} ")?;
        match &self.what {
            What::Deed(Deed::Add(element)) => write!(f, "add={element} "),
            What::Deed(Deed::Remove(element)) => write!(f, "remove={element} "),
            What::Deed(Deed::Count(by)) => write!(f, "count={by} "),
            What::Deed(Deed::Members) => write!(f, "members "),
            What::Deed(Deed::Sum) => write!(f, "sum "),
            What::Put(text) => write!(f, "put={text} "),
            What::Get => write!(f, "get "),
        }?;
        match &self.came {
            Came::Number(number) => write!(f, "number={number}"),
            Came::All(all) => {
                let all: Vec<String> = all.iter().map(u64::to_string).collect();
                write!(f, "all={}", all.join(","))
            }
            Came::Done => f.write_str("done"),
            Came::Nothing => f.write_str("nothing"),
            Came::NotDone => f.write_str("not-done"),
            Came::Unknown => f.write_str("unknown"),
        }
    }
}

impl FromStr for Act {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        ensure!(words.len() == 8, "not an operation: {line}");
        let number = |at: usize| words[at].parse::<u64>().with_context(|| line.to_owned());
        Ok(Self {
            is_last: match words[0] {
                ACT => false,
                LAST => true,
                _ => bail!("not an operation: {line}"),
            },
            key: words[1].parse()?,
            node: usize::try_from(number(2)?)?,
            session: number(3)?,
            asked_us: number(4)?,
            ended_us: number(5)?,
            what: what(words[6]).with_context(|| line.to_owned())?,
            came: came(words[7]).with_context(|| line.to_owned())?,
        })
    }
}

fn what(word: &str) -> Result<What> {
    let (name, number) = match word.split_once('=') {
        Some((name, number)) => (name, Some(number.parse()?)),
        None => (word, None),
    };
    Ok(match (name, number) {
        ("add", Some(element)) => What::Deed(Deed::Add(element)),
        ("remove", Some(element)) => What::Deed(Deed::Remove(element)),
        ("count", Some(by)) => What::Deed(Deed::Count(by)),
        ("members", None) => What::Deed(Deed::Members),
        ("sum", None) => What::Deed(Deed::Sum),
        ("put", Some(text)) => What::Put(text),
        ("get", None) => What::Get,
        _ => bail!("{word} is nothing that is asked for"),
    })
}

fn came(word: &str) -> Result<Came> {
    Ok(match word.split_once('=') {
        Some(("number", number)) => Came::Number(number.parse()?),
        Some(("all", "")) => Came::All(Vec::new()),
        Some(("all", all)) => {
            let all = all.split(',').map(str::parse).collect::<Result<_, _>>();
            Came::All(all?)
        }
        None if word == "done" => Came::Done,
        None if word == "nothing" => Came::Nothing,
        None if word == "not-done" => Came::NotDone,
        None if word == "unknown" => Came::Unknown,
        _ => bail!("{word} is no answer"),
    })
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            node,
            from_us,
            until_us,
            ..
        } = self;
        let how = match self.how {
            How::Met => "met",
            How::Alone => "alone",
        };
        write!(f, "{WINDOW} {node} {how} {from_us} {until_us}")
    }
}

impl FromStr for Window {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        ensure!(words.len() == 5 && words[0] == WINDOW, "no window: {line}");
        Ok(Self {
            node: words[1].parse()?,
            how: match words[2] {
                "met" => How::Met,
                "alone" => How::Alone,
                other => bail!("{other} in {line}"),
            },
            from_us: words[3].parse()?,
            until_us: words[4].parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for line in [
            "lattice l:set:3 1 7 10 20 add=5 number=1",
            "lattice l:set:3 1 7 10 20 remove=5 unknown",
            "lattice l:set:3 2 8 10 20 members all=1,2,30",
            "in-the-end l:set:3 2 8 10 20 members all=",
            "lattice l:count:0 2 8 10 20 count=9 not-done",
            "in-the-end l:count:0 2 8 10 20 sum number=9",
            "lattice l:text:0 2 8 10 20 put=4 done",
            "in-the-end l:text:0 2 8 10 20 get nothing",
        ] {
            assert_eq!(line.parse::<Act>().unwrap().to_string(), line);
        }
        for how in ["alone", "met"] {
            let line = format!("serves 1 {how} 10 20");
            assert_eq!(line.parse::<Window>().unwrap().to_string(), line);
        }
        for wrong in [
            "lattice l:set:3 1 7 10 20 add=5",
            "lattice l:set:3 1 7 10 20 add=x number=1",
            "lattice l:set:3 1 7 10 20 take=5 number=1",
            "lattice l:set:3 1 7 10 20 add number=1",
            "lattice l:set:3 1 7 10 20 members all=1,x",
            "other l:set:3 1 7 10 20 members all=1",
        ] {
            assert!(wrong.parse::<Act>().is_err(), "{wrong}");
        }
        assert!("serves 1 perhaps 10 20".parse::<Window>().is_err());
    }
}
