//! What types state, as pages for people: docs/types is written from here by
//! `cargo xtask algebra --write`, and a test compares the two.

#[cfg(test)]
mod tests;

use super::check::keys::Tally;
use super::check::recognition::{Draws, Pair, Recognition, Share, recognise};
use super::{Algebra, Phase, When};
use crate::algebra::Kind;
use crate::object::{Registered, Visitor, visit_types};
use crate::text::Text;
use std::fmt::Write;

/// A file of docs/types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub file: String,
    pub text: String,
}

/// The head of the table that [`relations`] gives the rows of.
pub const RELATIONS: &str = "\
| type | independent | orderable | of these missed | conflicting | of these spurious | harmless |
|---|---|---|---|---|---|---|";

/// How many pairs of operations on keys of a type there are of each relation.
pub fn relations(tally: &Tally) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |",
        tally.of.name(),
        tally.independent,
        tally.orderable,
        tally.missed,
        tally.conflicting + tally.spurious,
        tally.spurious,
        tally.harmless
    )
}

/// Every page, the index first.
pub fn all() -> Vec<Page> {
    let mut pages = Pages {
        draws: Draws::PAGES,
        pages: Vec::new(),
        index: String::from(INDEX),
    };
    pages.add::<Text>("string");
    visit_types(&mut pages);
    let index = Page {
        file: "README.md".into(),
        text: pages.index,
    };
    [vec![index], pages.pages].concat()
}

struct Pages {
    draws: Draws,
    pages: Vec<Page>,
    index: String,
}

impl Visitor for Pages {
    fn visit<T: Registered>(&mut self) {
        self.add::<T>(T::REDIS_NAME);
    }
}

impl Pages {
    fn add<T: Algebra>(&mut self, redis_name: &str) {
        let found = recognise::<T>(self.draws);
        let file = format!("{}.md", T::NAME.replace(' ', "-"));
        let mut pairs = Share::default();
        found.pairs.iter().for_each(|pair| pairs.add(&pair.share));
        let _ = writeln!(
            self.index,
            "| [{}]({file}) | {redis_name} | {} | {} | {} | {} | {} |",
            T::NAME,
            <T::Kind>::ALL.len(),
            percent(pairs.independent, pairs.sampled),
            percent(pairs.recognised, pairs.independent),
            percent(found.triples.independent, found.triples.sampled),
            percent(found.triples.recognised, found.triples.independent),
        );
        let text = page::<T>(redis_name, &found);
        self.pages.push(Page { file, text });
    }
}

const INDEX: &str = "\
# Data types

Written by `cargo xtask algebra --write`, from what the types state in code.

A type states which of its operations are independent [Claret §5]. Operations are independent if every order
of them leaves the same state and gives the same replies, as far as these are wanted. Tests check the statements
with random groups of operations in every order; `cargo xtask algebra` continues with more (`--rounds`).
Keys add what no type knows: [keys](keys.md). Linear transactions (`crates/linear`) use that; the kernel does not yet, and holds
keys exclusively, whatever the operations are.

## How to read a page

- **Operations** concern one element each; a command on several elements is a list of operations. The *phase* of
  an operation is the group that a lock could admit together with it: reads, adds, removals, or alone.
- **Independence** is a table of pairs: an operation on x, another one on y, and the condition under which they are
  independent in state S. Reads are always independent of reads. Below the table: what is checked beyond pairs.
- The columns *independent* and *recognised* are measured on sampled states and operations, with replies
  wanted or not: the share of pairs that are independent when every order is tried, and the share of these that
  the type recognises. A rule that is too strict has a low share in the last column; a rule that is wrong fails
  the tests.
- **Combining** lists pairs of operations that one other operation can replace, and the share of the sampled pairs
  that have one, in one order or the other: sums of adds, a wide read for a narrow one.

## How to add a type

One file in `crates/datatype/src` that implements `Algebra` and `DataType`, and one line in the
list at the end of `crates/datatype/src/object.rs`, with a byte of its own. The checker, these pages,
logs, snapshots and replicas find it there. Start with a rule of `Never` for all but reads, run
`cargo xtask algebra --only <name>`, and refine the rules whose last column is low.

## Replies that are not wanted

An update whose reply is not wanted is independent of more operations: [quiet updates](quiet.md).

## Types

Pairs and triples of operations that are independent, and how many of these are recognised.

| type | `TYPE` | operations | pairs independent | recognised | triples independent | recognised |
|---|---|---|---|---|---|---|
";

fn page<T: Algebra>(redis_name: &str, found: &Recognition) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "# {}\n\nWritten by `cargo xtask algebra --write`; [how to read it](README.md).\n\n{}\n\n\
         `TYPE` answers `{redis_name}`.",
        capitalised(T::NAME),
        wrapped(T::ABOUT),
    );
    text.push_str("\n## Operations\n\n| operation | | phase |\n|---|---|---|\n");
    for ((kind, name), phases) in <T::Kind>::ALL.iter().zip(&found.phases) {
        let what = if kind.is_read() { "reads" } else { "changes" };
        let phases: Vec<&str> = phases.iter().map(phase).collect();
        let _ = writeln!(text, "| `{name}` | {what} | {} |", phases.join(", "));
    }
    text.push_str("\n## Independence\n\n");
    text.push_str(&independence::<T>(&found.pairs));
    if let Some(beyond) = T::BEYOND_PAIRS {
        let _ = writeln!(text, "\nBeyond pairs: {}", wrapped(beyond));
    }
    let triples = &found.triples;
    let _ = writeln!(
        text,
        "\nOf {} sampled groups of three, {} are independent; {} of these are recognised.\n\
         `cargo xtask algebra --seed {}` prints these shares.",
        triples.sampled,
        triples.independent,
        triples.recognised,
        Draws::PAGES.seed
    );
    text.push_str("\n## Combining\n\n");
    text.push_str(&combining::<T>(&found.pairs));
    if T::MERGE.is_some() {
        text.push_str(
            "\n## Merging\n\nStates merge: in any order, grouped in any way, and again and again, \
             to the same.\n",
        );
    }
    text
}

