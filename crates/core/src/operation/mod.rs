//! What clients and operators ask of an engine, each operation with the type of its answer. The tables
//! below are the one list of them: the engine in the process, the network, the nodes among themselves and
//! the command line are forms of it. What workers say is in [`report`](crate::report).
//!
//! An operation is a struct, so that it can be made by name and grow a field. The enums of all of them are
//! there to be routed, encoded and matched without a catch-all arm: a new operation makes the compiler
//! list the places that must think about it.

mod access;
mod attempt;
mod control;
mod course;
mod error;
mod message;
mod read;
mod schedule;
mod search;
mod start;
mod watch;

pub use self::{
    access::{Caller, Role},
    attempt::{Alive, ReportAttempt, Reported},
    control::{
        Cancel, Done, Pause, Repair, RescheduleTimer, RunTarget, Signal, Terminate, Unpause,
    },
    course::{Delete, Reset},
    error::CallError,
    message::{AwaitUpdate, Query, QueryAnswer, QueryRequest, Update, UpdateAnswer, UpdateWait},
    read::{
        Count, CountRuns, History, HistoryPage, ListNodes, ListRuns, ListWaits, Nodes, RunRows,
        WaitRows,
    },
    schedule::{
        ChangeSchedule, CreateSchedule, DeleteSchedule, DescribeSchedule, ListSchedules,
        ScheduleDescription, ScheduleRow, ScheduleRows,
    },
    search::{
        CreateSearchAttribute, DeleteSearchAttribute, ListSearchAttributes, SearchAttributes,
    },
    start::{Begin, ConflictPolicy, Start, StartUpdate, Started},
    watch::{AwaitClose, AwaitEvents, AwaitWaits, Closed, Describe, Events, RunWaits},
};
use crate::{
    batch::{Batches, ListBatches, StartBatch, StopBatch},
    carried::{Carried, Carrier},
    ids::{NamespaceId, RunId, WorkflowKey},
    run::Description,
    tally::{RunTally, TallyRuns, TallyWaits, WaitTally},
};

/// Names a request within its shard; the answer carries it.
pub type Ticket = u64;

/// Something that clients and operators ask of an engine, with the type of its answer.
pub trait Operation: Into<AnyOperation> + Clone + Send + 'static {
    /// Which one it is.
    const NAME: OperationName;

    /// What comes of it.
    type Answer: TryFrom<AnyAnswer, Error = Misplaced>;

    /// The answer in its type. Nothing else checks that an answer belongs to what was asked, which only
    /// an engine in another process can get wrong.
    fn answer(answer: AnyAnswer) -> Result<Self::Answer, CallError> {
        let misplaced = |Misplaced| {
            CallError::Unavailable(format!("its answer does not match the call {:?}", Self::NAME))
        };
        answer.try_into().map_err(misplaced)
    }
}

/// The answer is one to another operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced;

