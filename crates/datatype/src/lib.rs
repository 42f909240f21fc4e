//! datatype
#![forbid(unsafe_code)]
