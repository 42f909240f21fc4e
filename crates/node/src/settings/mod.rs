//! The sources of settings: defaults, a TOML file, the environment and the command line.
//!
//! What each setting means is in `rufous_server::config`; this module only finds its value.
//!
//! - [`options`]: the settings that can be given when a node starts, and how
//! - `file`: reading them from a TOML file
//! - [`sources`]: all sources put together, in order of precedence
//! - [`render()`]: the settings in force as a file

#[cfg(test)]
mod cluster_tests;
mod file;
pub mod options;
mod render;
pub mod sources;

pub use render::render;
