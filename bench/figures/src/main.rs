//! The papers' figures, measured here: `cargo xtask figures <name>`.
//!
//! The program is built only with the feature `measure`, so that checks and builds of the workspace leave it
//! out; the lint step of `cargo xtask test` compiles it, a full run runs its tests.
//!
//! | module | concept |
//! |---|---|
//! | [`anna4`] | Anna's Figures 4 and 5: updates in process, by skew, threads and replicas |
//! | [`anna4_pages`] | their pages |
//! | [`anna6`] | Anna's Figure 6: one worker, two workers, two nodes |
//! | [`anna8`], [`anna8_pages`] | Anna's Figure 8: over TCP beside Redis and Redis Cluster |
//! | [`anna10`], [`anna10_pages`] | Anna's Figure 10: levels beside eventual consistency |
//! | [`served`], [`rmw`], [`sixes`] | servers as clients see them, and what clients ask |
//! | [`sessions`] | clients of the levels in process |
//! | [`converting`] | how long changes of keyspaces stop a node |
//! | [`forwarding`] | what it costs that a node passes a request on |
//! | [`node_added`], [`node_killed`] | a node joins, or is killed, under load |
//! | [`driven`], [`over_time`] | clusters under clients that remember; charts over time |
//! | [`scale`] | what a cluster says to itself, from 10 to 1,000 nodes |
//! | [`warp`], [`warp_operations`] | operations in transactions beside the same alone |
//! | [`warp_latency`], [`warp_latency_pages`] | latency of writes and of transactions at fixed rates |
//! | [`warp14`] | transactions over 4 to 256 servers in one process |
//! | [`warp15`], [`warp15_payments`], [`warp15_pages`] | payments by card, and the balances after them |
//! | [`warp16`] | transactions that are aborted, by the keys that they share |
//! | [`callers`], [`curves`] | clients that read a reply before they go on; charts of curves |
//! | [`code_lines`] | how much code a level is |
//! | [`options`] | what all figures are asked for, and where pages go |
//! | [`requests`] | keys by popularity, values |
//! | [`drive`] | threads bound to processors, windows, CPU time |
//! | [`peers`], [`rufous`] | the stores |
//! | [`constants`], [`model`], [`lines`] | what two processors cost one another, and how 64 would do |
#![forbid(unsafe_code)]

mod anna10;
mod anna10_pages;
mod anna4;
mod anna4_pages;
mod anna6;
mod anna8;
mod anna8_pages;
mod callers;
mod code_lines;
mod constants;
mod converting;
mod curves;
mod drive;
mod driven;
mod forwarding;
mod lines;
mod model;
mod node_added;
mod node_killed;
mod options;
mod over_time;
mod peers;
mod requests;
mod rmw;
mod rufous;
mod scale;
mod served;
mod sessions;
mod sixes;
mod warp;
mod warp14;
mod warp15;
mod warp15_pages;
mod warp15_payments;
mod warp16;
mod warp_latency;
mod warp_latency_pages;
mod warp_operations;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Stores that allocate are measured with the allocator that the server has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Figures of the papers that Rufous follows.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    figure: Figure,
}

#[derive(Subcommand)]
enum Figure {
    /// Updates in process beside concurrent maps, where CPU time goes, and a model to 64 processors
    /// (Anna 2018, Figures 4 and 5)
    Anna4(anna4::Options),
    /// One worker, two workers, two nodes, and a model to 64 nodes (Figure 6)
    Anna6(anna6::Options),
    /// Replicas over TCP beside Redis and Redis Cluster, and a model to 64 processors (Figure 8)
    Anna8(anna8::Options),
    /// Every consistency level beside eventual consistency, and causal cuts (Figures 10 and 3)
    Anna10(anna10::Options),
    /// How long changes of keyspaces stop a node that has keys to convert
    Converting(converting::Options),
    /// What it costs that a node of a cluster passes a request on to the one that has the key
    Forwarding(forwarding::Options),
    /// A node joins under load: throughput, time, bytes moved (Anna 2018, Figure 7)
    NodeAdded(node_added::Options),
    /// A node is killed under load, beside Redis Cluster with the same fault
    NodeKilled(node_killed::Options),
    /// What a cluster says to itself, from 10 to 1,000 nodes in one process
    Scale(scale::Options),
    /// Operations in transactions of eight beside the same alone, by workload (Warp, Figure 9)
    Warp9(warp::Options),
    /// Latency of writes alone and in transactions, at a fixed rate (Warp, Figure 10)
    Warp10(warp_latency::Options),
    /// Latency of transactions at fixed rates (Warp, Figure 11)
    Warp11(warp_latency::Options),
    /// Operations in transactions of eight beside the same alone, by the part of reads (Warp, Figure 12)
    Warp12(warp::Options),
    /// Writes in transactions of 1 to 64 beside the same alone (Warp, Figure 13)
    Warp13(warp::Options),
    /// Transactions of eight over 4 to 256 servers in one process (Warp, Figure 14)
    Warp14(warp14::Options),
    /// Payments by card in three ways, and the balances after them (Warp, Figure 15)
    Warp15(warp15::Options),
    /// Transactions that are aborted, by the keys that they share (Warp, Figure 16)
    Warp16(warp16::Options),
}

fn main() -> Result<()> {
    match &Cli::parse().figure {
        Figure::Anna4(options) => anna4::run(options),
        Figure::Anna6(options) => anna6::run(options),
        Figure::Anna8(options) => anna8::run(options),
        Figure::Anna10(options) => anna10::run(options),
        Figure::Converting(options) => converting::run(options),
        Figure::Forwarding(options) => forwarding::run(options),
        Figure::NodeAdded(options) => node_added::run(options),
        Figure::NodeKilled(options) => node_killed::run(options),
        Figure::Scale(options) => scale::run(options),
        Figure::Warp9(options) => warp::run(options, &warp::NINE),
        Figure::Warp10(options) => warp_latency::run(options, &warp_latency::TEN),
        Figure::Warp11(options) => warp_latency::run(options, &warp_latency::ELEVEN),
        Figure::Warp12(options) => warp::run(options, &warp::TWELVE),
        Figure::Warp13(options) => warp::run(options, &warp::THIRTEEN),
        Figure::Warp14(options) => warp14::run(options),
        Figure::Warp15(options) => warp15::run(options),
        Figure::Warp16(options) => warp16::run(options),
    }
}
