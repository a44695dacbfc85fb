//! What a member measures, and how a program takes it: by an implementation of [`Metrics`], or
//! by `MetricsRecorder` (the feature `metrics`), given to
//! [`Builder::metrics`](crate::Builder::metrics).

#[cfg(feature = "metrics")]
pub use crate::metrics::MetricsRecorder;
pub use crate::metrics::{Metric, Metrics, Verb};
