//! Approval-gated tool: an agent may read everything by itself, but it needs a person's approval
//! for what cannot be undone. Without an answer, the model is told so, and continues without it.

use abide::{
    approval::{Approvals, Decision, Request},
    prelude::*,
    testing::TestEnvironment,
};
use serde::{Deserialize, Serialize};

/// What the model wants to happen next.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Reply {
    ListFiles,
    DeleteFile(String),
    Answer(String),
}

impl Reply {
    /// Which tools need approval. Code decides this, never the model.
    fn needs_approval(&self) -> bool {
        matches!(self, Self::DeleteFile(_))
    }
}

/// Stands for a call of a model over the network. Its input is the conversation so far.
#[activity]
async fn model(said: Vec<String>) -> Reply {
    match &*said {
        [_] => Reply::ListFiles,
        [_, _] => Reply::DeleteFile("old.log".into()),
        [_, _, _] => Reply::DeleteFile("taxes.pdf".into()),
        [.., first, second] => Reply::Answer(format!("{first}; {second}")),
        [] => Reply::Answer("nothing was asked".into()),
    }
}

#[activity]
async fn use_tool(tool: Reply) -> String {
    match tool {
        Reply::ListFiles => "old.log, taxes.pdf".into(),
        Reply::DeleteFile(name) => format!("{name} is deleted"),
        Reply::Answer(text) => text,
    }
}

#[derive(Default)]
struct Agent {
    approvals: Approvals,
}

#[workflow(approvals = approvals)]
impl Agent {
    #[run]
    async fn run(ctx: &Context<Self>, task: String) -> abide::Result<String> {
        let mut said = vec![task];
        for turn in 1..=10 {
            let reply = ctx.activity(model, &said).await?;
            if let Reply::Answer(answer) = reply {
                return Ok(answer);
            }
            said.push(match Self::allowed(ctx, turn, &reply).await? {
                true => ctx.activity(use_tool, reply).await?,
                false => format!("{reply:?} was not allowed"),
            });
        }
        Err(Error::new("no answer after ten turns"))
    }

    /// Asks a person, if the tool needs approval. The person sees the call as it will be made, not
    /// the model's words about it.
    async fn allowed(ctx: &Context<Self>, turn: u32, tool: &Reply) -> abide::Result<bool> {
        if !tool.needs_approval() {
            return Ok(true);
        }
        let request = Request::new(format!("tool-{turn}"))
            .about(format!("{tool:?}"))
            .approvers(["ada"])
            .timeout(hours(8))
            .fallback(Decision::Reject);
        Ok(ctx.approval(request).await?.is_approved())
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<Agent>().activity(model).activity(use_tool)
    })
    .await?;
    let client = env.client();
    let agent = Agent::start(&client, "agent-1", "make some room").await?;

    // Ada finds the request in her inbox. Meanwhile the agent waits, for hours if necessary.
    env.skip(minutes(30)).await;
    for request in client.approvals(Default::default()).take(10).await? {
        println!("for ada: {}", request.subject);
        request.approve(&client, "ada").await?;
    }

    // The next request gets no answer.
    println!("{}", agent.result().await?);
    Ok(())
}
