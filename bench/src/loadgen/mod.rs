//! The closed-loop load generator: one thread, many connections, whole pipelines per write, every
//! reply checked.
//!
//! It has to cost much less than the server that it measures, so requests are copied from templates
//! in which only the keys change, replies are checked in place in one shared read buffer, and the
//! clock is read once per socket event, not once per command.
//!
//! | module | concept |
//! |---|---|
//! | [`zipf`] | zipfian, scrambled zipfian and latest distributions |
//! | [`keys`] | how a key number becomes a key, and which key is drawn next |
//! | [`template`] | commands as byte templates with the replies they must get |
//! | [`source`] | what the connections send: mixes, preloads |
//! | [`calls`] | commands on collections, written word by word |
//! | [`reply`] | checking replies without copying them |
//! | [`conn`] | one connection's batch in flight |
//! | [`load`] | the epoll loop that drives a set of connections |
//! | [`paced`] | sending on a schedule, for latency probes |
//! | [`latency`] | latency histograms |

pub mod calls;
pub mod conn;
pub mod keys;
pub mod latency;
pub mod load;
pub mod paced;
pub mod reply;
pub mod source;
pub mod template;
pub mod zipf;
