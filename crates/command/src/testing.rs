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

    /// Runs a request of space-separated words (`""` is the empty word) and
    /// compares its reply.
    #[track_caller]
    pub fn check(&mut self, request: &str, reply: &str) {
        let words: Vec<&[u8]> = request
            .split(' ')
            .map(|w| {
                if w == "\"\"" {
                    b"".as_slice()
                } else {
                    w.as_bytes()
                }
            })
            .collect();
        let got = self.run(&words);
        assert_eq!(String::from_utf8_lossy(&got), reply, "{request}");
    }

    /// Runs a request and returns its reply.
    #[track_caller]
    pub fn run(&mut self, words: &[&[u8]]) -> Vec<u8> {
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
        out.to_vec()
    }
}
