//! resp
#![forbid(unsafe_code)]
