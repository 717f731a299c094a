//! History on the wire: stored rows as they are, never parsed on the way.

use abide_core::{
    codec::Wire,
    limits::InvalidField,
    operation::{History, HistoryPage},
};

use crate::{
    field::{part, word},
    generated::{HistoryRows, HistoryRowsRequest},
};

impl From<History> for HistoryRowsRequest {
    fn from(request: History) -> Self {
        let History { target, from, follow } = request;
        Self { target: Some(target.into()), from, follow }
    }
}

impl TryFrom<HistoryRowsRequest> for History {
    type Error = InvalidField;

    fn try_from(wire: HistoryRowsRequest) -> Result<Self, InvalidField> {
        let HistoryRowsRequest { target, from, follow } = wire;
        Ok(Self { target: part("target", target)?, from, follow })
    }
}

impl From<HistoryPage> for HistoryRows {
    fn from(page: HistoryPage) -> Self {
        let HistoryPage { run, rows, next, more, closed } = page;
        Self { run: run.to_wire(), rows, next, more, closed }
    }
}

impl TryFrom<HistoryRows> for HistoryPage {
    type Error = InvalidField;

    fn try_from(wire: HistoryRows) -> Result<Self, InvalidField> {
        let HistoryRows { run, rows, next, more, closed } = wire;
        Ok(Self { run: word("run", run)?, rows, next, more, closed })
    }
}
