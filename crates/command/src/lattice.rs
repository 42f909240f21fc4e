//! What commands mean on keys of keyspaces of regime lattice, whose replicas
//! all take writes at once: one table.
//!
//! Every command that writes is either *allowed*, with a sentence on what it
//! means there, or *refused*, because it would need all replicas together,
//! with the reason and what to use instead. Reads are allowed: they show the
//! state of the replica that serves them. The server asks [`crate::DataCommands::refused_on_lattice`] before a
//! request reaches the data; `docs/keyspaces.md` is made from the table.
//!
//! - [`rows`]: the table
//! - `decides`: which keys are written

mod decides;
pub mod rows;

use crate::{Failure, Spec, options};
pub use decides::{Decides, writes};
use rows::ROWS;
use rufous_base::Args;

/// A command, or some form of it, that cannot be had.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Goes on after "cannot be coordination-free: ".
    pub why: &'static str,
    /// What to do instead: a sentence without its end.
    pub instead: &'static str,
}

/// What a command means.
#[derive(Clone, Copy, Debug)]
pub enum Means {
    Allowed {
        means: &'static str,
        /// A request, for the reader and for the tests.
        example: &'static str,
        /// A form of it that is refused.
        but: Option<But>,
    },
    Refused(Refusal),
    /// Allowed where strings have causal order.
    Causal {
        means: &'static str,
        example: &'static str,
        /// Elsewhere.
        refusal: Refusal,
    },
}

/// The lattice keyspace of a key.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: String,
    /// Its strings have causal order.
    pub is_causal: bool,
}

/// Options that make a command one that is refused.
#[derive(Clone, Copy, Debug)]
pub struct But {
    /// Where options begin.
    pub from: usize,
    pub words: &'static [&'static str],
    /// Other options that may stand before them; none: any words.
    pub among: &'static [&'static str],
    /// Whether it is refused without one of the words, rather than with one.
    pub is_without: bool,
    pub refusal: Refusal,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    pub command: &'static str,
    pub decides: Decides,
    pub means: Means,
}

/// The row of a command, if it writes.
pub fn row_of(spec: &Spec) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.command == spec.name)
}

/// Why a request cannot be executed on keys of a lattice keyspace; `row`: that of its command. `lattice`
/// returns the keyspace of a key, if it is a lattice one.
pub fn refusal(
    (spec, row): (&Spec, &Row),
    args: &Args<'_>,
    lattice: impl Fn(&[u8]) -> Option<Found>,
) -> Option<Failure> {
    let (refused, not_causal) = match row.means {
        Means::Refused(refusal) => (refusal, false),
        Means::Causal { refusal, .. } => (refusal, true),
        Means::Allowed { but, .. } => (but.filter(|but| but.is_meant(args))?.refusal, false),
    };
    let mut keys = Vec::new();
    spec.keys.find(args, 0, &mut keys);
    let deciding = row.decides.of(&keys).iter();
    let keys = deciding.map(|&(_, arg)| args.get(arg as usize));
    let mut found = keys.filter_map(lattice);
    let name = found.find(|found| !(not_causal && found.is_causal))?.name;
    let Refusal { why, instead } = refused;
    let command = spec.name;
    Some(
        format!(
            "ERR '{command}' cannot be coordination-free: {why}. \
             Keyspace '{name}' is of regime lattice; {instead}"
        )
        .into(),
    )
}

impl But {
    fn is_meant(&self, args: &Args<'_>) -> bool {
        let is_one = |arg: &[u8], words: &[&str]| words.iter().any(|word| options::is(arg, word));
        let options = args.iter_from(self.from).take_while(|arg| {
            self.among.is_empty() || is_one(arg, self.words) || is_one(arg, self.among)
        });
        options.into_iter().any(|arg| is_one(arg, self.words)) != self.is_without
    }
}

/// The table for `docs/keyspaces.md`.
pub fn page() -> String {
    let mut out = String::from("| command | what it means on lattice keys |\n|---|---|\n");
    for row in ROWS {
        let name = row.command.to_uppercase();
        let line = match row.means {
            Means::Allowed {
                means,
                example,
                but,
            } => {
                let but = but.map(|but| {
                    let Refusal { why, instead } = but.refusal;
                    let words = but.words.join(", ");
                    let with = if but.is_without { "without" } else { "with" };
                    format!(" Refused {with} {words}: {why}; {instead}.")
                });
                format!("{means}. `{example}`{}", but.unwrap_or_default())
            }
            Means::Refused(Refusal { why, instead }) => {
                format!("Refused: {why}; {instead}.")
            }
            Means::Causal {
                means,
                example,
                refusal: Refusal { why, instead },
            } => format!("{means}. `{example}` Refused otherwise: {why}; {instead}."),
        };
        out.push_str(&format!("| {name} | {line} |\n"));
    }
    out
}

#[cfg(test)]
mod tests;
