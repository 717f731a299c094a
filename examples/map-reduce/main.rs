//! Map-reduce tree: a large piece of work is halved until a part is small enough, and the results
//! are combined on the way back. No workflow of the tree has more than two children, so no history
//! is long, however large the whole is.

use std::collections::BTreeMap;

use abide::{Workflow as _, embedded::Embedded, list::RunFilter, prelude::*};

/// Number of pages that one activity counts.
const LEAF: usize = 3;

/// Number of occurrences of each word.
type Count = BTreeMap<String, u32>;

/// Map: counts the words of a few pages. In production it would get names of files, not the text.
#[activity]
async fn count_words(pages: Vec<String>) -> Count {
    let mut count = Count::new();
    for word in pages.iter().flat_map(|page| page.split_whitespace()) {
        *count.entry(word.to_owned()).or_default() += 1;
    }
    count
}

#[derive(Default)]
struct WordCount;

#[workflow]
impl WordCount {
    #[run]
    async fn run(ctx: &Context<Self>, pages: Vec<String>) -> abide::Result<Count> {
        if pages.len() <= LEAF {
            return ctx.activity(count_words, pages).await;
        }
        let (left, right) = pages.split_at(pages.len() / 2);
        let half = |name: &str, pages: &[String]| {
            let id = format!("{}/{name}", ctx.workflow_id());
            Self::child(ctx, id, pages.to_vec())
        };
        let (left, right) = join!(half("left", left), half("right", right));
        Ok(merge(left?, right?))
    }
}

/// Reduce: the order of the parts does not matter.
fn merge(mut count: Count, other: Count) -> Count {
    for (word, times) in other {
        *count.entry(word).or_default() += times;
    }
    count
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    engine.worker().workflow::<WordCount>().activity(count_words).spawn();
    let client = engine.client();

    let pages = (1..=20).map(|page| match page % 2 {
        0 => "to be or not to be".to_owned(),
        _ => "to wait is to be".to_owned(),
    });
    let count = WordCount::start(&client, "book", pages.collect()).await?;
    for (word, times) in count.result().await? {
        println!("{word}: {times}");
    }

    let tree = RunFilter::new().workflow_type(WordCount::NAME);
    println!("by a tree of {} runs", client.count_runs(tree).await?);
    Ok(())
}
