//! The transport to a server, for clients that need more than an address: TLS, tokens, bounds.

pub use abide_sdk::grpc::{GrpcOptions, GrpcTransport, TlsOptions};
