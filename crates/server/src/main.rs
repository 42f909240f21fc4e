//! server
fn main(){}
