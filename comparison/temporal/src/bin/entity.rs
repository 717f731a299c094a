//! Entity: a customer's points, for years; they are added to, asked for, and outlive a run's history.

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowQueryOptions, WorkflowSignalOptions,
    WorkflowStartOptions, envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ContinueAsNewOptions, Runtime, SyncWorkflowContext, Worker, WorkerOptions, WorkflowContext,
    WorkflowContextView, WorkflowResult,
};

#[workflow]
struct Customer {
    points: u64,
    left: bool,
}

#[workflow_methods]
impl Customer {
    #[init]
    fn new(_ctx: &WorkflowContextView, points: u64) -> Self {
        Self { points, left: false }
    }

    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<u64> {
        let view = ctx.clone();
        ctx.wait_condition(move |it| it.left || view.continue_as_new_suggested()).await?;
        let (points, left) = ctx.state(|it| (it.points, it.left));
        if !left {
            ctx.continue_as_new(points, ContinueAsNewOptions::default())?;
        }
        Ok(points)
    }

    #[signal]
    fn earn(&mut self, _ctx: &mut SyncWorkflowContext<Self>, points: u64) {
        self.points += points;
    }

    #[signal]
    fn leave(&mut self, _ctx: &mut SyncWorkflowContext<Self>) {
        self.left = true;
    }

    #[query]
    fn level(&self, _ctx: &WorkflowContextView) -> String {
        if self.points >= 100 { "gold" } else { "basic" }.to_owned()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options = WorkerOptions::new("entity").register_workflow::<Customer>()?.build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("entity", "ada").build();
        let ada = client.start_workflow(Customer::run, 0, options).await?;
        let options = WorkflowSignalOptions::default();
        ada.signal(Customer::earn, 120, options).await?;
        let options = WorkflowQueryOptions::default();
        println!("{}", ada.query(Customer::level, (), options).await?);
        let options = WorkflowSignalOptions::default();
        ada.signal(Customer::leave, (), options).await?;
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
