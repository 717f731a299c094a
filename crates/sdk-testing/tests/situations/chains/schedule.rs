//! Runs that begin at certain times.

use abide::{ClientError, WorkflowHandle, client::HistoryEvent, list::RunStatus, prelude::*};
use abide_sdk_testing::TestEnvironment;

use super::{PAGE, chain};

/// Counts its runs by the result of the run before, and fails at will.
#[derive(Default)]
struct Report;

#[workflow]
impl Report {
    #[run]
    async fn run(ctx: &Context<Self>, plan: String) -> abide::Result<(u32, String)> {
        let (count, _) = ctx.last_result()?.unwrap_or_default();
        let failure = ctx.last_failure().map(|last| last.message().to_owned()).unwrap_or_default();
        match plan.as_str() {
            "slow" => ctx.sleep(minutes(90)).await?,
            "fail the second time" if ctx.started().ordinal == 2 => {
                return Err(Error::new("no data"));
            }
            _ => {}
        }
        Ok((count + 1, failure))
    }
}

/// A report of each full hour; environments begin at midnight.
async fn hourly(env: &TestEnvironment, plan: &str) -> WorkflowHandle<Report> {
    env.worker(|worker| worker.workflow::<Report>()).await.unwrap();
    // Not at midnight, which is a full hour itself.
    env.skip(minutes(10)).await;
    let start = env.client().start::<Report>("report", plan.to_owned());
    start.cron("0 * * * *").await.unwrap()
}

/// The minutes after the environment's midnight at which the code of each run began.
fn begun_at(chain: &[Vec<HistoryEvent>], midnight: Timestamp) -> Vec<u64> {
    let begun = |history: &Vec<HistoryEvent>| {
        let task = history.iter().find(|event| event.name() == "TaskStarted");
        task.map(|task| task.time().saturating_since(midnight).as_secs() / 60)
    };
    chain.iter().filter_map(begun).collect()
}

#[tokio::test]
async fn a_run_of_each_hour() {
    let env = TestEnvironment::new().await;
    let midnight = env.now();
    let report = hourly(&env, "quick").await;
    let first = report.describe().await.unwrap();
    assert_eq!(first.begins_at, Some(midnight.saturating_add(hours(1))));
    env.skip(minutes(200)).await;
    let runs = chain(&report).await;
    assert_eq!(begun_at(&runs, midnight), [60, 120, 180]);
    PAGE.check("a run of a schedule completes", &runs[0]);
    PAGE.check("the next run, before its time", &runs[3]);
    let abide::event::Fact::RunCompleted(third) = runs[2].last().unwrap().fact() else {
        panic!("the third run is not completed")
    };
    let third: (u32, String) = abide::payload::decode(&third.result).unwrap();
    assert_eq!(third, (3, String::new()), "each has the result of the one before");
}

#[tokio::test]
async fn a_run_of_a_schedule_fails() {
    let env = TestEnvironment::new().await;
    let report = hourly(&env, "fail the second time").await;
    env.skip(minutes(200)).await;
    let runs = chain(&report).await;
    PAGE.check("a run of a schedule fails", &runs[1]);
    let abide::event::Fact::RunCompleted(third) = runs[2].last().unwrap().fact() else {
        panic!("the third run is not completed")
    };
    let third: (u32, String) = abide::payload::decode(&third.result).unwrap();
    assert_eq!(third, (2, "no data".into()), "the last result is kept, and the failure is known");
}

#[tokio::test]
async fn runs_of_a_schedule_do_not_overlap() {
    let env = TestEnvironment::new().await;
    let midnight = env.now();
    let report = hourly(&env, "slow").await;
    env.skip(hours(6)).await;
    let runs = chain(&report).await;
    assert_eq!(begun_at(&runs, midnight), [60, 180, 300], "times that pass meanwhile are left out");
    PAGE.check("a run of a schedule takes longer than its period", &runs[0]);
}

#[tokio::test]
async fn a_schedule_ends_between_two_runs() {
    for situation in ["a schedule is cancelled between two runs", "… or ended there"] {
        let env = TestEnvironment::new().await;
        let report = hourly(&env, "quick").await;
        env.skip(minutes(100)).await;
        let cancelled = situation.contains("cancelled");
        match cancelled {
            true => report.cancel().await.unwrap(),
            false => report.terminate("enough").await.unwrap(),
        }
        match report.result().await {
            Err(ClientError::RunCancelled(_)) => assert!(cancelled),
            Err(ClientError::RunTerminated(_)) => assert!(!cancelled),
            other => panic!("{other:?}"),
        }
        let runs = chain(&report).await;
        assert_eq!(runs.len(), 2);
        PAGE.check(situation, &runs[1]);
    }
}

#[tokio::test]
async fn a_schedule_ends_during_a_run() {
    let env = TestEnvironment::new().await;
    let report = hourly(&env, "slow").await;
    env.skip(minutes(100)).await;
    report.cancel().await.unwrap();
    assert_eq!(report.result().await, Err(ClientError::RunCancelled(Vec::new())));
    PAGE.check("a schedule is cancelled during a run", &report.history().await.unwrap());
    assert_eq!(report.describe().await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn one_schedule_per_workflow_id() {
    let env = TestEnvironment::new().await;
    let report = hourly(&env, "quick").await;
    let again = env.client().start::<Report>("report", String::new()).cron("0 * * * *").await;
    assert!(matches!(again, Err(ClientError::AlreadyExists { .. })));
    PAGE.check("a schedule is started twice", &report.history().await.unwrap());
}

#[tokio::test]
async fn a_schedule_that_cannot_be_is_refused() {
    let env = TestEnvironment::new().await;
    for schedule in ["61 * * * *", "every hour", "", "0 0 30 2 *"] {
        let start = env.client().start::<Report>("report", String::new()).cron(schedule);
        let Err(ClientError::Invalid { field, .. }) = start.await else { panic!("{schedule}") };
        assert_eq!(field, "cron");
    }
    assert!(matches!(
        env.client().handle::<Report>("report").describe().await,
        Err(ClientError::NotFound)
    ));
}
