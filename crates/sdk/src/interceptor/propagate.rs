//! Carries headers along by their names.

use super::{Headers, Interceptor, Outgoing, RunInfo};

/// Passes headers of these names from a run to everything that it asks for: its activities, children,
/// signals to other workflows, and the runs that follow it. In the handler of a signal or update, the
/// headers of that message come first.
///
/// A header that something else has set stays as it is.
#[derive(Clone, Debug)]
pub struct PropagateHeaders {
    names: Vec<String>,
}

impl PropagateHeaders {
    /// Carries headers of these names along.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect() }
    }
}

impl Interceptor for PropagateHeaders {
    fn outgoing(&self, run: &RunInfo, call: &mut Outgoing<'_>) {
        let message = run.handled();
        for name in &self.names {
            let handled = message.as_ref().map(|message| &message.headers);
            let adopted = handled.is_some_and(|Headers(from)| call.headers.adopt(name, from));
            if !adopted {
                call.headers.adopt(name, run.header_map());
            }
        }
    }
}
