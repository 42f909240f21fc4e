//! Two clients on the keys of one level, or on keys of the keyspace `eventual` for comparison.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, ensure};
use rufous_bench::client::Client;

use super::begun;
use super::isolation::{self, Last};
use super::level::{Kind, Level};
use super::pool::Door;
use super::quiet::Quiet;
use super::record::{Deed, Record};
use super::rules::{self, Rules};
use super::sessions::{self, TEXTS};
use super::texts::{self, Ends};

/// The level that promises the least.
pub const EVENTUAL: &str = "eventual";

/// How clients use their level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// With tokens and `BEGIN`.
    Right,
    /// Without them: what they see breaks the level.
    Careless,
    /// Without them, in the keyspace `eventual`.
    Comparison,
}

/// See the module's description.
pub struct Scene {
    pub level: &'static Level,
    clients: Clients,
    prefix: String,
    pub record: Record,
    /// Of its texts.
    first: Vec<u64>,
}

/// What is wrong with a scene's history, by kind, with an example of each.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub wrong: BTreeMap<String, (u64, String)>,
}

impl Verdict {
    pub fn count(&self) -> u64 {
        self.wrong.values().map(|(count, _)| count).sum()
    }

    pub fn add(&mut self, kind: &str, example: String) {
        let of_kind = self.wrong.entry(kind.to_owned()).or_insert((0, example));
        of_kind.0 += 1;
    }
}

/// What all replicas show of a scene's keys in the end.
#[derive(Clone, Debug, Default)]
pub struct End {
    pub texts: Vec<Option<u64>>,
    pub sets: rules::Last,
    pub values: Last,
    /// Keys that are not the same everywhere.
    pub unlike: Vec<String>,
}

impl Scene {
    pub fn new(level: &'static Level, clients: Clients) -> Self {
        let prefix = if clients == Clients::Comparison {
            format!("{EVENTUAL}:as-{}:", level.name)
        } else {
            format!("{}:", level.name)
        };
        Self {
            level,
            clients,
            prefix,
            record: Record::default(),
            first: Vec::new(),
        }
    }

    pub fn is_comparison(&self) -> bool {
        self.clients == Clients::Comparison
    }

    /// Its name in files.
    pub fn name(&self) -> String {
        self.prefix.trim_end_matches(':').replace(':', "-")
    }

    /// Without them `eventual` shows what it is.
    pub fn has_tokens(&self) -> bool {
        self.clients == Clients::Right && self.level.name != EVENTUAL
    }

    pub fn begins(&self) -> bool {
        self.clients == Clients::Right
    }

    pub fn text(&self, key: u64) -> String {
        format!("{}x{key}", self.prefix)
    }

    pub fn set(&self, key: u64) -> String {
        format!("{}s{key}", self.prefix)
    }

    pub fn key(&self, key: u64) -> String {
        format!("{}k{key}", self.prefix)
    }

    /// Writes the initial values.
    pub fn open(&mut self, door: &Door) -> Result<()> {
        if matches!(self.level.kind, Kind::Transactions(_)) {
            return Ok(());
        }
        let mut client = Client::connect(door.address)?;
        for key in 0..TEXTS {
            let number = self.record.new_number();
            let reply = client.call(&["SET", &self.text(key), &number.to_string()])?;
            let text = reply.text()?;
            ensure!(text == "OK", "SET {}: {text}", self.text(key));
            self.first.push(number);
        }
        Ok(())
    }

    /// Reads all its keys at all replicas.
    pub fn look(&self, quiet: &mut Quiet) -> Result<End> {
        let events = self.record.events();
        let is_of_set = |deed: &Deed| matches!(deed, Deed::Add(_) | Deed::Members(_));
        let of_sets = events.iter().filter(|event| is_of_set(&event.deed));
        let sets: BTreeSet<u64> = of_sets.map(|event| event.key).collect();
        let transactions = self.record.transactions();
        let steps = transactions.iter().flat_map(|one| &one.steps);
        let values: BTreeSet<u64> = steps.map(|step| step.key).collect();
        let texts = 0..self.first.len() as u64;
        let ask = |command: &str, key: String| [command.to_owned(), key];
        let mut requests: Vec<[String; 2]> = Vec::new();
        requests.extend(texts.clone().map(|key| ask("GET", self.text(key))));
        requests.extend(sets.iter().map(|key| ask("SMEMBERS", self.set(*key))));
        requests.extend(values.iter().map(|key| ask("GET", self.key(*key))));
        let shown = quiet.look(&requests)?;
        let mut replies = shown.replies.iter();
        let wrong = |odd: String| anyhow!("in the end a key of {} is {odd}", self.prefix);
        let mut end = End {
            unlike: shown.unlike,
            ..End::default()
        };
        for reply in replies.by_ref().take(self.first.len()) {
            end.texts.push(sessions::number(reply).map_err(wrong)?);
        }
        for (key, reply) in sets.into_iter().zip(replies.by_ref()) {
            end.sets
                .insert(key, sessions::members(reply).map_err(wrong)?);
        }
        for (key, reply) in values.into_iter().zip(replies) {
            end.values.insert(key, begun::value(reply).map_err(wrong)?);
        }
        Ok(end)
    }

    /// What its history has that its level, or another one, does not allow.
    pub fn judge(&self, level: &Level, end: &End) -> Verdict {
        let mut verdict = Verdict::default();
        for key in &end.unlike {
            verdict.add("replicas differ in the end", key.clone());
        }
        match level.kind {
            Kind::Sessions(rules) => self.judge_sessions((level, rules), end, &mut verdict),
            Kind::Transactions(rules) => {
                for one in isolation::judge(rules, &self.record.transactions(), &end.values) {
                    verdict.add(&one.wrong.to_string(), one.example);
                }
            }
        }
        verdict
    }

    fn judge_sessions(&self, (level, rules): (&Level, Rules), end: &End, verdict: &mut Verdict) {
        let events = self.record.events();
        for one in rules::judge(rules, &events, &end.sets) {
            verdict.add(&one.wrong.to_string(), one.example);
        }
        let ends = Ends {
            first: self.first.clone(),
            last: end.texts.clone(),
        };
        for wrong in texts::judge(level, &events, &ends) {
            verdict.add("texts without an order", wrong);
        }
    }
}

#[cfg(test)]
mod tests;
