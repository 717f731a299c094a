//! Fan-out: ten pages are counted at the same time, and the counts are added.

use std::time::Duration;

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowGetResultOptions, WorkflowStartOptions,
    envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError},
    workflows::join_all,
};

struct Steps;

#[activities]
impl Steps {
    #[activity]
    async fn count(_ctx: ActivityContext, page: u64) -> Result<u64, ActivityError> {
        Ok(page * 100)
    }
}

#[workflow]
#[derive(Default)]
struct Import;

#[workflow_methods]
impl Import {
    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>, pages: u64) -> WorkflowResult<u64> {
        let options = ActivityOptions::start_to_close_timeout(Duration::from_secs(10));
        let counts =
            (1..=pages).map(|page| ctx.execute_activity(Steps::count, page, options.clone()));
        let counts: Result<Vec<u64>, _> = join_all(counts).await.into_iter().collect();
        Ok(counts?.into_iter().sum())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options = WorkerOptions::new("fan-out")
        .register_workflow::<Import>()?
        .register_activities(Steps)
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("fan-out", "import-1").build();
        let import = client.start_workflow(Import::run, 10, options).await?;
        println!("{}", import.get_result(WorkflowGetResultOptions::default()).await?);
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
