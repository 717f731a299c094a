//! Chores of the workspace.

mod codegen;

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("codegen") => codegen::run(),
        _ => Err(std::io::Error::other("usage: cargo xtask codegen")),
    }
}
