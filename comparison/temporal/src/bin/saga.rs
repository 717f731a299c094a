//! Saga: a trip of three bookings; when the last one fails, the others are undone, newest first.

use std::time::Duration;

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowGetResultOptions, WorkflowStartOptions,
    envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ActivityExecutionError, ActivityOptions, ApplicationFailure, Runtime, Worker, WorkerOptions,
    WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError},
};

struct Steps;

#[activities]
impl Steps {
    #[activity]
    async fn book(_ctx: ActivityContext, what: String) -> Result<(), ActivityError> {
        if what == "car" {
            let failure = ApplicationFailure::non_retryable("no car left");
            return Err(ActivityError::application(failure));
        }
        println!("booked a {what}");
        Ok(())
    }

    #[activity]
    async fn cancel(_ctx: ActivityContext, what: String) -> Result<(), ActivityError> {
        println!("cancelled the {what}");
        Ok(())
    }
}

#[workflow]
#[derive(Default)]
struct Trip;

#[workflow_methods]
impl Trip {
    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<String> {
        let mut undo = Vec::new();
        if let Err(error) = Self::book_all(ctx, &mut undo).await {
            for what in undo.into_iter().rev() {
                ctx.execute_activity(Steps::cancel, what, options()).await?;
            }
            return Err(error.into());
        }
        Ok("booked".to_owned())
    }

    async fn book_all(
        ctx: &mut WorkflowContext<Self>,
        undo: &mut Vec<String>,
    ) -> Result<(), ActivityExecutionError> {
        for what in ["hotel", "flight", "car"] {
            ctx.execute_activity(Steps::book, what.to_owned(), options()).await?;
            undo.push(what.to_owned());
        }
        Ok(())
    }
}

fn options() -> ActivityOptions {
    ActivityOptions::start_to_close_timeout(Duration::from_secs(10))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options =
        WorkerOptions::new("saga").register_workflow::<Trip>()?.register_activities(Steps).build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("saga", "trip-1").build();
        let trip = client.start_workflow(Trip::run, (), options).await?;
        match trip.get_result(WorkflowGetResultOptions::default()).await {
            Ok(done) => println!("{done}"),
            Err(error) => println!("failed: {error}"),
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
