//! Cancel a turn in flight: while the model still works on an answer, the user sends another
//! message. The answer is no longer wanted, so the call is cancelled, and the next call has both
//! messages.

use std::time::Duration;

use abide::{prelude::*, testing::TestEnvironment};
use tokio::sync::mpsc;

/// Stands for a model over the network, which takes long for long questions. It reports what it
/// does, so that the program knows when to interrupt.
struct Model {
    news: mpsc::UnboundedSender<String>,
}

#[activities]
impl Model {
    #[activity]
    async fn answer(
        &self,
        ctx: ActivityContext,
        said: Vec<String>,
    ) -> Result<String, ActivityError> {
        let question = said.join(", ");
        self.tell(format!("thinks about: {question}"));
        while question.contains("everything") && !question.contains("short") {
            // A running attempt learns from its heartbeats that it was cancelled.
            ctx.heartbeat(&())?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                () = ctx.cancelled() => {
                    self.tell("stops thinking".into());
                    return Err(ActivityError::cancelled());
                }
            }
        }
        Ok(format!("the answer to \"{question}\" is 42"))
    }
}

impl Model {
    fn tell(&self, news: String) {
        // The receiver is gone when the program ends.
        let _ended = self.news.send(news);
    }
}

#[derive(Default)]
struct Chat;

#[workflow]
impl Chat {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let mut said = vec![ctx.receive(Self::SAY).await?];
        loop {
            let answer = ctx.activity(Model::answer, &said);
            let answer = answer.start_to_close(minutes(5)).heartbeat_timeout(seconds(1));
            // The first one wins. The loser is dropped, and dropping a call cancels it. A message
            // that arrives together with the answer wins, because its branch comes first.
            select! {
                more = ctx.receive(Self::SAY) => said.push(more?),
                answer = answer => return answer,
            }
        }
    }

    #[signal]
    fn say(text: String);
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let (news, mut told) = mpsc::unbounded_channel();
    let env = TestEnvironment::with(|worker| worker.workflow::<Chat>().activities(Model { news }))
        .await?;

    let chat = Chat::start(&env.client(), "chat-1").await?;
    chat.say("tell me everything").await?;
    println!("{}", told.recv().await.unwrap_or_default());

    chat.say("but short").await?;
    // Two things happen: the old call learns that it was cancelled, and the new one starts.
    let mut both = [told.recv().await.unwrap_or_default(), told.recv().await.unwrap_or_default()];
    both.sort();
    println!("{}", both.join("\n"));
    println!("{}", chat.result().await?);
    Ok(())
}
