//! Keys for encryption, and where they come from.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use crate::future::BoxFuture;

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;

/// The longest id of a key.
const ID_MAX: usize = 200;

/// A secret of 256 bits with a public id. Payloads name the id of the key that encrypted them.
#[derive(Clone)]
pub struct Key {
    id: Arc<str>,
    /// Derives from content what makes two messages differ.
    pub(super) salting: hmac::Key,
    /// Derives the key of one message from its salt.
    pub(super) deriving: hmac::Key,
}

impl Key {
    /// A key of these 32 bytes, which must be random.
    pub fn new(id: impl Into<Arc<str>>, bytes: &[u8]) -> Result<Self, KeyError> {
        let id = id.into();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@+".contains(letter);
        if id.is_empty() || id.len() > ID_MAX || !id.chars().all(plain) {
            return Err(KeyError::Id(id.chars().take(ID_MAX).collect()));
        }
        if bytes.len() != KEY_BYTES {
            return Err(KeyError::Length { id: id.as_ref().to_owned(), bytes: bytes.len() });
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        // Two keys from one: no value is ever computed by both.
        let derived = |purpose: &[u8]| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, purpose).as_ref())
        };
        let (salting, deriving) = (derived(b"abide payload salt"), derived(b"abide payload key"));
        Ok(Self { id, salting, deriving })
    }

    /// A key of 32 bytes in base64.
    pub fn from_base64(id: impl Into<Arc<str>>, text: &str) -> Result<Self, KeyError> {
        let id = id.into();
        let bytes = STANDARD
            .decode(text.trim())
            .map_err(|_| KeyError::Base64(id.chars().take(ID_MAX).collect()))?;
        Self::new(id, &bytes)
    }

    /// A key of random bytes that exist nowhere else: what it encrypts can be read only as long as
    /// this program runs. For tests and trials.
    ///
    /// # Panics
    ///
    /// If the id is no valid one, or the operating system gives no random bytes.
    pub fn generate(id: impl Into<Arc<str>>) -> Self {
        let bytes = random_key().expect("the operating system gives random bytes");
        Self::new(id, &bytes).expect("the id of the key is valid")
    }

    /// Text of a new random key, in base64: keep it where secrets are kept.
    pub fn generate_base64() -> Result<String, KeyError> {
        Ok(STANDARD.encode(random_key()?))
    }

    /// The id, which is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }
}

fn random_key() -> Result<[u8; KEY_BYTES], KeyError> {
    let mut bytes = [0; KEY_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled
        .map_err(|_| KeyError::Unavailable("the operating system gives no random bytes".into()))?;
    Ok(bytes)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The id is empty, too long, or has other letters than those that are allowed.
    #[error("the key id {0:?} must have 1 to 200 ASCII letters, digits or -_./:@+")]
    Id(String),
    /// The key has the wrong length.
    #[error("key {id} has {bytes} bytes; a key has 32: make one with `abide codec key`")]
    Length {
        /// The id of the key.
        id: String,
        /// Its length.
        bytes: usize,
    },
    /// The text of the key is not base64.
    #[error("key {0} is not base64: make one with `abide codec key`")]
    Base64(String),
    /// Two keys have the same id.
    #[error("there are two keys with the id {0}: ids are never used again")]
    Twice(String),
    /// A line of a text of keys is not `ID=KEY`.
    #[error("line {0} of the keys is not ID=KEY")]
    Line(usize),
    /// There is no key at all.
    #[error("there is no key: write at least one line ID=KEY")]
    None,
    /// The provider of keys could not be asked; another try may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Where keys come from, such as a secret manager. [`KeyRing`] has them in memory. A provider is asked
/// for every batch of payloads, so it should remember its keys.
pub trait KeyProvider: Send + Sync + 'static {
    /// The key that encrypts from now on.
    fn current(&self) -> BoxFuture<'_, Result<Key, KeyError>>;

    /// The key of this id; none if it is not known.
    fn key<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Key>, KeyError>>;
}

/// Keys in memory: one that encrypts, and any number of older ones that still decrypt.
#[derive(Clone, Debug)]
pub struct KeyRing {
    current: Key,
    keys: BTreeMap<Arc<str>, Key>,
}

impl KeyRing {
    /// A ring with one key, which encrypts and decrypts.
    pub fn new(key: Key) -> Self {
        Self { keys: [(Arc::clone(&key.id), key.clone())].into(), current: key }
    }

    /// Adds a key that only decrypts: one that encrypted before, or that will encrypt once every
    /// program has it.
    pub fn with_decryption_key(mut self, key: Key) -> Result<Self, KeyError> {
        match self.keys.insert(Arc::clone(&key.id), key) {
            None => Ok(self),
            Some(key) => Err(KeyError::Twice(key.id().to_owned())),
        }
    }

    /// Keys from a text, such as a file or an environment variable: one `ID=KEY` per line or between
    /// commas, the key in base64. The first one encrypts. Empty lines and those that begin with `#`
    /// do not count.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut ring: Option<Self> = None;
        let lines = text.lines().enumerate().map(|(line, text)| (line, text.trim()));
        for (line, text) in lines.filter(|(_, text)| !text.starts_with('#')) {
            for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
                let (id, key) = entry.split_once('=').ok_or(KeyError::Line(line + 1))?;
                let key = Key::from_base64(id.trim(), key)?;
                ring = Some(match ring {
                    None => Self::new(key),
                    Some(ring) => ring.with_decryption_key(key)?,
                });
            }
        }
        ring.ok_or(KeyError::None)
    }
}

impl KeyProvider for KeyRing {
    fn current(&self) -> BoxFuture<'_, Result<Key, KeyError>> {
        Box::pin(async { Ok(self.current.clone()) })
    }

    fn key<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Key>, KeyError>> {
        Box::pin(async { Ok(self.keys.get(id).cloned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        Key::generate_base64().unwrap()
    }

    #[test]
    fn keys_are_read_from_lines_and_the_first_encrypts() {
        let text = format!("# keys\n\n new={}\nold={}, older={}\n", text(), text(), text());
        let ring = KeyRing::parse(&text).unwrap();
        assert_eq!(ring.current.id(), "new");
        assert_eq!(ring.keys.keys().map(|id| &**id).collect::<Vec<_>>(), ["new", "old", "older"]);
    }

    #[test]
    fn wrong_keys_are_refused_and_never_shown() {
        let key = text();
        let refused = |text: &str| KeyRing::parse(text).unwrap_err();
        assert_eq!(refused(""), KeyError::None);
        assert_eq!(refused("a"), KeyError::Line(1));
        assert_eq!(refused(&format!("a b={key}")), KeyError::Id("a b".into()));
        assert_eq!(refused(&format!("a={key}\na={key}")), KeyError::Twice("a".into()));
        assert_eq!(refused("a=AAAA"), KeyError::Length { id: "a".into(), bytes: 3 });
        let ring = KeyRing::parse(&format!("a={key}")).unwrap();
        let shown = format!("{ring:?} {:?}", refused(&format!("a={key}!")));
        assert!(!shown.contains(&key[..8]), "{shown}");
    }
}
