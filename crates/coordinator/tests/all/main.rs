//! Coordinators and what goes wrong with them. One binary, so that the package is linked once.

mod common;
mod conformance;
mod etcd;
mod loopback;
