//! Clients that are broken or mean no good. Each test shows that the offender
//! gets an error or is closed, that a witness at both workers goes on getting
//! right answers, and that the server's memory stays bounded.

#[path = "../common/mod.rs"]
mod common;

mod announced;
mod auth;
mod begun;
mod blocking;
mod bytes;
mod ends;
mod files;
mod glob;
mod http;
mod idle;
mod large;
mod malformed;
mod numbers;
mod patterns;
mod pipelines;
mod quiet;
mod readers;
mod slow;
