//! A workflow that sleeps, and answers queries and updates meanwhile.

use std::time::Duration;

use abide::prelude::*;

/// Returns a text after some seconds.
#[derive(Default)]
pub(crate) struct Reminder {
    text: String,
}

#[workflow(name = "reminder")]
impl Reminder {
    #[run]
    async fn run(ctx: &Context<Self>, text: String, after_seconds: u64) -> abide::Result<String> {
        ctx.write(|state| state.text = text);
        ctx.sleep(Duration::from_secs(after_seconds)).await?;
        Ok(ctx.read(|state| format!("Remember: {}", state.text)))
    }

    #[query]
    fn text(&self) -> String {
        self.text.clone()
    }

    /// Changes the text and gives the one before.
    #[update(validate = check_text)]
    fn set_text(&mut self, text: String) -> String {
        std::mem::replace(&mut self.text, text)
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        if text.is_empty() { Err("there is nothing to remember".into()) } else { Ok(()) }
    }
}
