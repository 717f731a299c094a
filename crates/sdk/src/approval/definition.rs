//! The update, signal and query through which clients reach the requests of a run.

use super::{Answer, AnswerChannel, Approving, Receipt, Report};
use crate::{
    definition::{QueryDef, SignalCode, SignalDef, UpdateCode, UpdateDef},
    payload::Arguments,
    returned::ReturnedError,
};

/// The update that accepts an answer, or refuses it at once.
pub const fn update<W: Approving>() -> UpdateDef<W, (Answer,), Receipt> {
    let code = UpdateCode::Task(|ctx, answer| {
        Box::pin(
            async move { ctx.answered(answer, AnswerChannel::Update).map_err(ReturnedError::new) },
        )
    });
    UpdateDef::new(W::UPDATE, Arguments::one(), code)
        .validated(|state, answer| state.approvals().check(answer).map_err(ReturnedError::new))
}

/// The signal that carries an answer. Its sender gets no receipt; the query shows the result.
pub const fn signal<W: Approving>() -> SignalDef<W, (Answer,)> {
    let code = SignalCode::Task(|ctx, answer| {
        Box::pin(async move {
            // Refusals are recorded for the query.
            let _ = ctx.answered(answer, AnswerChannel::Signal);
        })
    });
    SignalDef::new("decision", Arguments::one(), code)
}

/// The query that returns the state and the answers of every request.
pub const fn query<W: Approving>() -> QueryDef<W, (), Report> {
    QueryDef::new("approvals", Arguments::none(), |state, ()| Ok(state.approvals().report()))
}
