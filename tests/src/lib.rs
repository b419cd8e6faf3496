//! Tests of the whole, from outside. Helpers that several of them share.
