//! The update, signal and query by which the world speaks to the requests of a run.

use super::{Answer, Approving, Receipt, Report, Way};
use crate::{
    definition::{QueryDef, SignalCode, SignalDef, UpdateCode, UpdateDef},
    payload::Arguments,
    raised::Raised,
};

/// The update that takes an answer, or refuses it at once.
pub const fn update<W: Approving>() -> UpdateDef<W, Answer, Receipt> {
    let code = UpdateCode::Task(|ctx, answer| {
        Box::pin(async move { ctx.answered(answer, Way::Update).map_err(Raised::new) })
    });
    UpdateDef::new(W::UPDATE, Arguments::one(), code)
        .validated(|state, answer| state.approvals().check(answer).map_err(Raised::new))
}

/// The signal that takes an answer. Nobody is told what came of it; the query tells.
pub const fn signal<W: Approving>() -> SignalDef<W, Answer> {
    let code = SignalCode::Task(|ctx, answer| {
        Box::pin(async move {
            // Refusals are remembered, for the query.
            let _ = ctx.answered(answer, Way::Signal);
        })
    });
    SignalDef::new("decision", Arguments::one(), code)
}

/// The query that tells the whole story of every request.
pub const fn query<W: Approving>() -> QueryDef<W, (), Report> {
    QueryDef::new("approvals", Arguments::none(), |state, ()| Ok(state.approvals().report()))
}
