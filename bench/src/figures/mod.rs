//! The papers' figures, measured here: `cargo xtask figures <name>`.
//!
//! | module | concept |
//! |---|---|
//! | [`anna4`] | Anna's Figures 4 and 5: updates in process, by skew, threads and replicas |
//! | [`anna4_pages`] | their pages |
//! | [`requests`] | keys by popularity, values |
//! | [`drive`] | threads bound to processors, windows, CPU time |
//! | [`peers`], [`rufous`] | the stores |
//! | [`constants`], [`model`], [`lines`] | what two processors cost one another, and how 64 would do |

pub mod anna4;
pub mod anna4_pages;
pub mod constants;
pub mod drive;
pub mod lines;
pub mod model;
pub mod peers;
pub mod requests;
pub mod rufous;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Figures of the papers that Rufous follows.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Clone, Debug, Subcommand)]
enum Figure {
    /// Updates in process beside concurrent maps, where CPU time goes, and a model to 64 processors
    /// (Anna 2018, Figures 4 and 5)
    Anna4(anna4::Options),
}

pub fn run(options: &Options) -> Result<()> {
    match &options.figure {
        Figure::Anna4(options) => anna4::run(options),
    }
}
