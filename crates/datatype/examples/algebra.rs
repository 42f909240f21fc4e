//! Tries what data types state for as long as wanted, shows how much of what
//! is independent they recognise, and writes docs/types: `cargo xtask algebra`.

use rufous_datatype::algebra::Algebra;
use rufous_datatype::algebra::check::recognition::Draws;
use rufous_datatype::algebra::check::{self, Failure, keys};
use rufous_datatype::algebra::pages;
use rufous_datatype::key::{Keys, Type};
use rufous_datatype::object::{Registered, Visitor, visit_types};
use rufous_datatype::text::Text;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: algebra [--rounds N] [--seed X] [--only NAME] [--missed] [--write DIRECTORY]";

struct Trial {
    rounds: u64,
    seed: u64,
    /// Types whose name has this in it.
    only: String,
    /// Shows what is independent and not recognised.
    missed: bool,
    tried: usize,
    failed: usize,
}

impl Visitor for Trial {
    fn visit<T: Registered>(&mut self) {
        self.run::<T>(check::data_type::<T>);
    }
}

impl Trial {
    fn run<T: Algebra>(&mut self, check: fn(u64, u64) -> Result<(), Failure>) {
        if !T::NAME.contains(&self.only) {
            return;
        }
        self.tried += 1;
        if let Err(failure) = check(self.seed, self.rounds) {
            self.failed += 1;
            println!("FAILED {failure}\n");
            return;
        }
        println!(
            "{}: {} rounds from seed {}, nothing found",
            T::NAME,
            self.rounds,
            self.seed
        );
        let draws = Draws {
            seed: self.seed,
            ..Draws::PAGES
        };
        let (report, total) = pages::report::<T>(draws, self.missed);
        println!("{report}");
        if total.mistaken > 0 {
            self.failed += 1;
            println!(
                "FAILED {}: {} groups are not independent\n",
                T::NAME,
                total.mistaken
            );
        }
    }

    /// Operations on keys of any type.
    fn keys(&mut self) {
        if !Keys::NAME.contains(&self.only) {
            return;
        }
        self.run::<Keys>(|seed, rounds| {
            check::algebra::<Keys>(seed, rounds)?;
            keys::groups(seed, rounds)
        });
        println!("{}", pages::RELATIONS);
        for of in Type::ALL {
            match keys::pairs(*of, keys::rule) {
                Err(failure) => {
                    self.failed += 1;
                    println!("FAILED {failure}\n");
                }
                Ok(tally) => {
                    println!("{}", pages::relations(&tally));
                    let examples = tally.examples.values().filter(|_| self.missed);
                    examples.for_each(|example| println!("      not recognised: {example}"));
                }
            }
        }
        println!();
    }
}

fn main() -> ExitCode {
    let mut trial = Trial {
        rounds: 2_000,
        seed: Draws::PAGES.seed,
        only: String::new(),
        missed: false,
        tried: 0,
        failed: 0,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--missed" {
            trial.missed = true;
            continue;
        }
        let value = arguments.next().unwrap_or_default();
        let number = value.parse::<u64>();
        match (name.as_str(), number) {
            ("--rounds", Ok(rounds)) => trial.rounds = rounds,
            ("--seed", Ok(seed)) => trial.seed = seed,
            ("--only", _) => trial.only = value,
            ("--write", _) if !value.is_empty() => return write(Path::new(&value)),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    trial.run::<Text>(check::algebra::<Text>);
    trial.keys();
    visit_types(&mut trial);
    println!("{} types tried, {} failed", trial.tried, trial.failed);
    // Where nothing was tried, nothing was shown.
    if trial.failed == 0 && trial.tried > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn write(directory: &Path) -> ExitCode {
    let pages = pages::all();
    let outcome = pages.iter().try_for_each(|page| {
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join(&page.file), &page.text)
    });
    match outcome {
        Ok(()) => {
            println!("{} pages written", pages.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
