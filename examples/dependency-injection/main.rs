//! Dependency injection: activities share resources that are created once, such as a connection
//! pool. They get them when the worker is set up, so a test can provide others.

use std::sync::{Arc, Mutex, PoisonError};

use abide::{Worker, embedded::Embedded, prelude::*};

/// What the activities need, as a trait, so that there can be several implementations.
trait Mailer: Send + Sync {
    fn send(&self, to: &str, text: &str) -> Result<(), String>;
}

/// The real one would hold a connection.
struct Smtp {
    server: String,
}

impl Mailer for Smtp {
    fn send(&self, to: &str, text: &str) -> Result<(), String> {
        println!("{}: to {to}: {text}", self.server);
        Ok(())
    }
}

/// For tests: keeps the messages that it was given.
#[derive(Default)]
struct Outbox(Mutex<Vec<String>>);

impl Mailer for Outbox {
    fn send(&self, to: &str, _text: &str) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(to.to_owned());
        Ok(())
    }
}

/// The activities of this program. The struct is created once per worker; each attempt gets
/// `&self`.
struct Notifications {
    mailer: Arc<dyn Mailer>,
    sender: String,
}

#[activities]
impl Notifications {
    #[activity]
    async fn welcome(&self, name: String) -> Result<(), ActivityError> {
        let text = format!("Welcome! Yours, {}", self.sender);
        self.mailer.send(&name, &text).map_err(ActivityError::new)
    }
}

/// The workflow names the activity and knows nothing of its dependencies.
#[workflow]
async fn sign_up(ctx: &Context, name: String) -> abide::Result<()> {
    ctx.activity(Notifications::welcome, name).await
}

/// The only place where the parts are put together.
fn set_up(worker: Worker, mailer: Arc<dyn Mailer>) -> Worker {
    worker.workflow::<sign_up>().activities(Notifications { mailer, sender: "the office".into() })
}

async fn run(mailer: Arc<dyn Mailer>, name: &str) -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    set_up(engine.worker(), mailer).spawn();
    sign_up::start(&engine.client(), "sign-up-1", name).await?.result().await?;
    Ok(())
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    run(Arc::new(Smtp { server: "mail.example.org".into() }), "Ada").await?;

    let outbox = Arc::new(Outbox::default());
    run(Arc::clone(&outbox) as Arc<dyn Mailer>, "Bob").await?;
    let kept = outbox.0.lock().unwrap_or_else(PoisonError::into_inner);
    println!("in the test, mail went to {}", kept.join(", "));
    Ok(())
}
