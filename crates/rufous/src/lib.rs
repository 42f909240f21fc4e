//! rufous