/// The table like that of [Claret §5.1], with what was measured.
pub(crate) fn independence<T: Algebra>(pairs: &[Pair]) -> String {
    let mut text = String::from(
        "| operation | and | independent when | independent | recognised |\n|---|---|---|---|---|\n",
    );
    let mut reads = Share::default();
    for pair in pairs {
        let row = Row::of::<T>(pair);
        if row.reads {
            reads.add(&pair.share);
            continue;
        }
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {} | {} |",
            row.first,
            row.second,
            // A bar would end the cell.
            row.when.replace('|', "\\|"),
            percent(pair.share.independent, pair.share.sampled),
            percent(pair.share.recognised, pair.share.independent),
        );
    }
    if reads.sampled > 0 {
        let _ = writeln!(
            text,
            "| reads | reads | always | {} | {} |",
            percent(reads.independent, reads.sampled),
            percent(reads.recognised, reads.independent)
        );
    }
    text
}

/// What the rules say of a pair of kinds.
pub struct Row {
    pub first: String,
    pub second: String,
    pub when: &'static str,
    /// Both are reads, of which no rule needs to speak.
    pub reads: bool,
}

impl Row {
    pub fn of<T: Algebra>(pair: &Pair) -> Row {
        let (first, second) = (&<T::Kind>::ALL[pair.first], &<T::Kind>::ALL[pair.second]);
        let reads = first.0.is_read() && second.0.is_read();
        let rule = T::rules()
            .iter()
            .find(|rule| rule.pair == (first.0, second.0) || rule.pair == (second.0, first.0));
        let when = match rule.map(|rule| &rule.when) {
            Some(When::Always) => "always",
            Some(When::Never) => "never",
            Some(When::If { text, .. }) => text,
            None if reads => "always",
            None => "never",
        };
        let turned = rule.is_some_and(|rule| rule.pair.0 != first.0);
        let (first, second) = if turned {
            (second, first)
        } else {
            (first, second)
        };
        Row {
            first: first.1.to_owned(),
            second: of_the_other(first_part(second.1)),
            when,
            reads: reads && rule.is_none(),
        }
    }
}

/// The operation without what it answers.
fn first_part(name: &str) -> &str {
    name.split_once("): ")
        .map_or(name, |(call, _)| &name[..call.len() + 1])
}

/// The operation with y for x.
fn of_the_other(name: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let alone =
            !before.is_alphanumeric() && !letters.peek().is_some_and(|c| c.is_alphanumeric());
        text.push(if letter == 'x' && alone { 'y' } else { letter });
        before = letter;
    }
    text
}

fn combining<T: Algebra>(pairs: &[Pair]) -> String {
    let mut rows = String::new();
    for pair in pairs.iter().filter(|pair| pair.combine > 0) {
        let _ = writeln!(
            rows,
            "| `{}` | `{}` | {} |",
            first_part(<T::Kind>::ALL[pair.first].1),
            of_the_other(first_part(<T::Kind>::ALL[pair.second].1)),
            percent(pair.combine, pair.share.sampled)
        );
    }
    if rows.is_empty() {
        return "No operation stands for two.\n".into();
    }
    format!("| operation | and | combine |\n|---|---|---|\n{rows}")
}

/// All only if it is all, and nothing only if it is nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match (part, whole) {
        (_, 0) => "–".into(),
        (0, _) => "0 %".into(),
        _ if part == whole => "100 %".into(),
        _ => format!("{} %", ((part * 100 + whole / 2) / whole).clamp(1, 99)),
    }
}

fn phase(phase: &Phase) -> &'static str {
    match phase {
        Phase::Read => "read",
        Phase::Add => "add",
        Phase::Remove => "remove",
        Phase::Alone => "alone",
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

/// In lines of at most 100 letters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        if width > 0 && width + 1 + word.chars().count() > 100 {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.chars().count();
    }
    lines
}

/// What was found of a type, for a terminal; where asked to, with an example of
/// each that is independent and not recognised.
pub fn report<T: Algebra>(draws: Draws, examples: bool) -> (String, Share) {
    let found = recognise::<T>(draws);
    let mut text = String::new();
    let mut total = found.triples;
    let _ = writeln!(
        text,
        "  {:34} {:26} {:>11} {:>10}  when",
        "operation", "and", "independent", "recognised"
    );
    let mut line =
        |first: &str, second: &str, (share, missed): (&Share, &Option<String>), when: &str| {
            let independent = percent(share.independent, share.sampled);
            let recognised = percent(share.recognised, share.independent);
            let _ = writeln!(
                text,
                "  {first:34} {second:26} {independent:>11} {recognised:>10}  {when}"
            );
            if let Some(missed) = missed.as_ref().filter(|_| examples) {
                let _ = writeln!(text, "      not recognised: {missed}");
            }
        };
    for pair in &found.pairs {
        let row = Row::of::<T>(pair);
        line(
            &row.first,
            &row.second,
            (&pair.share, &pair.missed),
            row.when,
        );
        total.add(&pair.share);
    }
    line("groups of three", "", (&found.triples, &found.missed), "");
    (text, total)
}
