//! Codecs change payloads on their way to and from an engine: they compress, encrypt, or keep large
//! ones elsewhere. A client and its workers have the same [`Codecs`].

#[cfg(feature = "codecs")]
pub use abide_sdk::codec::{
    BlobError, BlobId, BlobStore, Compress, Encrypt, Key, KeyError, KeyProvider, KeyRing,
    LocalFolder, Offload, PayloadsJson, PayloadsJsonError,
};
/// What the functions of a [`Codec`] return.
pub use abide_sdk::future::BoxFuture;

pub use abide_sdk::codec::{
    Bytes, Codec, CodecError, CodecProblem, Codecs, ENCODED, Payload, encoded_payload, pack, unpack,
};
#[cfg(feature = "codec-endpoint")]
pub use abide_sdk::codec::{CodecEndpoint, EndpointError};
