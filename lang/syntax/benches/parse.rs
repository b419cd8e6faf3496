//! Reading speed: figures follow with the suite.

fn main() {}
