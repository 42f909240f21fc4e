//! A rig for command tests: one shard, virtual time, requests as a person
//! types them, replies compared byte by byte.

use crate::{DataCommands, Table, data_commands};
use rufous_base::rng::Rng;
use rufous_base::{Args, Now, Output};
use rufous_kernel::shard::Shard;
use rufous_kernel::{Context, Program};

pub struct Rig {
    pub shard: Shard,
    pub now: Now,
    pub db: usize,
    rng: Rng,
    table: Table,
    resp3: bool,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

impl Rig {
    pub fn new() -> Self {
        Self {
            shard: Shard::new(1),
            now: Now {
                mono_us: 0,
                unix_us: 1_700_000_000_000_000,
            },
            db: 0,
            rng: Rng::new(1),
            table: Table::new(data_commands().map(|c| &c.spec).collect()),
            resp3: false,
        }
    }

    pub fn resp3(&mut self) -> &mut Self {
        self.resp3 = true;
        self
    }

    pub fn advance_ms(&mut self, ms: u64) -> &mut Self {
        self.now.mono_us += ms * 1000;
        self.now.unix_us += ms * 1000;
        self
    }

    /// Runs a request (see [`words`]) and compares its reply (see [`encoded`]).
    #[track_caller]
    pub fn check(&mut self, request: &str, reply: &str) {
        let words: Vec<&[u8]> = words(request).map(|(word, _)| word.as_bytes()).collect();
        let got = self.run(&words);
        assert_eq!(String::from_utf8_lossy(&got), encoded(reply), "{request}");
    }

    /// Checks the rows `request => reply` of a transcript. In front of a row may stand `resp3:`,
    /// `after N ms:`, `database N:`, each of which holds from there on, and `for {n} in A..B:`, which
    /// repeats the row with each number in place of `{n}`.
    #[track_caller]
    pub fn replay(&mut self, transcript: &str) {
        let rows = transcript.lines().map(str::trim);
        for row in rows.filter(|row| !row.is_empty() && !row.starts_with("//")) {
            self.row(row);
        }
    }

    #[track_caller]
    fn row(&mut self, row: &str) {
        let (before, rest) = row.split_once(": ").unwrap_or((row, ""));
        match before.split(' ').collect::<Vec<_>>()[..] {
            ["resp3"] => self.resp3 = true,
            ["after", ms, "ms"] => {
                self.advance_ms(number(ms));
            }
            ["database", index] => self.db = number(index) as usize,
            ["for", name, "in", range] => {
                let (first, end) = range.split_once("..").expect("a range");
                for n in number(first)..number(end) {
                    self.row(&rest.replace(name, &n.to_string()));
                }
                return;
            }
            _ => {
                let (request, reply) = row.split_once(" => ").expect("request => reply");
                return self.check(request, reply);
            }
        }
        self.row(rest);
    }

    /// Runs a request and returns its reply.
    #[track_caller]
    pub fn run(&mut self, words: &[&[u8]]) -> Vec<u8> {
        self.answer(words).to_vec()
    }

    /// The same, before what is made while it is sent is made.
    #[track_caller]
    pub fn answer(&mut self, words: &[&[u8]]) -> Output {
        let mut id = self.table.find(words[0]).expect("a known command");
        if self.table.spec(id).flags.has(crate::Flags::CONTAINER) {
            id = self
                .table
                .find_sub(id, words[1])
                .expect("a known subcommand");
        }
        let spec = self.table.spec(id);
        assert!(spec.accepts(words.len()), "arity of {}", spec.name);
        let (mut buf, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push((buf.len() as u32, word.len() as u32));
            buf.extend_from_slice(word);
        }
        let mut big = Vec::new();
        let args = Args::new(&buf, &spans, &mut big);
        let mut keys = Vec::new();
        spec.keys.find(&args, self.db as u8, &mut keys);
        let hash = keys
            .first()
            .map_or(0, |&(_, i)| self.shard.key(args.get(i as usize)).hash);
        let mut out = Output::default();
        let mut context = Context {
            shard: &mut self.shard,
            db: self.db,
            now: self.now,
            resp3: self.resp3,
            quiet: false,
            out: &mut out,
            rng: &mut self.rng,
            hash,
            wait: None,
        };
        DataCommands::run(id, &mut context, args);
        self.shard.check();
        out
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Words between spaces, and whether each stood in quotes, where it may be empty or have spaces.
fn words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split('\'').enumerate().flat_map(|(index, part)| {
        let quoted = (index % 2 == 1).then_some((part, true));
        let plain = (index % 2 == 0).then(|| part.split_whitespace().map(|word| (word, false)));
        quoted.into_iter().chain(plain.into_iter().flatten())
    })
}

/// A reply on the wire: `+OK` and `-ERR ...` are one line; of all others each word is a line, and words
/// in quotes are bulk strings, as in `*2 'a' :1`. One that has line ends is taken as it stands.
fn encoded(reply: &str) -> String {
    if reply.contains('\r') {
        return reply.to_owned();
    }
    if reply.starts_with(['+', '-']) {
        return format!("{reply}\r\n");
    }
    let line = |(word, is_quoted): (&str, bool)| {
        if is_quoted {
            format!("${}\r\n{word}\r\n", word.len())
        } else {
            format!("{word}\r\n")
        }
    };
    words(reply).map(line).collect()
}

/// Tests that are transcripts: a name, and rows of [`Rig::replay`].
macro_rules! transcripts {
    ($($(#[$doc:meta])* $name:ident: $transcript:literal)+) => {
        mod transcripts {
            $($(#[$doc])*
            #[test]
            fn $name() {
                $crate::testing::Rig::new().replay($transcript);
            })+
        }
    };
}

pub(crate) use transcripts;
