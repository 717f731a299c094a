//! How a server is set up.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::{Server, StartError, server::hand_over};

/// How a server is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    durable: bool,
    settings: Vec<(String, String)>,
    files: Vec<(String, String)>,
    pub(crate) small_disk: Option<u32>,
}

impl Setup {
    /// Syncs to the disk, as servers do that are not for tests. A killed server loses nothing without it;
    /// a machine without power would.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Sets one of the server's settings.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets one of the server's settings to a file with this content, such as `hba_file` or
    /// `ssl_key_file`.
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.files.push((name.to_owned(), content.to_owned()));
        self
    }

    /// Gives the server a second disk of so many megabytes, as the tablespace `small`. The machine must
    /// allow mounts, if only in a namespace of their own.
    pub fn small_disk(mut self, megabytes: u32) -> Self {
        self.small_disk = Some(megabytes);
        self
    }

    /// Makes a server and starts it.
    pub fn start(&self) -> Result<Server, StartError> {
        Server::start(self)
    }

    /// Writes the files into the server's folder.
    pub(crate) fn write_files(&self, folder: &Path, user: Option<u32>) -> std::io::Result<()> {
        for (name, content) in &self.files {
            let path = folder.join(name);
            fs::write(&path, content)?;
            // The server refuses a key that others can read.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            hand_over(&path, user)?;
        }
        Ok(())
    }

    /// The settings as words for the server.
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
