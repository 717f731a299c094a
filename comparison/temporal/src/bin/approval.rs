//! Approval with a deadline: a purchase waits for a decision for three days, and the deadline can move.

use std::time::{Duration, SystemTime};

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowExecuteUpdateOptions, WorkflowGetResultOptions,
    WorkflowSignalOptions, WorkflowStartOptions, envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ApplicationFailure, Runtime, SyncWorkflowContext, Worker, WorkerOptions, WorkflowContext,
    WorkflowResult,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[workflow]
#[derive(Default)]
struct Purchase {
    approved: Option<bool>,
    deadline: Option<SystemTime>,
}

#[workflow_methods]
impl Purchase {
    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>, item: String) -> WorkflowResult<String> {
        let now = ctx.workflow_time().ok_or_else(|| ApplicationFailure::new("no time"))?;
        ctx.state_mut(|it| it.deadline = Some(now + 3 * DAY));
        loop {
            let deadline = ctx.state(|it| it.deadline);
            let now = ctx.workflow_time();
            let left =
                deadline.zip(now).and_then(|(deadline, now)| deadline.duration_since(now).ok());
            temporalio_sdk::workflows::select! {
                _ = ctx.timer(left.unwrap_or_default()) => return Ok(format!("{item}: too late")),
                _ = ctx.wait_condition(|it: &Self| it.approved.is_some() || it.deadline != deadline) => {}
            }
            match ctx.state(|it| it.approved) {
                Some(true) => return Ok(format!("{item}: approved")),
                Some(false) => return Ok(format!("{item}: rejected")),
                None => {}
            }
        }
    }

    #[signal]
    fn decide(&mut self, _ctx: &mut SyncWorkflowContext<Self>, approved: bool) {
        self.approved = Some(approved);
    }

    #[update]
    fn extend(&mut self, _ctx: &mut SyncWorkflowContext<Self>, days: u32) -> Option<SystemTime> {
        self.deadline = self.deadline.map(|deadline| deadline + days * DAY);
        self.deadline
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options = WorkerOptions::new("approval").register_workflow::<Purchase>()?.build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("approval", "desk").build();
        let desk = client.start_workflow(Purchase::run, "a desk".to_owned(), options).await?;
        let options = WorkflowExecuteUpdateOptions::default();
        desk.execute_update(Purchase::extend, 2, options).await?;
        let options = WorkflowSignalOptions::default();
        desk.signal(Purchase::decide, true, options).await?;
        println!("{}", desk.get_result(WorkflowGetResultOptions::default()).await?);
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