/// Makes the enums of all operations, the way from each struct to them, and what a row says of each.
macro_rules! operations {
    (
        Run { $(
            $run:ident($held:ty) -> $run_answer:ty: $run_role:ident, $run_again:ident, $run_size:ident;
        )* }
        Read { $(
            $read:ident -> $read_answer:ty: $read_role:ident, $read_again:ident, $read_size:ident;
        )* }
    ) => {
        /// An operation that the shard of one workflow serves.
        #[derive(Clone, Debug)]
        pub enum RunOperation { $($run($held),)* }

        /// An operation that the node that was asked reads from the store.
        #[derive(Clone, Debug)]
        pub enum ReadOperation { $($read($read),)* }

        /// Which operation it is, without what is asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum OperationName { $($run,)* $($read,)* }

        impl OperationName {
            pub const ALL: &[Self] = &[$(Self::$run,)* $(Self::$read,)*];

            /// The least role that may ask for it.
            pub const fn needs(self) -> Role {
                match self {
                    $(Self::$run => Role::$run_role,)*
                    $(Self::$read => Role::$read_role,)*
                }
            }

            /// It changes nothing, so it may be performed any number of times.
            pub const fn repeatable(self) -> bool {
                let again = match self {
                    $(Self::$run => Again::$run_again,)*
                    $(Self::$read => Again::$read_again,)*
                };
                matches!(again, Again::Repeatable)
            }

            /// How much its answer may take.
            pub const fn answer_size(self) -> AnswerSize {
                match self {
                    $(Self::$run => AnswerSize::$run_size,)*
                    $(Self::$read => AnswerSize::$read_size,)*
                }
            }
        }

        impl RunOperation {
            /// Which one it is.
            pub const fn name(&self) -> OperationName {
                match self { $(Self::$run(_) => OperationName::$run,)* }
            }
        }

        impl ReadOperation {
            /// Which one it is.
            pub const fn name(&self) -> OperationName {
                match self { $(Self::$read(_) => OperationName::$read,)* }
            }
        }

        $(
            impl From<$run> for RunOperation {
                fn from(operation: $run) -> Self {
                    Self::$run(operation.into())
                }
            }

            impl From<$run> for AnyOperation {
                fn from(operation: $run) -> Self {
                    Self::Run(Box::new(operation.into()))
                }
            }

            impl Operation for $run {
                const NAME: OperationName = OperationName::$run;
                type Answer = $run_answer;
            }
        )*

        $(
            impl From<$read> for AnyOperation {
                fn from(operation: $read) -> Self {
                    Self::Read(Box::new(ReadOperation::$read(operation)))
                }
            }

            impl Operation for $read {
                const NAME: OperationName = OperationName::$read;
                type Answer = $read_answer;
            }
        )*
    };
}

/// Makes the enum of all answers, finds their user data, and calls `conversions` for all of them.
macro_rules! answers {
    (
        UserData { $($data:ident($data_held:ty),)* }
        NoUserData { $($plain:ident($plain_held:ty),)* }
    ) => {
        /// An answer to any operation.
        #[derive(Clone, Debug)]
        pub enum AnyAnswer { $($data($data_held),)* $($plain($plain_held),)* }

        impl Carrier for AnyAnswer {
            fn collect<'a>(&'a mut self, carried: &mut Carried<'a>) {
                match self {
                    $(Self::$data(answer) => answer.collect(carried),)*
                    $(Self::$plain(_) => {})*
                }
            }
        }

        conversions! { $($data($data_held),)* $($plain($plain_held),)* }
    };
}

/// Makes the way from each answer to the enum and back.
macro_rules! conversions {
    ($($answer:ident($held:ty),)*) => {
        $(
            impl From<$held> for AnyAnswer {
                fn from(answer: $held) -> Self {
                    Self::$answer(answer)
                }
            }

            impl TryFrom<AnyAnswer> for $held {
                type Error = Misplaced;

                fn try_from(answer: AnyAnswer) -> Result<Self, Misplaced> {
                    match answer {
                        AnyAnswer::$answer(answer) => Ok(answer),
                        _ => Err(Misplaced),
                    }
                }
            }
        )*
    };
}

