//! The Redis-protocol server: connections, sessions, commands on the server
//! itself, settings and operation.
//!
//! Data and commands on data live below it; this crate never touches a record.
//!
//! Map, in reading order:
//! - [`identity`]: who the server says it is
//! - [`config`]: settings, and where they come from
//! - [`front`]: one actor per worker, from bytes to replies
//! - [`command`]: commands on connections and on the server
//! - [`cluster`]: a node among others: sessions with them, the coordinator
//! - [`node`]: a running server, and clients inside its process
//! - [`tls`]: its certificates
//! - [`process`]: what the operating system says of it
//! - [`admin`]: metrics and health over HTTP
//! - [`cli`]: the `rufous` program
//!
//! A node inside another program:
//!
//! ```
//! use rufous_resp::Reply;
//! use rufous_server::{config::Config, node::Node};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // No address: only this process reaches the node.
//! let config = Config { workers: 2, bind: Vec::new(), ..Config::in_memory() };
//! let node = Node::start(&config)?;
//! let mut client = node.connect()?;
//! assert_eq!(client.call(&["SET", "greeting", "hello"])?, Reply::Simple(b"OK".to_vec()));
//! assert_eq!(client.call(&["GET", "greeting"])?, Reply::Bulk(b"hello".to_vec()));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod admin;
pub mod backup;
pub mod cli;
pub mod cluster;
pub mod command;
pub mod config;
pub mod front;
pub mod identity;
pub mod node;
pub mod process;
pub mod tls;
