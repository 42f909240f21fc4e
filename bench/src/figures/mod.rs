//! The papers' figures, measured here: `cargo xtask figures <name>`.
//!
//! | module | concept |
//! |---|---|
//! | [`anna4`] | Anna's Figures 4 and 5: updates in process, by skew, threads and replicas |
//! | [`anna4_pages`] | their pages |
//! | [`anna8`], [`anna8_pages`] | Anna's Figure 8: over TCP beside Redis and Redis Cluster |
//! | [`anna10`], [`anna10_pages`] | Anna's Figure 10: levels beside eventual consistency |
//! | [`served`], [`rmw`], [`sixes`] | servers as clients see them, and what clients ask |
//! | [`sessions`] | clients of the levels in process |
//! | [`code_lines`] | how much code a level is |
//! | [`requests`] | keys by popularity, values |
//! | [`drive`] | threads bound to processors, windows, CPU time |
//! | [`peers`], [`rufous`] | the stores |
//! | [`constants`], [`model`], [`lines`] | what two processors cost one another, and how 64 would do |

pub mod anna10;
pub mod anna10_pages;
pub mod anna4;
pub mod anna4_pages;
pub mod anna8;
pub mod anna8_pages;
pub mod code_lines;
pub mod constants;
pub mod drive;
pub mod lines;
pub mod model;
pub mod peers;
pub mod requests;
pub mod rmw;
pub mod rufous;
pub mod served;
pub mod sessions;
pub mod sixes;

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
    /// Replicas over TCP beside Redis and Redis Cluster, and a model to 64 processors (Figure 8)
    Anna8(anna8::Options),
    /// Every consistency level beside eventual consistency, and causal cuts (Figures 10 and 3)
    Anna10(anna10::Options),
}

pub fn run(options: &Options) -> Result<()> {
    match &options.figure {
        Figure::Anna4(options) => anna4::run(options),
        Figure::Anna8(options) => anna8::run(options),
        Figure::Anna10(options) => anna10::run(options),
    }
}
