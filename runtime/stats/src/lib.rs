//! Estimators, tests and intervals: numbers in, numbers out.
//!
//! Pure: no clock, no disk, no printing, and no source of chance but a seed that the caller gives. Nothing here panics on
//! any input: what can't be computed (too few values, a NaN, a division by zero) is `None`.

pub mod beta;
pub mod bootstrap;
pub mod grid;
pub mod interval;
pub mod law;
pub mod pace;
pub mod random;
pub mod regression;
pub mod round;
pub mod sample;
pub mod slo;

pub use bootstrap::ratio_interval;
pub use grid::{Grid, GridRate, Inversion};
pub use interval::{Interval, mean_interval, median_interval};
pub use pace::{Pace, Witness};
pub use regression::Regression;
pub use sample::{Best, best, coefficient_of_variation, mean, median, quantile, spread};
