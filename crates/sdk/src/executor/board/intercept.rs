//! Where interceptors see what goes into and out of the run. Without interceptors none of this
//! allocates.

use std::rc::Rc;

use abide_core::{ids::WorkflowId, payload::PayloadMap, time::Timestamp};

use super::Board;
use crate::interceptor::{Headers, Message, Outgoing, OutgoingKind, RunInfo};

impl Board {
    /// When the run began.
    pub(crate) const fn began(&self) -> Timestamp {
        self.began
    }

    /// The message whose handler is running.
    pub(crate) fn handled(&self) -> Option<Rc<Message>> {
        self.message.borrow().clone()
    }

    /// Shows something that code is about to ask for, and changes its headers. The board must not be
    /// borrowed: interceptors are the user's code.
    pub(crate) fn outgoing(
        self: &Rc<Self>,
        kind: OutgoingKind,
        (name, workflow): (&str, Option<&WorkflowId>),
        header: &mut PayloadMap,
    ) {
        if self.interceptors.is_empty() || self.silent.get() {
            return;
        }
        let headers = Headers(std::mem::take(header));
        let call = Outgoing { kind, name, workflow, headers };
        *header = self.interceptors.outgoing(&RunInfo::new(self.clone()), call);
    }

    /// Shows a message that arrives; an error refuses it.
    pub(in crate::executor) fn arrives(self: &Rc<Self>, message: &Message) -> Result<(), String> {
        self.interceptors.message(&RunInfo::new(self.clone()), message)
    }

    /// A message as interceptors see it, if there are any.
    pub(in crate::executor) fn intercepted(
        &self,
        message: impl FnOnce() -> Message,
    ) -> Option<Rc<Message>> {
        (!self.interceptors.is_empty()).then(|| Rc::new(message()))
    }

    /// Sets the message whose handler runs.
    pub(in crate::executor) fn set_handled(&self, message: Option<Rc<Message>>) {
        if !self.interceptors.is_empty() {
            *self.message.borrow_mut() = message;
        }
    }
}
