//! What clients asked for and were answered, and that as a file: a line for each operation.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::lattice::acts::{ACT, Act, LAST, WINDOW, Window};

/// What was asked for. No value is written twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Read,
    Write(u64),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The write is acknowledged.
    Done,
    /// It was read; nothing was there, or that.
    Value(Option<u64>),
    /// It was said that it was not done.
    NotDone,
    /// Nobody can say.
    Unknown,
}

/// One operation. Times are microseconds since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub register: u64,
    /// Who asked, one thing at a time.
    pub client: u64,
    pub order: u64,
    pub asked_us: u64,
    /// When that came, or when it was given up.
    pub ended_us: u64,
    pub what: What,
    pub came: Came,
}

const HEAD: &str = "# register client order asked_us ended_us what came";
const LATTICE_HEAD: &str = "# lattice key node session asked_us ended_us what came";
const WINDOW_HEAD: &str = "# serves node how from_us until_us";

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            register,
            client,
            order,
            asked_us,
            ended_us,
            ..
        } = self;
        write!(f, "{register} {client} {order} {asked_us} {ended_us} ")?;
        match self.what {
            What::Read => f.write_str("read "),
            What::Write(value) => write!(f, "write={value} "),
        }?;
        match self.came {
            Came::Done => f.write_str("done"),
            Came::Value(None) => f.write_str("nothing"),
            Came::Value(Some(value)) => write!(f, "value={value}"),
            Came::NotDone => f.write_str("not-done"),
            Came::Unknown => f.write_str("unknown"),
        }
    }
}

impl FromStr for Operation {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        ensure!(words.len() == 7, "not an operation: {line}");
        let number = |at: usize| words[at].parse::<u64>().with_context(|| line.to_owned());
        let value = |word: &str| {
            let value = word
                .split_once('=')
                .and_then(|(_, value)| value.parse().ok());
            value.with_context(|| line.to_owned())
        };
        Ok(Self {
            register: number(0)?,
            client: number(1)?,
            order: number(2)?,
            asked_us: number(3)?,
            ended_us: number(4)?,
            what: match words[5] {
                "read" => What::Read,
                other => What::Write(value(other)?),
            },
            came: match words[6] {
                "done" => Came::Done,
                "nothing" => Came::Value(None),
                "not-done" => Came::NotDone,
                "unknown" => Came::Unknown,
                other => Came::Value(Some(value(other)?)),
            },
        })
    }
}

/// All that is judged of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Of registers.
    pub operations: Vec<Operation>,
    /// Of lattice keys.
    pub acts: Vec<Act>,
    pub windows: Vec<Window>,
}

pub fn write(path: &Path, history: &History) -> Result<()> {
    let name = || path.display().to_string();
    let mut file = BufWriter::new(File::create(path).with_context(name)?);
    let History {
        operations,
        acts,
        windows,
    } = history;
    let mut all = || -> std::io::Result<()> {
        writeln!(file, "{HEAD}")?;
        operations
            .iter()
            .try_for_each(|of| writeln!(file, "{of}"))?;
        writeln!(file, "{LATTICE_HEAD}")?;
        acts.iter().try_for_each(|of| writeln!(file, "{of}"))?;
        writeln!(file, "{WINDOW_HEAD}")?;
        windows.iter().try_for_each(|of| writeln!(file, "{of}"))?;
        file.flush()
    };
    all().with_context(name)
}

pub fn read(path: &Path) -> Result<History> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut history = History::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split(' ').next() {
            Some(ACT | LAST) => history.acts.push(line.parse()?),
            Some(WINDOW) => history.windows.push(line.parse()?),
            _ => history.operations.push(line.parse()?),
        }
    }
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let operation = |what, came| Operation {
            register: 3,
            client: 4,
            order: 5,
            asked_us: 6,
            ended_us: u64::MAX,
            what,
            came,
        };
        let operations = vec![
            operation(What::Write(9), Came::Done),
            operation(What::Write(10), Came::Unknown),
            operation(What::Write(11), Came::NotDone),
            operation(What::Read, Came::Value(None)),
            operation(What::Read, Came::Value(Some(9))),
        ];
        let history = History {
            operations,
            acts: vec!["lattice l:set:3 1 7 10 20 add=5 number=1".parse().unwrap()],
            windows: vec!["serves 1 alone 10 20".parse().unwrap()],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        write(&path, &history).unwrap();
        assert_eq!(read(&path).unwrap(), history);
        for wrong in [
            "1 2 3",
            "1 2 3 4 5 read word",
            "1 2 3 4 5 write done",
            "x 2 3 4 5 read done",
        ] {
            assert!(wrong.parse::<Operation>().is_err(), "{wrong}");
        }
    }
}
