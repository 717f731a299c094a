//! `abide codec key`.

use abide::codec::Key;
use abide_command::{Common, Failed};
use clap::Args;
use serde_json::json;

/// Generate a key for the encryption of payloads
///
/// Prints a line ID=KEY. Keep it in a file that only your workers, clients and codec endpoints can read.
/// The first line of the file encrypts; the others decrypt.
#[derive(Args)]
#[command(after_help = "Example:
  (umask 077; abide codec key 2026-05 > abide.keys)")]
pub(crate) struct MakeKey {
    /// Id of the key, which payloads name; use a new one for each key
    #[arg(value_name = "ID")]
    id: String,
}

impl MakeKey {
    pub(super) fn run(self, common: &Common) -> Result<(), Failed> {
        let key = Key::generate_base64().map_err(Failed::refused)?;
        // Checks the id.
        Key::from_base64(self.id.as_str(), &key).map_err(Failed::usage)?;
        let line = format!("{}={key}", self.id);
        common.output().say(&json!({ "id": self.id, "key": key }), line)
    }
}
