//! Schedules through the client: each starts workflows at its times, and clients see and change it.

extern crate abide_sdk as abide;

use abide::{
    RetryPolicy, Timestamp,
    client::{ClientError, RefusalKind, ScheduleHandle},
    list::{RunFilter, WaitFilter, WaitKind},
    prelude::*,
    schedule::{Overlap, Schedule, ScheduledOutcome, Times},
    search::SearchAttribute,
};
use abide_sdk_testing::TestEnvironment;

const REGION: SearchAttribute<String> = SearchAttribute::keyword("Region");

/// Takes so many minutes.
#[workflow]
async fn job(ctx: &Context, length: u64) -> abide::Result<u64> {
    ctx.sleep(minutes(length)).await?;
    Ok(length)
}

#[workflow]
async fn broken(_ctx: &Context) -> abide::Result<()> {
    Err(Error::new("no paper"))
}

async fn environment() -> TestEnvironment {
    TestEnvironment::with(|worker| worker.workflow::<job>().workflow::<broken>())
        .await
        .expect("the worker connects")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// The nominal times of the last starts.
async fn starts(schedule: &ScheduleHandle) -> Vec<String> {
    let described = schedule.describe().await.expect("the schedule is there");
    described.recent.iter().map(|run| run.nominal.to_string()).collect()
}

#[tokio::test]
async fn it_starts_by_the_clock_of_its_zone_in_winter_and_summer() {
    let env = environment().await;
    let office = Times::cron("0 9 * * *").time_zone("Europe/Berlin");
    let schedule = Schedule::of::<job>(60).times(office.start_at(at("2025-03-29T00:00:00Z")));
    let schedule = env.client().create_schedule("office", schedule).await.unwrap();
    let next = schedule.describe().await.unwrap().next_times;
    assert_eq!(next[0], at("2025-03-29T08:00:00Z"));
    // The clocks are put forward on the 30th.
    assert_eq!(next[1], at("2025-03-30T07:00:00Z"));
    env.skip(days(90)).await;
    let described = schedule.describe().await.unwrap();
    assert_eq!((described.starts, described.skipped, described.missed), (3, 0, 0));
    let last = described.recent.last().unwrap();
    assert_eq!(last.workflow.as_str(), "office-2025-03-31T07:00:00Z");
    assert_eq!(last.started_at, last.nominal, "it starts exactly on time");
    assert_eq!(last.outcome, Some(ScheduledOutcome::Completed));
    let run = env.client().handle::<job>(last.workflow.clone()).describe().await.unwrap();
    assert_eq!(run.memo::<String>("schedule_id").unwrap().unwrap(), "office");
    assert_eq!(run.memo::<Timestamp>("scheduled_at").unwrap().unwrap(), last.nominal);
}

#[tokio::test]
async fn starts_during_an_open_run_are_skipped_buffered_or_not() {
    let all = ["02", "04", "06", "08", "10", "12", "14", "16", "18", "20"];
    let all: Vec<_> = all.iter().map(|hour| format!("{hour}:00")).collect();
    let two = |second: &str| vec!["02:00".to_owned(), second.to_owned()];
    for (overlap, expected, skipped, waiting) in [
        (Overlap::Skip, two("12:00"), 8, 0),
        (Overlap::BufferOne, two("11:30"), 7, 1),
        (Overlap::BufferAll, two("11:30"), 0, 8),
        (Overlap::AllowAll, all, 0, 0),
    ] {
        let env = environment().await;
        let times = Times::every(hours(2));
        let schedule = Schedule::of::<job>(570).times(times).overlap(overlap);
        let schedule = env.client().create_schedule("jobs", schedule).await.unwrap();
        env.skip(hours(20)).await;
        let described = schedule.describe().await.unwrap();
        let started =
            described.recent.iter().map(|run| run.started_at.to_string()[11..16].to_owned());
        assert_eq!(started.collect::<Vec<_>>(), expected, "{overlap:?}");
        assert_eq!((described.skipped, described.waiting), (skipped, waiting), "{overlap:?}");
    }
}

#[tokio::test]
async fn a_client_creates_changes_lists_and_deletes() {
    let env = environment().await;
    let client = env.client();
    client.create_search_attribute(REGION).await.unwrap();
    let schedule = Schedule::of::<job>(60)
        .times(Times::cron("@daily").except("weekday=SAT-SUN"))
        .workflow_id("report")
        .memo("team", &"sales".to_owned())
        .search_attribute(REGION.set("eu"))
        .run_timeout(hours(2))
        .retry(RetryPolicy::once());
    let created = client.create_schedule("daily", schedule.clone()).paused("not yet").key("one");
    let daily = created.await.unwrap();
    // The answer may have been lost, so the client asks again.
    client.create_schedule("daily", schedule.clone()).paused("not yet").key("one").await.unwrap();
    let taken = client.create_schedule("daily", schedule.clone()).await.unwrap_err();
    assert!(matches!(taken, ClientError::AlreadyExists { .. }), "{taken}");
    let other = client.create_schedule("daily", schedule.remaining(7)).key("one").await;
    let Err(ClientError::Refused(refusal)) = other else { panic!("{other:?}") };
    assert_eq!(refusal.kind(), RefusalKind::KeyReused);

    let listed = client.schedules().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id.as_str(), listed[0].paused), ("daily", true));
    assert_eq!((listed[0].summary.as_str(), listed[0].note.as_str()), ("@daily", "not yet"));
    env.skip(days(2)).await;
    assert_eq!(starts(&daily).await, Vec::<String>::new());

    daily.unpause("go").await.unwrap();
    env.skip(days(7)).await;
    // 2025-01-04 is a Saturday.
    let days_of = |starts: Vec<String>| -> Vec<String> {
        starts.into_iter().map(|start| start[8..10].to_owned()).collect()
    };
    assert_eq!(days_of(starts(&daily).await), ["06", "07", "08", "09", "10"]);
    let found = client.runs(RunFilter::new().query("Region = 'eu'")).await.unwrap();
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|row| row.workflow.as_str().starts_with("report-")));

    daily.update(|schedule| schedule.times(Times::cron("0 12 * * *"))).await.unwrap();
    env.skip(days(1)).await;
    assert_eq!(starts(&daily).await.last().unwrap(), "2025-01-10T12:00:00Z");
    daily.trigger().await.unwrap();
    assert_eq!(starts(&daily).await.last().unwrap(), "2025-01-11T00:00:00Z");
    env.skip(hours(1)).await;
    let (from, to) = (at("2025-01-01T00:00:00Z"), at("2025-01-03T23:00:00Z"));
    daily.backfill(from, to).overlap(Overlap::AllowAll).await.unwrap();
    assert_eq!(days_of(starts(&daily).await)[7..], ["01", "02", "03"]);

    daily.delete().await.unwrap();
    assert_eq!(daily.describe().await, Err(ClientError::NotFound));
    assert_eq!(daily.trigger().await, Err(ClientError::NotFound));
    assert!(client.schedules().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_failed_run_pauses_it() {
    let env = environment().await;
    let schedule = Schedule::of::<broken>(())
        .times(Times::every(hours(1)))
        .pause_on_failure(true)
        .retry(RetryPolicy::once());
    let schedule = env.client().create_schedule("printer", schedule).await.unwrap();
    env.skip(days(1)).await;
    let described = schedule.describe().await.unwrap();
    assert_eq!(described.starts, 1);
    assert!(described.paused && described.note.contains("no paper"), "{}", described.note);
    let outcome = described.recent[0].outcome.clone();
    assert!(matches!(outcome, Some(ScheduledOutcome::Failed(message)) if message == "no paper"));
}

#[tokio::test]
async fn it_ends_after_its_starts_and_is_kept_for_a_week() {
    let env = environment().await;
    let schedule = Schedule::of::<job>(60).times(Times::every(hours(2))).remaining(2);
    let schedule = env.client().create_schedule("twice", schedule).trigger().await.unwrap();
    env.skip(days(7)).await;
    let described = schedule.describe().await.unwrap();
    assert_eq!((described.starts, described.remaining), (3, Some(0)), "a trigger does not count");
    env.skip(days(1)).await;
    assert_eq!(schedule.describe().await, Err(ClientError::NotFound));
}

#[tokio::test]
async fn schedules_are_waits_but_no_ordinary_runs() {
    let env = environment().await;
    let client = env.client();
    let schedule = Schedule::of::<job>(60).times(Times::every(hours(2)));
    client.create_schedule("jobs", schedule).await.unwrap();
    env.skip(hours(5)).await;
    let ids = |rows: Vec<abide::list::RunRow>| -> Vec<String> {
        rows.into_iter().map(|row| row.workflow.to_string()).collect()
    };
    let jobs = ["jobs-2025-01-01T04:00:00Z", "jobs-2025-01-01T02:00:00Z"];
    assert_eq!(ids(client.runs(RunFilter::new()).await.unwrap()), jobs);
    assert_eq!(client.count_runs(RunFilter::new()).await.unwrap(), 2);
    let closed = RunFilter::new().query("ExecutionStatus = 'Running'");
    assert_eq!(client.count_runs(closed).await.unwrap(), 0);
    let asked = RunFilter::new().query("WorkflowType = 'abide.schedule'");
    assert_eq!(ids(client.runs(asked).await.unwrap()), ["abide.schedule:jobs"]);
    let waits = client.waits(WaitFilter::new().kind(WaitKind::Schedule)).await.unwrap();
    assert_eq!(waits.len(), 1);
    assert_eq!(
        (waits[0].name.as_str(), waits[0].until),
        ("jobs", Some(at("2025-01-01T06:00:00Z")))
    );
}

#[tokio::test]
async fn a_mistake_is_told_with_its_field_before_anything_exists() {
    let env = environment().await;
    let client = env.client();
    let told = async |times: Times| {
        let schedule = Schedule::of::<job>(60).times(times);
        let error = client.create_schedule("bad", schedule).await.unwrap_err();
        assert_eq!(client.schedule("bad").describe().await, Err(ClientError::NotFound));
        error.to_string()
    };
    let hour = "cron \"0 24 * * *\" is not a cron expression: hour 24 is not in 0 to 23";
    assert_eq!(told(Times::cron("0 24 * * *")).await, hour);
    assert!(told(Times::calendar("hours=9")).await.starts_with("calendar there is no field"));
    assert!(told(Times::every(minutes(0))).await.starts_with("interval is 0ns; it takes"));
    assert!(told(Times::calendar("month=2 day=30")).await.contains("never matches a time"));
    let long = Times::every(hours(1)).jitter(days(2));
    assert!(told(long).await.starts_with("jitter"));
}
