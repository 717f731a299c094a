//! Scopes, and the cancellation of all waits of a scope, of one wait, of a child.

use std::{cell::RefCell, rc::Rc};

use abide_core::{
    command::Ask,
    event::{CancelMode, Target},
    ids::{EventNumber, WorkflowKey},
};

use super::{Board, BoardState, Child, ChildCancel, news::wake};
use crate::{
    context::OnCancel,
    executor::{
        scope::{Cancellation, Scope},
        waits::{Ender, Resolution, Subject, Wait},
    },
};

impl Board {
    /// The scope of the code that is being polled.
    pub(crate) fn scope(&self) -> Rc<Scope> {
        self.scope.borrow().clone()
    }

    /// Until the result is dropped, new waits belong to this scope.
    pub(crate) fn enter(&self, scope: Rc<Scope>) -> Entered<'_> {
        Entered { scope: &self.scope, before: self.scope.replace(scope) }
    }

    /// No wait may start in the scope of the code that is being polled.
    pub(crate) fn refuses(&self) -> bool {
        self.scope.borrow().refuses()
    }

    /// Why the code that is being polled should stop, if it should.
    pub(crate) fn cancellation(&self) -> Option<Cancellation> {
        self.scope.borrow().cancellation()
    }

    /// Whether the run was asked to cancel itself.
    pub(in crate::executor) fn run_cancelled(&self) -> bool {
        self.root.cancellation().is_some()
    }

    /// Waits until the scope of the code that is being polled is cancelled.
    pub(crate) fn wait_for_cancel(self: &Rc<Self>) -> Wait {
        self.open(&mut self.change(), Subject::CancelRequest, Ender::Nothing)
    }

    /// Ends every pending wait that a scope reaches, oldest first.
    pub(crate) fn cancel_scope(&self, scope: &Scope, cancellation: &Cancellation) {
        drop(self.change());
        for number in scope.cancel(cancellation) {
            self.cancel_wait(number);
        }
    }

    /// Ends a pending wait as its policy says.
    pub(in crate::executor) fn cancel_wait(&self, number: u64) {
        let mut shared = self.change();
        let Some(entry) = shared.waits.pending_mut(number) else { return };
        if entry.on_cancel == OnCancel::CancelAndWait {
            let subject = (!entry.cancel_asked).then(|| entry.subject.clone());
            entry.cancel_asked = true;
            if let Some(subject) = subject {
                self.withdraw(&mut shared, subject);
            }
            return;
        }
        let abandoned = entry.on_cancel == OnCancel::Abandon;
        let Some(ended) = shared.waits.resolve(number, Resolution::Cancelled) else { return };
        if !abandoned {
            self.give_up(&mut shared, ended.subject, &ended.ender);
        }
        drop(shared);
        wake(ended.waker);
    }

    /// Records a child's event number. If it was cancelled in the turn that started it, the request
    /// follows now.
    pub(in crate::executor) fn child_initiated(&self, number: u64, initiated: EventNumber) {
        let mut shared = self.shared.borrow_mut();
        let Some(child) = shared.children.get_mut(&number) else { return };
        child.initiated = Some(initiated);
        if child.cancel == ChildCancel::Wanted {
            self.cancel_child(&mut shared, number);
        }
    }

    /// Asks a child to cancel itself, once, without waiting for an answer.
    pub(super) fn cancel_child(&self, shared: &mut BoardState, number: u64) {
        let open =
            |child: &&mut Child| child.outcome.is_none() && child.cancel != ChildCancel::Asked;
        let Some(child) = shared.children.get_mut(&number).filter(open) else { return };
        // A request by the id alone could reach another workflow, if the child cannot be started.
        let Some(initiated) = child.initiated else {
            child.cancel = ChildCancel::Wanted;
            return;
        };
        child.cancel = ChildCancel::Asked;
        let (workflow, child) = (child.workflow.clone(), Some(initiated));
        shared.counts.external();
        self.ask(shared, self.cancel_request(Target { workflow, run: None, child }));
    }

    /// The request to another workflow to cancel itself.
    pub(crate) fn cancel_request(&self, target: Target) -> Ask {
        let reason = format!("asked by workflow {}", self.started().workflow);
        Ask::CancelExternal { target, mode: CancelMode::Request, reason }
    }
}

impl Child {
    pub(super) const fn new(workflow: WorkflowKey) -> Self {
        Self { workflow, cancel: ChildCancel::NotWanted, initiated: None, outcome: None }
    }

    /// Whether a wait for the child was cancelled or given up, so that it was asked to cancel
    /// itself.
    pub(crate) fn cancel_asked(&self) -> bool {
        self.cancel != ChildCancel::NotWanted
    }
}

/// While it lives, new waits belong to its scope.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    scope: &'a RefCell<Rc<Scope>>,
    before: Rc<Scope>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.scope.replace(self.before.clone());
    }
}
