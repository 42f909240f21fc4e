//! Outliving a crash: what is written to disk, and how it is read again.
//!
//! Pure: it makes requests to a disk and is told what became of them, never
//! touching a file itself.
//!
//! Map, in reading order:
//! - [`effect`]: what a command did, as bytes

pub mod effect;

pub use effect::Effect;
