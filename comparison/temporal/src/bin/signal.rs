//! Signal or timeout: an order waits for its payment for a week, else a step reminds the customer.

use std::time::Duration;

use temporalio_client::{
    Client, ClientOptions, Connection, WorkflowGetResultOptions, WorkflowSignalOptions,
    WorkflowStartOptions, envconfig::LoadClientConfigProfileOptions,
};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::{
    ActivityOptions, Runtime, SyncWorkflowContext, Worker, WorkerOptions, WorkflowContext,
    WorkflowResult,
    activities::{ActivityContext, ActivityError},
};

struct Steps;

#[activities]
impl Steps {
    #[activity]
    async fn remind(_ctx: ActivityContext, customer: String) -> Result<(), ActivityError> {
        println!("{customer}, please remember to pay");
        Ok(())
    }
}

#[workflow]
#[derive(Default)]
struct Order {
    paid: Option<u64>,
}

#[workflow_methods]
impl Order {
    #[run]
    async fn run(ctx: &mut WorkflowContext<Self>, customer: String) -> WorkflowResult<String> {
        temporalio_sdk::workflows::select! {
            paid = ctx.wait_condition(|it: &Self| it.paid.is_some()) => {
                paid?;
                let cents = ctx.state(|it| it.paid).unwrap_or_default();
                Ok(format!("{customer} paid {cents} cents"))
            }
            _ = ctx.timer(Duration::from_secs(7 * 24 * 3600)) => {
                let options = ActivityOptions::start_to_close_timeout(Duration::from_secs(10));
                ctx.execute_activity(Steps::remind, customer.clone(), options).await?;
                Ok(format!("{customer} has not paid"))
            }
        }
    }

    #[signal]
    fn pay(&mut self, _ctx: &mut SyncWorkflowContext<Self>, cents: u64) {
        self.paid = Some(cents);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let (connection, client) =
        ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())?;
    let client = Client::new(Connection::connect(connection).await?, client)?;
    let options = WorkerOptions::new("signal")
        .register_workflow::<Order>()?
        .register_activities(Steps)
        .build();
    let mut worker = Worker::new(&runtime, client.clone(), options)?;
    let program = async {
        let options = WorkflowStartOptions::new("signal", "order-1").build();
        let order = client.start_workflow(Order::run, "Ada".to_owned(), options).await?;
        let options = WorkflowSignalOptions::default();
        order.signal(Order::pay, 4200, options).await?;
        println!("{}", order.get_result(WorkflowGetResultOptions::default()).await?);
        anyhow::Ok(())
    };
    tokio::select! {
        ran = worker.run() => Ok(ran?),
        done = program => Ok(done?),
    }
}
