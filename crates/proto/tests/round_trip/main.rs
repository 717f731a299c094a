//! What the core says survives the way over the wire: every call, command, task, answer and error goes
//! to bytes and comes back as it was.

mod bounds;
mod errors;
mod operations;
mod values;
mod workers;

use prost::Message;

/// The message after its way over the wire.
fn over_the_wire<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).expect("what was encoded can be decoded")
}
