//! Client of Rufous, and of other servers that speak the Redis protocol: asynchronous, on tokio.
//!
//! ```no_run
//! # async fn example() -> rufous_client::Result<()> {
//! use rufous_client::{Client, cmd};
//!
//! let client = Client::connect("rufous://127.0.0.1:6379").await?;
//! client.set("cart:7:owner", "ann").await?;
//! let owner: Option<String> = client.get("cart:7:owner").await?;
//! let items: i64 = cmd("HINCRBY").arg("cart:7").arg("apple").arg(2).query(&client).await?;
//! # Ok(()) }
//! ```
//!
//! **What it is.** [`Client`] is cheap to clone and made to be shared: all tasks' requests to a node
//! use one connection. What depends on a connection's state has its own: [`Dedicated`] (`WATCH`,
//! `MULTI`, `BEGIN`, `SELECT`), [`Session`], and blocking commands, which get one automatically. In a
//! cluster it learns which node has which slot, and follows redirections.
//!
//! **At most once, at least once.** A request that was refused or never sent is retried, within the time-out.
//! A write *that may have been executed*, because its connection ended or its reply did not arrive in time, is
//! not sent again: the error's [`Error::maybe_done`] is true, and the application has to find out.
//! [`Cmd::idempotent`] allows the retry, command by command. Reads are always retried.
//!
//! **What it never does.** It has no runtime of its own, never splits a command by itself, and takes no
//! more from a server than its bounds permit: [`Builder::max_reply`], 4096 nodes, queues of fixed
//! length. Push messages are counted and dropped; there is no subscribing.
//!
//! **Map.**
//!
//! | module | concern |
//! |---|---|
//! | `config` | URLs, settings, addresses |
//! | `command`, `shape` | commands, and what the client has to know of them |
//! | `value` | replies and conversions |
//! | `stream`, `connection`, `greeting` | one connection: bytes, requests and replies, its first requests |
//! | `node` | a node's shared connection and its pool |
//! | `slots` | which node has which slot |
//! | `retry` | what to do after a failed attempt: a pure decision |
//! | `client`, `topology` | the loop of attempts; learning the slots |
//! | `pipeline`, `dedicated`, `transact`, `session`, `methods` | what applications use |
#![forbid(unsafe_code)]

mod client;
mod command;
mod config;
mod connection;
mod dedicated;
mod error;
mod greeting;
mod methods;
mod node;
mod pipeline;
mod retry;
mod session;
mod shape;
mod slots;
mod stream;
mod topology;
mod transact;
mod value;

pub use client::{Client, Stats};
pub use command::{Cmd, ToArg, cmd};
pub use config::{Addr, Builder, ReadFrom};
pub use dedicated::Dedicated;
pub use error::{Error, Result, ServerError};
pub use pipeline::Pipeline;
pub use session::{Session, Siblings};
pub use value::{FromValue, Value};

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
