//! Failures. A chain of causes is a list on the wire: nested messages would exceed the depth that
//! protobuf decoders allow.

use super::{
    error::{DecodeError, Problem},
    generated,
    table::{enumerations, required, union},
    wire::{Wire, field},
};
use crate::failure::{Causes, Failure, FailureKind, TimeoutKind};

union! {
    FailureKind = failure_link::Kind {
        whole { Timeout }
        parts {
            Application(Nothing) {},
            Cancelled(Nothing) {},
            Terminated(Nothing) {},
            Server(Nothing) {},
            Activity(Nothing) {},
            Child(Nothing) {},
            WorkerLost(Nothing) {},
        }
    }
}

enumerations! {
    TimeoutKind { ScheduleToStart, ScheduleToClose, StartToClose, Heartbeat }
}

impl Wire<generated::Failure> for Failure {
    fn to_wire(&self) -> generated::Failure {
        generated::Failure { links: self.chain().map(link).collect() }
    }

    fn from_wire(wire: generated::Failure) -> Result<Self, DecodeError> {
        let mut links = wire.links.into_iter().map(from_link);
        let failure = links.next().ok_or(Problem::Missing)??;
        Ok(Self { causes: links.collect::<Result<_, _>>()?, ..failure })
    }
}

required!(Failure, generated::Failure);

fn link(failure: &Failure) -> generated::FailureLink {
    let Failure {
        message,
        error_type,
        stack,
        kind,
        non_retryable,
        next_retry_delay,
        details,
        causes: _,
        extension,
    } = failure;
    generated::FailureLink {
        message: message.to_wire(),
        error_type: error_type.to_wire(),
        stack: stack.to_wire(),
        kind: kind.to_wire(),
        non_retryable: *non_retryable,
        next_retry_delay: next_retry_delay.to_wire(),
        details: details.to_wire(),
        extension: extension.to_wire(),
    }
}

fn from_link(link: generated::FailureLink) -> Result<Failure, DecodeError> {
    Ok(Failure {
        message: link.message,
        error_type: link.error_type,
        stack: link.stack,
        kind: field("kind", link.kind)?,
        non_retryable: link.non_retryable,
        next_retry_delay: field("next_retry_delay", link.next_retry_delay)?,
        details: field("details", link.details)?,
        causes: Causes::default(),
        extension: link.extension,
    })
}
