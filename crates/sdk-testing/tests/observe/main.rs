//! Interceptors, headers, traces, logs and metrics, through a whole engine.

extern crate abide_sdk as abide;

mod durations;
mod interceptors;
mod logs;
mod metrics;
mod telemetry;
