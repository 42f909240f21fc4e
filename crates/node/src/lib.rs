//! The `rufous` program: a node as a process.
//!
//! It reads settings, starts the threads of a node, and offers what operators use: the command
//! line, logs, signals, metrics and health over HTTP, backups. It never touches a record; what
//! clients see is in `rufous-server`.
//!
//! Map, in reading order:
//! - [`settings`]: the sources of settings (defaults, file, environment, command line)
//! - [`node`]: a running node, and clients inside its process
//! - [`process`]: memory, processor time and open files of the process
//! - [`admin`]: metrics and health over HTTP
//! - [`backup`]: copies of a node's saves in a folder or an object store
//! - [`cli`]: the subcommands of `rufous`
//!
//! A node inside another program:
//!
//! ```
//! use rufous_node::node::Node;
//! use rufous_resp::Reply;
//! use rufous_server::config::Config;
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
pub mod node;
pub mod process;
#[cfg(test)]
mod reference;
pub mod settings;
