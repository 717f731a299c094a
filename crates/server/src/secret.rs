//! The secret that the nodes of a cluster share to authenticate each other. It is never printed.

use std::{fmt, fs, path::Path};

use serde::Deserialize;
use uuid::Uuid;

use crate::ServerError;

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

/// A random secret of this length cannot be guessed from recorded traffic.
const BYTES_MIN: usize = 32;

impl Secret {
    /// A new secret, drawn at random.
    pub fn draw() -> Self {
        Self([Uuid::new_v4(), Uuid::new_v4()].map(|drawn| drawn.simple().to_string()).concat())
    }

    /// Reads a secret from a file, ignoring a line ending.
    pub(crate) fn read(path: &Path) -> Result<Self, ServerError> {
        let text = fs::read_to_string(path)
            .map_err(|error| ServerError::SecretFile { path: path.to_owned(), error })?;
        Ok(Self(text.trim().to_owned()))
    }

    /// Refuses a secret that could be guessed.
    pub(crate) fn check(self) -> Result<Self, ServerError> {
        match self.0.len() {
            BYTES_MIN.. => Ok(self),
            bytes => Err(ServerError::ShortSecret { bytes, least: BYTES_MIN }),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
