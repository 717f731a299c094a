//! Hello: a workflow with one step.

use std::time::Duration;

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowGetResultOptions, WorkflowStartOptions,
    envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError},
};

struct Steps;

#[activities]
impl Steps {
    #[activity]
    async fn greet(_ctx: ActivityContext, name: String) -> Result<String, ActivityError> {
        Ok(format!("Hello, {name}!"))
    }
}

#[workflow]
#[derive(Default)]
struct Hello;

#[workflow_methods]
impl Hello {
    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>, name: String) -> WorkflowResult<String> {
        let options = ActivityOptions::start_to_close_timeout(Duration::from_secs(10));
        Ok(ctx.execute_activity(Steps::greet, name, options).await?)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options = WorkerOptions::new("hello")
        .register_workflow::<Hello>()?
        .register_activities(Steps)
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("hello", "hello-1").build();
        let hello = client.start_workflow(Hello::run, "Ada".to_owned(), options).await?;
        println!("{}", hello.get_result(WorkflowGetResultOptions::default()).await?);
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
