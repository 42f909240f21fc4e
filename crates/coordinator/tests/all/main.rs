//! Coordinators and what goes wrong with them. One binary, so that the package is linked once.

#[cfg(feature = "etcd")]
mod common;
mod conformance;
#[cfg(feature = "etcd")]
mod etcd;
mod loopback;
