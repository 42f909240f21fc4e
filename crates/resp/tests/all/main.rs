//! Requests and replies of the protocol. One binary, so that the package is linked once.

mod common;
mod numbers;
mod replies;
mod request_chunks;
mod request_table;
