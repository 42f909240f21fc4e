//! A node assembled: one actor per worker thread, driven by the runtime.
//!
//! This is the Rust API for programs that run a node inside themselves: give
//! [`start`] a way to make the actors, get a [`Handle`] that connects, counts
//! and stops. It knows neither the protocol nor the commands: the server crate
//! brings both, and is the one to embed for a node that speaks to Redis clients.
//!
//! Map:
//! - [`base`]: the contract between actors and what drives them
//! - [`kernel`]: the store that actors are made of
//! - [`runtime`]: threads, sockets and rings
//!
//! A node of one worker whose whole protocol is `key=value` and `key`:
//!
//! ```
//! use rufous::kernel::shard::{ExpirySetting, NewValue, Shard};
//! use rufous::{Actor, Config, Effects, Input, Now, start};
//!
//! struct Notes(Shard);
//!
//! impl Actor for Notes {
//!     type Message = ();
//!
//!     fn step(&mut self, now: Now, input: Input<'_, ()>, fx: &mut Effects<()>) {
//!         fx.more = false;
//!         match input {
//!             Input::Received { bytes, reads } => {
//!                 for read in reads {
//!                     let start = fx.output.mark();
//!                     self.answer(now, &bytes[read.start..read.end], &mut fx.output.bytes);
//!                     fx.write(read.conn, start);
//!                 }
//!             }
//!             Input::Ended { conn } => fx.closes.push((conn, rufous::base::Close::AfterReplies)),
//!             Input::Stop => fx.node.push(rufous::base::NodeEffect::Stopped),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! impl Notes {
//!     fn answer(&mut self, now: Now, request: &[u8], reply: &mut Vec<u8>) {
//!         let equals = request.iter().position(|byte| *byte == b'=');
//!         let key = self.0.key(&request[..equals.unwrap_or(request.len())]);
//!         match equals {
//!             Some(at) => {
//!                 let value = NewValue::Copy(&request[at + 1..]);
//!                 self.0.set(0, key, value, ExpirySetting::Clear, now);
//!                 reply.extend_from_slice(b"kept");
//!             }
//!             None => match self.0.get(0, key, now).unwrap_or_default() {
//!                 Some(value) => reply.extend_from_slice(value.bytes()),
//!                 None => reply.extend_from_slice(b"nothing"),
//!             },
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config { workers: 1, ..Config::default() };
//! let node = start(config, |_| Notes(Shard::new(7)))?;
//! let mut connection = node.handle().connect()?;
//! let mut ask = |request: &str| -> std::io::Result<String> {
//!     connection.send_blocking(request.as_bytes())?;
//!     let mut reply = Vec::new();
//!     connection.receive_blocking(&mut reply)?;
//!     Ok(String::from_utf8_lossy(&reply).into_owned())
//! };
//! assert_eq!(ask("greeting")?, "nothing");
//! assert_eq!(ask("greeting=hello")?, "kept");
//! assert_eq!(ask("greeting")?, "hello");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub use rufous_base as base;
pub use rufous_kernel as kernel;
pub use rufous_runtime as runtime;

pub use base::{Actor, Effects, Input, Now};
pub use runtime::{
    Config, DirError, DirLock, Handle, Listen, LocalConnection, Runtime, StartError, Teller,
    Untold, lock_data_dir, start,
};
