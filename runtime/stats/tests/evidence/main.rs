//! The estimators on real measurements; `data/README.md` says where these come from.

mod arbitrary;
mod capacity;
mod pace;
mod simulation;
mod table;
