//! What is sent: commands by family, from `grammar.txt`, with words drawn at random.
//!
//! A line is a mode and a pattern. The mode says how replies are compared (`compare::Mode`), the
//! pattern how words are made:
//!
//! ```text
//! <x>       a word of kind x, see `Generator::word`
//! [ ... ]   present or not
//! { ... }   once to four times
//! ( a | b ) one of these
//! ```

use super::compare::Mode;
use super::wire::Words;
use anyhow::{Context, Result, bail, ensure};

const GRAMMAR: &str = include_str!("grammar.txt");

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Family {
    String,
    List,
    Set,
    Hash,
    Zset,
    Geo,
    Hll,
    Key,
}

impl Family {
    pub(super) const ALL: [Family; 8] = [
        Family::String,
        Family::List,
        Family::Set,
        Family::Hash,
        Family::Zset,
        Family::Geo,
        Family::Hll,
        Family::Key,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Family::String => "string",
            Family::List => "list",
            Family::Set => "set",
            Family::Hash => "hash",
            Family::Zset => "zset",
            Family::Geo => "geo",
            Family::Hll => "hll",
            Family::Key => "key",
        }
    }
}

/// A command of a family.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) mode: Mode,
    /// The command's name, in lower case.
    pub(super) command: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Word(String),
    Drawn(String),
    Optional(Vec<Part>),
    Repeated(Vec<Part>),
    OneOf(Vec<Vec<Part>>),
}

pub(super) fn rules(family: Family) -> Result<Vec<Rule>> {
    let (mut rules, mut is_ours) = (Vec::new(), false);
    for line in GRAMMAR.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            is_ours = name == family.name();
        } else if is_ours && !line.is_empty() && !line.starts_with('#') {
            rules.push(rule(line).with_context(|| line.to_owned())?);
        }
    }
    ensure!(!rules.is_empty(), "no grammar for {}", family.name());
    Ok(rules)
}

fn rule(line: &str) -> Result<Rule> {
    let mut words = line.split_whitespace().peekable();
    let mode = Mode::of(words.next().unwrap_or_default()).context("no mode")?;
    let command = words.peek().context("no command")?.to_ascii_lowercase();
    let parts = parts(&mut words, "")?;
    Ok(Rule {
        mode,
        command,
        parts,
    })
}

/// Parts up to the word `end`, or to the end of the line.
fn parts<'a>(words: &mut impl Iterator<Item = &'a str>, end: &str) -> Result<Vec<Part>> {
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        if word == end {
            return Ok(all);
        }
        all.push(match word {
            "[" => Part::Optional(parts(words, "]")?),
            "{" => Part::Repeated(parts(words, "}")?),
            "(" => Part::OneOf(choices(words)?),
            "]" | "}" | ")" | "|" => bail!("{word} out of place"),
            _ => match word.strip_prefix('<').and_then(|w| w.strip_suffix('>')) {
                Some(kind) => Part::Drawn(kind.to_owned()),
                None => Part::Word(word.to_owned()),
            },
        });
    }
    ensure!(end.is_empty(), "{end} is missing");
    Ok(all)
}

fn choices<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Vec<Vec<Part>>> {
    let (mut choices, mut depth) = (vec![Vec::new()], 1);
    for word in words {
        depth += i32::from(word == "(") - i32::from(word == ")");
        if depth == 0 {
            break;
        }
        match choices.last_mut() {
            Some(choice) if word != "|" || depth > 1 => choice.push(word),
            _ => choices.push(Vec::new()),
        }
    }
    ensure!(depth == 0, ") is missing");
    let parsed = choices.into_iter();
    parsed
        .map(|words| parts(&mut words.into_iter(), ""))
        .collect()
}

/// Draws commands. The same seed draws the same.
pub(super) struct Generator {
    state: u64,
    family: Family,
}

/// Words that are seldom what is asked for.
const ODD: [&str; 16] = [
    "",
    "x",
    "1.5",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "nan",
    "inf",
    " 1",
    "1 ",
    "0x10",
    "+1",
    "-0",
    "1e3",
    "-1",
];