// Each row: the least role that may ask for it, whether it may be repeated, and how large its answer is.
operations! {
    Run {
        Start(Box<Start>) -> Started: Client, Changes, Small;
        Signal(Signal) -> Done: Client, Changes, Small;
        Cancel(Cancel) -> Done: Operator, Changes, Small;
        Terminate(Terminate) -> Done: Operator, Changes, Small;
        Pause(Pause) -> Done: Operator, Changes, Small;
        Unpause(Unpause) -> Done: Operator, Changes, Small;
        RescheduleTimer(RescheduleTimer) -> Done: Operator, Changes, Small;
        Repair(Repair) -> Done: Operator, Changes, Small;
        Update(Update) -> UpdateAnswer: Client, Changes, Large;
        AwaitUpdate(AwaitUpdate) -> UpdateAnswer: Viewer, Repeatable, Large;
        // A query runs code of the workflow.
        Query(Query) -> QueryAnswer: Client, Repeatable, Large;
        Describe(Describe) -> Box<Description>: Viewer, Repeatable, Built;
        AwaitClose(AwaitClose) -> Closed: Viewer, Repeatable, Large;
        AwaitEvents(AwaitEvents) -> Events: Viewer, Repeatable, Small;
        AwaitWaits(AwaitWaits) -> RunWaits: Viewer, Repeatable, Large;
        ReportAttempt(ReportAttempt) -> Reported: Client, Changes, Small;
        Delete(Delete) -> Done: Operator, Changes, Small;
        Reset(Box<Reset>) -> Done: Operator, Changes, Small;
        CreateSchedule(Box<CreateSchedule>) -> Done: Operator, Changes, Small;
        ChangeSchedule(Box<ChangeSchedule>) -> Done: Operator, Changes, Small;
        DeleteSchedule(DeleteSchedule) -> Done: Operator, Changes, Small;
        DescribeSchedule(DescribeSchedule) -> Box<ScheduleDescription>: Viewer, Repeatable, Built;
    }
    Read {
        History -> HistoryPage: Viewer, Repeatable, Built;
        ListRuns -> RunRows: Viewer, Repeatable, Built;
        CountRuns -> Count: Viewer, Repeatable, Built;
        ListWaits -> WaitRows: Viewer, Repeatable, Built;
        ListNodes -> Nodes: Viewer, Repeatable, Small;
        TallyRuns -> RunTally: Viewer, Repeatable, Built;
        TallyWaits -> WaitTally: Viewer, Repeatable, Built;
        CreateSearchAttribute -> SearchAttributes: Operator, Changes, Small;
        ListSearchAttributes -> SearchAttributes: Viewer, Repeatable, Small;
        DeleteSearchAttribute -> SearchAttributes: Operator, Changes, Small;
        ListSchedules -> ScheduleRows: Viewer, Repeatable, Built;
        StartBatch -> Batches: Operator, Changes, Large;
        StopBatch -> Batches: Operator, Changes, Large;
        ListBatches -> Batches: Viewer, Repeatable, Large;
    }
}

answers! {
    UserData {
        Started(Started),
        Update(UpdateAnswer),
        Query(QueryAnswer),
        Description(Box<Description>),
        Closed(Closed),
        Schedule(Box<ScheduleDescription>),
        Batches(Batches),
    }
    // A page of history has its rows as they are stored: its reader decodes the rows first, and
    // collects from the events.
    NoUserData {
        Done(Done),
        Events(Events),
        RunWaits(RunWaits),
        Alive(Alive),
        History(HistoryPage),
        Runs(RunRows),
        Count(Count),
        Waits(WaitRows),
        Nodes(Nodes),
        RunTally(RunTally),
        WaitTally(WaitTally),
        SearchAttributes(SearchAttributes),
        Schedules(ScheduleRows),
    }
}

/// Any operation. Each is in a box, because what waits for its answer should be small.
#[derive(Clone, Debug)]
pub enum AnyOperation {
    /// The shard of one workflow serves it.
    Run(Box<RunOperation>),
    /// The node that was asked reads it from the store.
    Read(Box<ReadOperation>),
}

impl From<RunOperation> for AnyOperation {
    fn from(operation: RunOperation) -> Self {
        Self::Run(Box::new(operation))
    }
}

impl AnyOperation {
    /// Which one it is.
    pub const fn name(&self) -> OperationName {
        match self {
            Self::Run(operation) => operation.name(),
            Self::Read(operation) => operation.name(),
        }
    }

