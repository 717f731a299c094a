//! Encryption with AES-256-GCM, such that the same payload encrypts to the same bytes.
//!
//! The engine compares the content of requests that are repeated with the same key, so a repeat must
//! not look different. A salt is computed from the content by HMAC with a key of its own; a message
//! key is derived from the salt, and encrypts this one content. Different contents have different
//! salts, so no key ever encrypts two contents, however many there are; the same content under the
//! same key has the same bytes, which the engine may notice.
//!
//! The data is: one byte of version, the length of the key's id, the id, the salt, the ciphertext with
//! its tag. Version and id are authenticated.

use std::sync::Arc;

use abide_core::payload::Payload;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    hmac,
};

use super::{
    Codec, CodecError, Codecs, encoded_payload,
    keys::{Key, KeyError, KeyProvider},
    pack, unpack,
};
use crate::future::BoxFuture;

/// The encoding, and the name in messages.
const AES: &str = "codec/aes-256-gcm";

/// The form of the data.
const VERSION: u8 = 1;

/// Bytes of the salt: two contents never have the same.
const SALT_BYTES: usize = 24;

/// Metadata that names the key to people; the data has the name that counts.
const KEY_ID: &str = "key-id";

/// Encrypts payloads, their metadata included.
#[derive(Clone)]
pub struct Encrypt {
    keys: Arc<dyn KeyProvider>,
}

impl Encrypt {
    /// Encrypts with the current key of this provider, and decrypts with any of its keys.
    pub fn new(keys: impl KeyProvider) -> Self {
        Self { keys: Arc::new(keys) }
    }

    async fn decrypt(&self, payload: &Payload) -> Result<Payload, CodecError> {
        let damaged = || CodecError::refused(AES, "the payload is cut off or damaged");
        let (head, id, rest) = head(&payload.data).ok_or_else(damaged)?;
        let key = self.keys.key(id).await.map_err(unavailable)?.ok_or_else(|| {
            let message = format!(
                "the payload is encrypted with key {id:?}, which this program does not have: add \
                 it to the keys that decrypt"
            );
            CodecError::missing(AES, message)
        })?;
        let (salt, sealed) = rest.split_at_checked(SALT_BYTES).ok_or_else(damaged)?;
        let mut packed = sealed.to_vec();
        let opened = message_key(&key, salt)
            .open_in_place(once(), Aad::from(head), &mut packed)
            .map_err(|_| {
                let message = format!(
                    "the payload is damaged or forged, or key {id:?} here is not the key of that \
                     id that encrypted it"
                );
                CodecError::refused(AES, message)
            })?;
        let length = opened.len();
        packed.truncate(length);
        unpack(AES, packed)
    }
}

impl Codec for Encrypt {
    fn name(&self) -> &str {
        AES
    }

    fn reads(&self, encoding: &str) -> bool {
        encoding == AES
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            let key = self.keys.current().await.map_err(unavailable)?;
            payloads.iter().map(|payload| encrypt(&key, payload)).collect()
        })
    }

    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            let mut decrypted = Vec::with_capacity(payloads.len());
            for payload in &payloads {
                decrypted.push(self.decrypt(payload).await?);
            }
            Ok(decrypted)
        })
    }

    fn authenticates(&self) -> bool {
        true
    }
}

impl Codecs {
    /// Adds [`Encrypt`] with these keys, such as a [`KeyRing`](super::KeyRing).
    #[must_use]
    pub fn encrypt(self, keys: impl KeyProvider) -> Self {
        self.with(Encrypt::new(keys))
    }
}

fn encrypt(key: &Key, payload: &Payload) -> Result<Payload, CodecError> {
    let mut packed = pack(payload).to_vec();
    let mut data = vec![VERSION, u8::try_from(key.id().len()).unwrap_or(u8::MAX)];
    data.extend(key.id().as_bytes());
    let salt = salt(key, &data, &packed);
    message_key(key, &salt)
        .seal_in_place_append_tag(once(), Aad::from(&data), &mut packed)
        .map_err(|_| CodecError::refused(AES, "the payload is too large to be encrypted"))?;
    data.extend(salt);
    data.extend(packed);
    let mut encrypted = encoded_payload(AES, data);
    encrypted.metadata.insert(KEY_ID.to_owned(), key.id().to_owned().into());
    Ok(encrypted)
}

/// What is authenticated, the id of the key in it, and the rest.
fn head(data: &[u8]) -> Option<(&[u8], &str, &[u8])> {
    let [VERSION, length, ..] = data else { return None };
    let (head, rest) = data.split_at_checked(2 + usize::from(*length))?;
    Some((head, str::from_utf8(head.get(2..)?).ok()?, rest))
}

fn salt(key: &Key, head: &[u8], packed: &[u8]) -> [u8; SALT_BYTES] {
    let mut context = hmac::Context::with_key(&key.salting);
    // The head has its own length in it, so the two parts do not run together.
    context.update(head);
    context.update(packed);
    let mut salt = [0; SALT_BYTES];
    salt.copy_from_slice(&context.sign().as_ref()[..SALT_BYTES]);
    salt
}

fn message_key(key: &Key, salt: &[u8]) -> LessSafeKey {
    let bytes = hmac::sign(&key.deriving, salt);
    let key = UnboundKey::new(&AES_256_GCM, bytes.as_ref())
        .expect("HMAC-SHA-256 has the length of an AES-256 key");
    LessSafeKey::new(key)
}

/// The nonce of a key that encrypts one content.
fn once() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn unavailable(error: KeyError) -> CodecError {
    CodecError::unavailable(AES, format!("the keys cannot be read: {error}"))
}