impl Generator {
    pub(super) fn new(seed: u64, family: Family) -> Self {
        Self {
            state: seed,
            family,
        }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    /// A command, now and then with a word too few or too many.
    pub(super) fn command(&mut self, rule: &Rule) -> Words {
        let mut words = Words::new();
        self.fill(&rule.parts, &mut words);
        if rule.mode != Mode::Scan && rule.mode != Mode::Removing {
            match self.below(100) {
                0 if words.len() > 1 => drop(words.pop()),
                1 => words.push(b"foo".to_vec()),
                _ => {}
            }
        }
        words
    }

    fn fill(&mut self, parts: &[Part], words: &mut Words) {
        for part in parts {
            match part {
                Part::Word(word) => words.push(word.clone().into_bytes()),
                Part::Drawn(kind) => self.draw(kind, words),
                Part::Optional(parts) => {
                    if self.below(2) == 0 {
                        self.fill(parts, words);
                    }
                }
                Part::Repeated(parts) => {
                    for _ in 0..=self.below(4) {
                        self.fill(parts, words);
                    }
                }
                Part::OneOf(choices) => {
                    let choice = self.below(choices.len());
                    self.fill(&choices[choice], words);
                }
            }
        }
    }

    fn draw(&mut self, kind: &str, words: &mut Words) {
        match kind {
            // Enough to make a large collection of a small one.
            "elements" => {
                for number in 0..self.between(100, 200) {
                    words.push(format!("m{number}").into_bytes());
                }
            }
            "pairs" => {
                for number in 0..self.between(100, 200) {
                    words.push(number.to_string().into_bytes());
                    words.push(format!("m{number}").into_bytes());
                }
            }
            // A number of keys, and the keys.
            "keys" => {
                let count = self.below(3) + 1;
                let told = if self.below(30) == 0 { 0 } else { count };
                words.push(told.to_string().into_bytes());
                for _ in 0..count {
                    self.draw("k", words);
                }
            }
            _ => {
                let word = self.word(kind);
                words.push(word);
            }
        }
    }

    fn word(&mut self, kind: &str) -> Vec<u8> {
        let is_number = matches!(kind, "int" | "count" | "float" | "seconds" | "offset");
        if is_number && self.below(25) == 0 {
            return ODD[self.below(ODD.len())].into();
        }
        let text = match kind {
            "k" => {
                let family = match self.below(25) {
                    // The one that each round makes.
                    0 => return key(Family::ALL[self.below(5)], 0),
                    _ => self.family,
                };
                return key(family, self.below(4));
            }
            // Sorted sets in which all scores are the same: only these have an order of names.
            "z" => return format!("names{}", self.below(3)).into_bytes(),
            "any" => {
                let family = Family::ALL[self.below(Family::ALL.len())];
                return key(family, self.below(4));
            }
            "e" => return self.element(),
            "int" => self.between(-12, 12).to_string(),
            "count" => self.between(0, 6).to_string(),
            "few" => self.between(-7, 7).to_string(),
            "offset" => self.between(0, 90).to_string(),
            "bit" => self.between(0, 1).to_string(),
            "seconds" => self.between(1000, 9000).to_string(),
            "float" => self.float(),
            "score" => match self.below(6) {
                0 => "-inf".to_owned(),
                1 => "+inf".to_owned(),
                2 => format!("({}", self.between(-6, 6)),
                3 => format!("({}", self.float()),
                _ => self.between(-6, 6).to_string(),
            },
            "lex" => {
                let letter = char::from(b'a' + self.below(9) as u8);
                match self.below(9) {
                    0 => "-".to_owned(),
                    1 => "+".to_owned(),
                    2 => letter.to_string(),
                    3..6 => format!("({letter}"),
                    _ => format!("[{letter}"),
                }
            }
            "pattern" => {
                ["*", "?", "[a-d]", "m1*", "*1", "\\a", "[^a]", "h*", ""][self.below(9)].into()
            }
            "lon" => format!("{}.{}", self.between(10, 16), self.below(1000)),
            "lat" => format!("{}.{}", self.between(36, 40), self.below(1000)),
            "unit" => ["m", "km", "ft", "mi", "KM", "yd"][self.below(6)].into(),
            "type" => ["u8", "i8", "u1", "i64", "u63", "u64", "i5"][self.below(7)].into(),
            _ => format!("<{kind}>"),
        };
        text.into_bytes()
    }

    fn float(&mut self) -> String {
        match self.below(8) {
            0 => "inf".to_owned(),
            1 => "-inf".to_owned(),
            2 => format!("{}e{}", self.between(-9, 9), self.between(-5, 20)),
            3 => "0.1".to_owned(),
            4 => "-0.0".to_owned(),
            5 => format!("{}.{}", self.between(-3, 3), self.below(1000)),
            _ => self.between(-6, 6).to_string(),
        }
    }

    fn element(&mut self) -> Vec<u8> {
        match self.below(40) {
            0 => Vec::new(),
            1 => vec![b'x'; 70],
            2 => b"\x00\xff\r\n".to_vec(),
            3 => vec![b'L'; 5000],
            4 => b"9223372036854775807".to_vec(),
            5 => b"1.50".to_vec(),
            6 => b"007".to_vec(),
            7..14 => self.between(-3, 300).to_string().into_bytes(),
            14..18 => format!("m{}", self.below(20)).into_bytes(),
            _ => vec![b'a' + self.below(9) as u8],
        }
    }
}

fn key(family: Family, number: usize) -> Vec<u8> {
    format!("{}{number}", family.name()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_draws_commands_without_unknown_kinds() {
        for family in Family::ALL {
            let rules = rules(family).unwrap();
            let mut generator = Generator::new(1, family);
            for rule in &rules {
                for _ in 0..50 {
                    let words = generator.command(rule);
                    let name = words[0].to_ascii_lowercase();
                    assert_eq!(name, rule.command.as_bytes());
                    let unknown = words.iter().find(|word| word.starts_with(b"<"));
                    assert_eq!(unknown, None, "{rule:?}");
                }
            }
        }
    }

    #[test]
    fn a_seed_repeats() {
        let rules = rules(Family::List).unwrap();
        let draw = || {
            let mut generator = Generator::new(9, Family::List);
            let commands = rules.iter().map(|rule| generator.command(rule));
            commands.collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
    }

    #[test]
    fn patterns_nest() {
        let rule = rule("= GET ( a | b [ c ] | { d } )").unwrap();
        assert_eq!(rule.command, "get");
        let mut generator = Generator::new(5, Family::String);
        let drawn: Vec<_> = (0..100).map(|_| generator.command(&rule)).collect();
        for wanted in ["GET a", "GET b", "GET b c", "GET d", "GET d d"] {
            let wanted: Vec<Vec<u8>> = wanted.split(' ').map(|w| w.as_bytes().to_vec()).collect();
            assert!(drawn.contains(&wanted), "{wanted:?}");
        }
        assert!(super::rule("= GET ( a").is_err());
        assert!(super::rule("= GET ]").is_err());
        assert!(super::rule("GET a").is_err());
    }
}