    /// Whether the answer may be long in coming, so that the caller may have left meanwhile.
    pub const fn waits(&self) -> bool {
        match self {
            Self::Run(operation) => operation.waits(),
            Self::Read(operation) => match &**operation {
                ReadOperation::History(history) => history.follow.is_some(),
                ReadOperation::ListRuns(_)
                | ReadOperation::CountRuns(_)
                | ReadOperation::ListWaits(_)
                | ReadOperation::ListNodes(_)
                | ReadOperation::TallyRuns(_)
                | ReadOperation::TallyWaits(_)
                | ReadOperation::CreateSearchAttribute(_)
                | ReadOperation::ListSearchAttributes(_)
                | ReadOperation::DeleteSearchAttribute(_)
                | ReadOperation::ListSchedules(_)
                | ReadOperation::StartBatch(_)
                | ReadOperation::StopBatch(_)
                | ReadOperation::ListBatches(_) => false,
            },
        }
    }
}

impl RunOperation {
    /// The workflow that it is about, and the run if it names one.
    pub const fn place(&self) -> (&WorkflowKey, Option<RunId>) {
        match self {
            Self::Start(start) => (&start.workflow, None),
            Self::Signal(Signal { target, .. })
            | Self::Cancel(Cancel { target, .. })
            | Self::Terminate(Terminate { target, .. })
            | Self::Pause(Pause { target, .. })
            | Self::Unpause(Unpause { target, .. })
            | Self::RescheduleTimer(RescheduleTimer { target, .. })
            | Self::Repair(Repair { target, .. })
            | Self::Update(Update { target, .. })
            | Self::AwaitUpdate(AwaitUpdate { target, .. })
            | Self::Query(Query { target, .. })
            | Self::Describe(Describe { target })
            | Self::AwaitClose(AwaitClose { target })
            | Self::AwaitEvents(AwaitEvents { target, .. })
            | Self::AwaitWaits(AwaitWaits { target, .. }) => (&target.workflow, target.run),
            Self::ReportAttempt(ReportAttempt { attempt, .. }) => attempt.place(),
            Self::Delete(Delete { target, .. }) => (&target.workflow, target.run),
            Self::Reset(reset) => (&reset.target.workflow, reset.target.run),
            Self::CreateSchedule(create) => (&create.workflow, None),
            Self::ChangeSchedule(change) => (&change.workflow, None),
            Self::DeleteSchedule(DeleteSchedule { workflow, .. })
            | Self::DescribeSchedule(DescribeSchedule { workflow }) => (workflow, None),
        }
    }

    /// The workflow that it is about.
    pub const fn workflow(&self) -> &WorkflowKey {
        self.place().0
    }

    /// The namespace of that workflow.
    pub const fn namespace(&self) -> &NamespaceId {
        &self.place().0.namespace
    }

    const fn waits(&self) -> bool {
        match self {
            Self::Start(start) => start.update.is_some(),
            Self::Update(_)
            | Self::AwaitUpdate(_)
            | Self::Query(_)
            | Self::AwaitClose(_)
            | Self::AwaitEvents(_)
            | Self::AwaitWaits(_) => true,
            Self::Signal(_)
            | Self::Cancel(_)
            | Self::Terminate(_)
            | Self::Pause(_)
            | Self::Unpause(_)
            | Self::RescheduleTimer(_)
            | Self::Repair(_)
            | Self::Describe(_)
            | Self::ReportAttempt(_)
            | Self::Delete(_)
            | Self::Reset(_)
            | Self::CreateSchedule(_)
            | Self::ChangeSchedule(_)
            | Self::DeleteSchedule(_)
            | Self::DescribeSchedule(_) => false,
        }
    }
}

/// How much memory and time it may take to build an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSize {
    /// Less than its request.
    Small,
    /// The data of one run, once it is there.
    Large,
    /// All that is known about one run, or many rows of the store, even if few are sent: building it
    /// takes much memory and time.
    Built,
}

/// Whether an operation may be performed more than once.
enum Again {
    /// It changes nothing.
    Repeatable,
    /// Once, or again with its key.
    Changes,
}
