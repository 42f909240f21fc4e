//! What every figure is asked for, and where its pages and charts go.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use rufous_bench::procfs::Machine;
use rufous_bench::report::{Report, Setting};

/// Options of all figures.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Short and with few keys: shows that everything runs, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Where pages and charts go [default: docs/benchmarks; quick: nowhere]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Common {
    /// What was given, else what a full or a quick run has.
    pub(crate) fn pick<T>(&self, given: Option<T>, full: T, quick: T) -> T {
        given.unwrap_or(if self.quick { quick } else { full })
    }

    fn out(&self) -> Option<PathBuf> {
        let usual = (!self.quick).then(|| PathBuf::from("docs/benchmarks"));
        self.out.clone().or(usual)
    }

    /// Prints the reports and writes their pages, and charts by the names of their files.
    pub(crate) fn publish(
        &self,
        machine: &Machine,
        versions: impl IntoIterator<Item = (String, String)>,
        reports: &[Report],
        charts: &[(&str, String)],
    ) -> Result<()> {
        let setting = Setting {
            machine: machine.clone(),
            versions: versions.into_iter().collect(),
        };
        for report in reports {
            println!("{}", report.terminal());
            if let Some(dir) = self.out() {
                report.write(&dir, &setting)?;
            }
        }
        if let Some(dir) = self.out() {
            for (name, svg) in charts {
                fs::write(dir.join(name), svg).with_context(|| format!("writing {name}"))?;
            }
        }
        Ok(())
    }
}

/// The version of a node under its name.
pub(crate) fn rufous(version: String) -> [(String, String); 1] {
    [("rufous".to_owned(), version)]
}
