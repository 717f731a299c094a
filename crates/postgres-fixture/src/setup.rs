//! Settings for a server.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::{Server, StartError, server::hand_over};

/// Settings for a server.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    durable: bool,
    settings: Vec<(String, String)>,
    files: Vec<(String, String)>,
    pub(crate) small_disk: Option<u32>,
}

impl Setup {
    /// Syncs to disk as production servers do. Without it, a killed server still loses nothing;
    /// only a power failure would lose data.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Adds a PostgreSQL setting.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a PostgreSQL setting whose value is the path of a file with this content, such as
    /// `hba_file` or `ssl_key_file`.
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.to_owned(), content.to_owned()));
        self
    }

    /// Adds a second disk of this many megabytes, as the tablespace `small`. The machine must allow
    /// mounts, at least in a mount namespace.
    pub fn small_disk(mut self, megabytes: u32) -> Self {
        self.small_disk = Some(megabytes);
        self
    }

    /// Creates and starts a server.
    pub fn start(&self) -> Result<Server, StartError> {
        Server::start(self)
    }

    /// Writes the configured files into the server's folder.
    pub(crate) fn write_files(&self, folder: &Path, user: Option<u32>) -> std::io::Result<()> {
        for (name, content) in &self.files {
            let path = folder.join(name);
            fs::write(&path, content)?;
            // The server refuses a key that other users can read.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            hand_over(&path, user)?;
        }
        Ok(())
    }

    /// The settings as command-line options of the server.
    pub(crate) fn options(&self, folder: &Path, port: u16) -> String {
        let mut options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c max_wal_size=4GB -c checkpoint_timeout=15min -c fsync={}",
            if self.durable { "on" } else { "off" }
        );
        for (name, value) in &self.settings {
            options.push_str(&format!(" -c {name}={value}"));
        }
        for (name, _) in &self.files {
            options.push_str(&format!(" -c {name}={}", folder.join(name).display()));
        }
        options
    }
}
