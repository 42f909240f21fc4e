//! Commands on unique identifiers without order.

pub mod next;
pub mod peek;
