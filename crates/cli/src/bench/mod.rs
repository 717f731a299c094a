//! tmp
use clap::Args;
use crate::{connection::Common, failed::Failed};
/// x
#[derive(Args)]
#[command(after_help="Example: x")]
pub(crate) struct Bench {}
impl Bench { pub(crate) async fn run(self, _c: &Common) -> Result<(), Failed> { Ok(()) } }
