//! Scopes of cancellation: a tree whose root is the run. A wait belongs to the scope in which it
//! started. A cancel request goes down the tree, but does not enter shields.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::{Rc, Weak},
};

/// Why waits are cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancellation {
    reason: String,
    identity: String,
}

impl Cancellation {
    pub(crate) fn new(reason: impl Into<String>, identity: impl Into<String>) -> Self {
        Self { reason: reason.into(), identity: identity.into() }
    }

    /// The reason given with the cancel request; empty if none was given.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The identity of the client that requested it; empty if the run's own code or another run
    /// did.
    pub fn identity(&self) -> &str {
        &self.identity
    }
}

#[derive(Debug)]
pub(crate) struct Scope {
    kind: ScopeKind,
    /// Set when the scope's future is first polled: only then its position is known.
    parent: OnceCell<Rc<Self>>,
    /// The key under which the parent holds it.
    number: Cell<u64>,
    inner: RefCell<Inner>,
}

/// How a scope handles cancel requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    /// The run: a request ends pending waits, and later waits work, so that cleaning up is ordinary
    /// code.
    Root,
    /// A request ends pending waits, and no wait starts afterwards.
    Scope,
    /// Like a scope, but requests from outside do not enter.
    Shield,
}

#[derive(Debug, Default)]
struct Inner {
    cancelled: Option<Cancellation>,
    /// Pending waits that started here, by number.
    waits: BTreeSet<u64>,
    scopes: BTreeMap<u64, Weak<Scope>>,
    count: u64,
}

impl Scope {
    pub(crate) fn new(kind: ScopeKind) -> Rc<Self> {
        Rc::new(Self {
            kind,
            parent: OnceCell::new(),
            number: Cell::new(0),
            inner: RefCell::default(),
        })
    }

    /// Puts the scope into another one; a second call has no effect.
    pub(crate) fn attach(self: &Rc<Self>, parent: &Rc<Self>) {
        if Rc::ptr_eq(self, parent) || self.parent.set(parent.clone()).is_err() {
            return;
        }
        let mut outer = parent.inner.borrow_mut();
        outer.count += 1;
        let number = outer.count;
        self.number.set(number);
        outer.scopes.insert(number, Rc::downgrade(self));
        let inherited = outer.cancelled.clone().filter(|_| parent.refuses_when_cancelled());
        drop(outer);
        if let (Some(cancellation), ScopeKind::Scope) = (inherited, self.kind) {
            self.inner.borrow_mut().cancelled.get_or_insert(cancellation);
        }
    }

    /// No wait may start here.
    pub(crate) fn refuses(&self) -> bool {
        self.refuses_when_cancelled() && self.inner.borrow().cancelled.is_some()
    }

    fn refuses_when_cancelled(&self) -> bool {
        self.kind != ScopeKind::Root
    }

    /// Why code in this scope should stop, if it should: requested here or in any scope around it
    /// up to a shield.
    pub(crate) fn cancellation(&self) -> Option<Cancellation> {
        if let Some(cancellation) = &self.inner.borrow().cancelled {
            return Some(cancellation.clone());
        }
        match self.kind {
            ScopeKind::Root | ScopeKind::Shield => None,
            ScopeKind::Scope => self.parent.get()?.cancellation(),
        }
    }

    /// Whether a cancel request to the run reaches this scope.
    pub(crate) fn reached_from_root(&self) -> bool {
        match self.kind {
            ScopeKind::Root => true,
            ScopeKind::Shield => false,
            ScopeKind::Scope => self.parent.get().is_some_and(|parent| parent.reached_from_root()),
        }
    }

    /// Marks this scope, and all that it reaches, as cancelled. Returns the pending waits there,
    /// oldest first; none if it was cancelled before.
    pub(crate) fn cancel(&self, cancellation: &Cancellation) -> BTreeSet<u64> {
        let mut inner = self.inner.borrow_mut();
        if inner.cancelled.is_some() {
            return BTreeSet::new();
        }
        inner.cancelled = Some(cancellation.clone());
        let mut waits = inner.waits.clone();
        let scopes: Vec<_> = inner.scopes.values().filter_map(Weak::upgrade).collect();
        drop(inner);
        for scope in scopes.iter().filter(|scope| scope.kind != ScopeKind::Shield) {
            waits.extend(scope.cancel(cancellation));
        }
        waits
    }

    pub(super) fn add(&self, wait: u64) {
        self.inner.borrow_mut().waits.insert(wait);
    }

    pub(super) fn remove(&self, wait: u64) {
        self.inner.borrow_mut().waits.remove(&wait);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(parent) = self.parent.get() {
            parent.inner.borrow_mut().scopes.remove(&self.number.get());
        }
    }
}
