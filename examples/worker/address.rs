//! Address of the server: the argument of `--address`, or the default.

/// Reads the command line.
pub fn from_arguments() -> String {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--address").skip(1);
    arguments.next().unwrap_or_else(|| "http://127.0.0.1:7233".to_owned())
}
