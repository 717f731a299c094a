//! What the commands of the binary `abide` share, whichever crate they live in: the options that
//! all understand and the connection to the engine that follows from them ([`Common`]), with a codec
//! endpoint if one is named, output for
//! people or programs ([`Output`], [`Table`], [`time`]), errors with an exit code ([`Failed`]), and
//! the program itself as another process ([`own_process()`]). It has no commands.

mod codec_endpoint;
mod connection;
mod failed;
mod output;
mod own_process;
mod quoted;
mod table;
pub mod time;

pub use self::{
    connection::{Common, DEFAULT_ADDRESS},
    failed::Failed,
    output::Output,
    own_process::own_process,
    quoted::quoted,
    table::Table,
};
