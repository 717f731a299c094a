//! Interceptors see what goes in and out of clients and workers: they carry headers along, authorize,
//! measure and trace.

pub use abide_sdk::interceptor::{
    ActivityEnd, Attempt, BoxFuture, Headers, Interceptor, Message, MessageKind, NextAttempt,
    Outgoing, OutgoingKind, PropagateHeaders, RunFuture, RunInfo,
};
#[cfg(feature = "worker")]
pub use abide_sdk::interceptor::{CallAnswer, CallKind, ClientCall, NextCall};
