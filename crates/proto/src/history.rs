//! History over the wire: stored rows as they are, never parsed on their way.

use abide_core::{
    call::{HistoryPage, HistoryRequest},
    codec::Wire,
};

use crate::{
    Malformed,
    generated::{HistoryRows, HistoryRowsRequest},
    malformed::{part, word},
};

impl From<HistoryRequest> for HistoryRowsRequest {
    fn from(request: HistoryRequest) -> Self {
        let HistoryRequest { target, after, up_to, follow } = request;
        Self { target: Some(target.into()), after, up_to, follow }
    }
}

impl TryFrom<HistoryRowsRequest> for HistoryRequest {
    type Error = Malformed;

    fn try_from(wire: HistoryRowsRequest) -> Result<Self, Malformed> {
        let HistoryRowsRequest { target, after, up_to, follow } = wire;
        Ok(Self { target: part("target", target)?, after, up_to, follow })
    }
}

impl From<HistoryPage> for HistoryRows {
    fn from(page: HistoryPage) -> Self {
        let HistoryPage { run, rows, more, closed } = page;
        Self { run: run.to_wire(), rows, more, closed }
    }
}

impl TryFrom<HistoryRows> for HistoryPage {
    type Error = Malformed;

    fn try_from(wire: HistoryRows) -> Result<Self, Malformed> {
        let HistoryRows { run, rows, more, closed } = wire;
        Ok(Self { run: word("run", run)?, rows, more, closed })
    }
}
