//! What the attribute macros need besides the public items.

/// Keeps code that needs the client where there is one: macros cannot see the features of the SDK.
#[cfg(feature = "worker")]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_client {
    ($($code:tt)*) => { $($code)* };
}

/// Drops code that needs the client.
#[cfg(not(feature = "worker"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __with_client {
    ($($code:tt)*) => {};
}
