//! Everything that a client can ask and be told. Unary methods and the stream of many calls share it.

use abide_core::{
    call::{Call, CallError, CallReply, HistoryPage, HistoryRequest},
    limits::InvalidField,
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
};

use crate::{
    call::{from_wire, to_wire as call_to_wire},
    error,
    field::{Inside, parts},
    generated::{self as wire, numbered_answer::Answer, numbered_call::Call as Asked},
    list::{run_token, wait_token},
};

/// What a client asks.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A call of the core that is no worker's.
    Call(Call),
    /// A part of a history.
    History(HistoryRequest),
    /// A page of runs.
    Runs(Page<RunFilter>),
    /// A number of runs.
    CountRuns(RunFilter),
    /// A page of waits.
    Waits(Page<WaitFilter>),
    /// The nodes of the cluster.
    Nodes,
}

impl Operation {
    /// Whether the answer may be long in coming, so that the caller may have left meanwhile.
    pub fn may_wait(&self) -> bool {
        match self {
            Self::Call(Call::Start(start)) => start.update.is_some(),
            Self::Call(call) => matches!(
                call,
                Call::AwaitClose(_)
                    | Call::AwaitEvents(..)
                    | Call::AwaitWaits(..)
                    | Call::Update { .. }
                    | Call::AwaitUpdate { .. }
                    | Call::Query { .. }
            ),
            Self::History(request) => request.follow.is_some(),
            Self::Runs(_) | Self::CountRuns(_) | Self::Waits(_) | Self::Nodes => false,
        }
    }

    /// Whether the answer may have many rows.
    pub const fn is_page(&self) -> bool {
        matches!(self, Self::History(_) | Self::Runs(_) | Self::Waits(_))
    }
}

/// A filter, and how many rows a page has; the server's bound if none is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<F> {
    /// Which rows, and after which.
    pub filter: F,
    /// How many.
    pub limit: Option<usize>,
}

/// What a client is told.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The core's answer.
    Call(CallReply),
    /// The part of the history.
    History(HistoryPage),
    /// The runs, and whether there are more.
    Runs(Vec<RunRow>, bool),
    /// How many there are.
    Count(u64),
    /// The waits, and whether there are more.
    Waits(Vec<WaitRow>, bool),
    /// The nodes.
    Nodes(Vec<NodeListing>),
}

/// The form of an operation on the wire.
///
/// # Errors
/// A worker's call has none here: it belongs on the stream of the worker's session.
pub fn operation_to_wire(operation: Operation) -> Result<Asked, InvalidField> {
    Ok(match operation {
        Operation::Call(call) => call_to_wire(call)
            .ok_or_else(|| InvalidField::new("call", "belongs on the stream of a worker"))?,
        Operation::History(request) => Asked::History(request.into()),
        Operation::Runs(page) => Asked::ListRuns(page.into()),
        Operation::CountRuns(filter) => {
            Asked::CountRuns(wire::CountRunsRequest { filter: Some(filter.into()) })
        }
        Operation::Waits(page) => Asked::ListWaits(page.into()),
        Operation::Nodes => Asked::ListNodes(wire::ListNodesRequest {}),
    })
}

/// The operation that a message asks for.
pub fn operation_from_wire(asked: Asked) -> Result<Operation, InvalidField> {
    Ok(match asked {
        Asked::History(request) => Operation::History(request.try_into()?),
        Asked::ListRuns(request) => Operation::Runs(request.try_into()?),
        Asked::CountRuns(request) => {
            let filter = request.filter.unwrap_or_default().try_into();
            Operation::CountRuns(filter.map_err(|error: InvalidField| error.inside("filter"))?)
        }
        Asked::ListWaits(request) => Operation::Waits(request.try_into()?),
        Asked::ListNodes(_) => Operation::Nodes,
        other => Operation::Call(from_wire(other)?),
    })
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Call(reply) => reply.into(),
            Reply::History(page) => Self::History(page.into()),
            Reply::Runs(rows, more) => {
                let last = rows.last().filter(|_| more);
                let next_page_token = last.map(run_token).unwrap_or_default();
                let runs = rows.into_iter().map(Into::into).collect();
                Self::Runs(wire::ListRunsResponse { runs, next_page_token })
            }
            Reply::Count(count) => Self::Count(wire::CountRunsResponse { count }),
            Reply::Waits(rows, more) => {
                let last = rows.last().filter(|_| more);
                let next_page_token = last.map(wait_token).unwrap_or_default();
                let waits = rows.into_iter().map(Into::into).collect();
                Self::Waits(wire::ListWaitsResponse { waits, next_page_token })
            }
            Reply::Nodes(nodes) => {
                let nodes = nodes.into_iter().map(Into::into).collect();
                Self::Nodes(wire::ListNodesResponse { nodes })
            }
        }
    }
}

/// What an answer on the wire says.
pub fn answer_from_wire(answer: Answer) -> Result<Reply, CallError> {
    let read = match answer {
        Answer::Error(detail) => return Err(error::from_detail(detail)),
        Answer::History(rows) => rows.try_into().map(Reply::History),
        Answer::Runs(list) => {
            let more = !list.next_page_token.is_empty();
            parts("runs", list.runs).map(|rows| Reply::Runs(rows, more))
        }
        Answer::Count(count) => Ok(Reply::Count(count.count)),
        Answer::Waits(list) => {
            let more = !list.next_page_token.is_empty();
            parts("waits", list.waits).map(|rows| Reply::Waits(rows, more))
        }
        Answer::Nodes(list) => parts("nodes", list.nodes).map(Reply::Nodes),
        other => CallReply::try_from(other).map(Reply::Call),
    };
    read.map_err(error::unreadable_answer)
}

impl TryFrom<Answer> for CallReply {
    type Error = InvalidField;

    fn try_from(answer: Answer) -> Result<Self, InvalidField> {
        crate::reply::from_wire(answer)
    }
}

/// The response of a single call is the case of an answer that bears its name.
macro_rules! responses {
    ($($case:ident($response:ident)),* $(,)?) => { $(
        impl TryFrom<Answer> for wire::$response {
            type Error = CallError;

            fn try_from(answer: Answer) -> Result<Self, CallError> {
                match answer {
                    Answer::$case(response) => Ok(response),
                    Answer::Error(detail) => Err(error::from_detail(detail)),
                    _ => Err(error::misplaced_reply()),
                }
            }
        }
    )* };
}

responses! {
    Started(StartRunResponse),
    Done(DoneResponse),
    Query(QueryRunResponse),
    Update(UpdateRunResponse),
    Description(RunDescription),
    Closed(AwaitCloseResponse),
    Runs(ListRunsResponse),
    Count(CountRunsResponse),
    Waits(ListWaitsResponse),
    Nodes(ListNodesResponse),
}
