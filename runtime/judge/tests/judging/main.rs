//! Tests of the judge: drills of every gate, rules of every figure, replay, and arbitrary facts.

mod arbitrary;
mod bench;
mod carried;
mod choices;
mod demand;
mod figures;
mod gates;
mod next;
mod published;
mod starts;
mod verdict;
