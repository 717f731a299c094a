//! Durable model call: an agent asks a model what to do, does it, and asks again. Each call of the
//! model and of a tool is an activity, so an answer that was paid for is never paid for twice: here
//! the worker dies in the middle, and another continues the conversation.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use abide::{Worker, prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// The conversation so far. The model is stateless, so it gets all of it each time.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Message {
    User(String),
    Tool(String),
}

/// What the model wants to happen next.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    UseTool { name: String, argument: String },
    Answer(String),
}

/// The model and the tools. Clones in one process share their counters.
#[derive(Clone, Default)]
struct Assistant {
    model_calls: Arc<AtomicU32>,
    tool_calls: Arc<AtomicU32>,
    stuck: Arc<Notify>,
}

#[activities]
impl Assistant {
    /// Stands for a call of a model over the network.
    #[activity]
    async fn model(
        &self,
        ctx: ActivityContext,
        said: Vec<Message>,
    ) -> Result<Reply, ActivityError> {
        self.model_calls.fetch_add(1, Ordering::Relaxed);
        if said.len() == 3 && ctx.attempt() == 1 {
            // Such services say when to retry.
            let busy = ActivityError::new("overloaded");
            return Err(busy.retry_after(seconds(20)));
        }
        Ok(match &*said {
            [.., Message::Tool(found)] if said.len() > 2 => {
                Reply::Answer(format!("Take a coat: {found}."))
            }
            [.., Message::Tool(city)] => {
                Reply::UseTool { name: "weather".into(), argument: city.clone() }
            }
            _ => Reply::UseTool { name: "calendar".into(), argument: "tomorrow".into() },
        })
    }

    #[activity]
    async fn tool(&self, name: String, argument: String) -> Result<String, ActivityError> {
        let calls = self.tool_calls.fetch_add(1, Ordering::Relaxed) + 1;
        match &*name {
            "calendar" => Ok("Oslo".into()),
            "weather" if calls == 2 => {
                // The worst moment: the program is killed while the tool runs.
                self.stuck.notify_one();
                std::future::pending().await
            }
            "weather" => Ok(format!("snow in {argument}")),
            // The model may ask for anything; it is told which tools do not exist.
            _ => Ok(format!("there is no tool {name}")),
        }
    }
}

#[workflow]
async fn agent(ctx: &Context, question: String) -> abide::Result<String> {
    let mut said = vec![Message::User(question)];
    // Bounded: a model that never finishes is stopped.
    for _turn in 0..10 {
        match ctx.activity(Assistant::model, &said).start_to_close(minutes(5)).await? {
            Reply::Answer(answer) => return Ok(answer),
            Reply::UseTool { name, argument } => {
                let tool = ctx.activity(Assistant::tool, (name, argument));
                said.push(Message::Tool(tool.await?));
            }
        }
    }
    Err(Error::new("no answer after ten turns"))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    let assistant = Assistant::default();
    let set_up = |worker: Worker| worker.workflow::<agent>().activities(assistant.clone());

    let question = "What shall I wear tomorrow?";
    let agent = agent::start(&env.client(), "chat-1", question).await?;
    tokio::select! {
        ended = set_up(Worker::new(&env.client())).run() => ended?,
        // Dropping a worker kills it: work in progress is lost.
        () = assistant.stuck.notified() => println!("the first worker died while a tool ran"),
    }

    env.worker(set_up).await?;
    println!("{}", agent.result().await?);
    println!("calls of the model: {}", assistant.model_calls.load(Ordering::Relaxed));
    println!("calls of tools: {}", assistant.tool_calls.load(Ordering::Relaxed));
    Ok(())
}
