//! A subscriber that keeps what was logged, with the span around it.

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Keeps one line per event: the span that was made last, and the message.
pub(crate) struct Lines(pub(crate) Arc<Mutex<Vec<String>>>);

thread_local! {
    static SPAN: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let Self(text) = self;
        if field.name() == "message" {
            write!(text, ": {value:?}").unwrap();
        } else {
            write!(text, " {}={value:?}", field.name()).unwrap();
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, " {}={value}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        SPAN.set(text.0);
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(SPAN.with_borrow(Clone::clone));
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
