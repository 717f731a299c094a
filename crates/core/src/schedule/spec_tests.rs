//! Times of specifications: zones, changes of the clock, ends of months and years, exclusions.

use std::time::Duration;

use super::{Interval, Search, Spec, cron};
use crate::time::Timestamp;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next times of a specification after a time, as text.
fn times(spec: &Spec, after: &str, count: usize) -> Vec<String> {
    let times = spec.times().unwrap().some_after(at(after), count);
    times.iter().map(ToString::to_string).collect()
}

fn calendar(text: &str, zone: &str) -> Spec {
    let calendars = vec![text.parse().unwrap()];
    Spec { calendars, time_zone: zone.into(), ..Spec::default() }
}

fn problem(spec: &Spec) -> String {
    spec.check(Timestamp::EPOCH).unwrap_err().to_string()
}

#[test]
fn a_time_that_the_clock_skips_comes_when_it_is_put_forward() {
    // Clocks go from 02:00 to 03:00 on 29 March 2026.
    let berlin = calendar("hour=2 minute=30", "Europe/Berlin");
    assert_eq!(
        times(&berlin, "2026-03-28T00:00:00Z", 3),
        ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    // Several skipped times are one moment, also together with one that exists.
    let several = calendar("hour=2,3 minute=0,30", "Europe/Berlin");
    assert_eq!(
        times(&several, "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"]
    );
    // In Samoa, 30 December 2011 did not exist at all.
    let samoa = calendar("hour=9", "Pacific/Apia");
    assert_eq!(
        times(&samoa, "2011-12-29T00:00:00Z", 3),
        ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"]
    );
}

#[test]
fn a_time_that_the_clock_repeats_comes_once() {
    // Clocks go from 03:00 back to 02:00 on 25 October 2026.
    let berlin = calendar("hour=2 minute=30", "Europe/Berlin");
    assert_eq!(
        times(&berlin, "2026-10-24T12:00:00Z", 2),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
    // Asked between the two, it has come.
    assert_eq!(times(&berlin, "2026-10-25T01:00:00Z", 1), ["2026-10-26T01:30:00Z"]);
    let new_york = calendar("hour=1", "America/New_York");
    assert_eq!(
        times(&new_york, "2026-11-01T00:00:00Z", 2),
        ["2026-11-01T05:00:00Z", "2026-11-02T06:00:00Z"]
    );
}

#[test]
fn what_comes_every_hour_follows_the_clock_on_the_wall() {
    let half_hours = calendar("hour=* minute=0,30", "Europe/Berlin");
    // The skipped hour does not come.
    assert_eq!(
        times(&half_hours, "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]
    );
    // The repeated hour comes twice.
    assert_eq!(
        times(&half_hours, "2026-10-24T23:30:00Z", 5),
        [
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:00:00Z"
        ]
    );
    // A half hour's change: Lord Howe goes from 02:00 back to 01:30.
    let quarters = calendar("hour=* minute=45", "Australia/Lord_Howe");
    assert_eq!(
        times(&quarters, "2026-04-04T13:50:00Z", 4),
        [
            "2026-04-04T14:45:00Z",
            "2026-04-04T15:15:00Z",
            "2026-04-04T16:15:00Z",
            "2026-04-04T17:15:00Z"
        ]
    );
    // The next match is beyond many changes.
    let leap = calendar("hour=* day=29 month=2", "Europe/Berlin");
    assert_eq!(
        times(&leap, "2026-06-01T00:00:00Z", 2),
        ["2028-02-28T23:00:00Z", "2028-02-29T00:00:00Z"]
    );
}

#[test]
fn leap_days_and_ends_of_months_and_years() {
    let leap = calendar("day=29 month=FEB", "");
    assert_eq!(
        times(&leap, "2096-01-01T00:00:00Z", 2),
        ["2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"]
    );
    // After 2088 the next leap day on a Sunday is 40 years later, because 2100 has none.
    let sunday = calendar("day=29 month=2 weekday=SUN", "");
    assert_eq!(
        times(&sunday, "2076-01-01T00:00:00Z", 2),
        ["2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z"]
    );
    let last = calendar("day=L", "");
    assert_eq!(
        times(&last, "2027-12-31T00:00:00Z", 3),
        ["2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"]
    );
    let before_last = calendar("day=L-1 month=2 hour=23 minute=59 second=59", "");
    assert_eq!(times(&before_last, "2027-01-01T00:00:00Z", 1), ["2027-02-27T23:59:59Z"]);
    let on_31st = calendar("day=31", "");
    assert_eq!(
        times(&on_31st, "2026-03-31T00:00:00Z", 2),
        ["2026-05-31T00:00:00Z", "2026-07-31T00:00:00Z"]
    );
    let new_year = calendar("second=59,0 minute=59,0 hour=23,0 day=31,1 month=12,1", "");
    assert_eq!(times(&new_year, "2026-12-31T23:59:58Z", 2)[0], "2026-12-31T23:59:59Z");
    assert_eq!(times(&new_year, "2026-12-31T23:59:59Z", 1), ["2027-01-01T00:00:00Z"]);
    let local = calendar("month=1 day=1", "Asia/Tokyo");
    assert_eq!(times(&local, "2026-06-01T00:00:00Z", 1), ["2026-12-31T15:00:00Z"]);
    let some_years = calendar("month=1 day=1 year=2030-2040/5", "");
    assert_eq!(
        times(&some_years, "2026-06-01T00:00:00Z", 9),
        ["2030-01-01T00:00:00Z", "2035-01-01T00:00:00Z", "2040-01-01T00:00:00Z"]
    );
}

#[test]
fn weekdays_of_a_month() {
    let second_monday = calendar("weekday=MON#2 hour=8", "");
    assert_eq!(times(&second_monday, "2026-06-01T00:00:00Z", 1), ["2026-06-08T08:00:00Z"]);
    for last_friday in ["weekday=FRI#L", "weekday=5L"] {
        let last_friday = calendar(last_friday, "");
        assert_eq!(times(&last_friday, "2026-05-01T00:00:00Z", 1), ["2026-05-29T00:00:00Z"]);
    }
    let fifth = calendar("weekday=SUN#5", "");
    assert_eq!(times(&fifth, "2026-06-01T00:00:00Z", 1), ["2026-08-30T00:00:00Z"]);
    // Of a calendar, day and weekday must both match.
    let friday_13th = calendar("day=13 weekday=FRI", "");
    assert_eq!(times(&friday_13th, "2026-04-01T00:00:00Z", 1), ["2026-11-13T00:00:00Z"]);
}

#[test]
fn intervals_count_from_the_epoch_and_their_offset() {
    let (every, offset) = (Duration::from_secs(3600), Duration::from_secs(19 * 60));
    let spec =
        Spec { intervals: vec![Interval { every, offset: Some(offset) }], ..Spec::default() };
    assert_eq!(
        times(&spec, "2026-06-01T00:19:00Z", 2),
        ["2026-06-01T01:19:00Z", "2026-06-01T02:19:00Z"]
    );
    assert_eq!(times(&spec, "2026-06-01T00:18:59.5Z", 1), ["2026-06-01T00:19:00Z"]);
    assert_eq!(times(&spec, "1969-12-31T23:00:00Z", 1), ["1969-12-31T23:19:00Z"]);
}

#[test]
fn rules_are_united_and_equal_times_come_once() {
    let spec = Spec {
        cron: vec!["0 9 * * MON".into(), "CRON_TZ=America/New_York 0 9 * * MON".into()],
        calendars: vec!["hour=9 day=1".parse().unwrap()],
        time_zone: "Europe/Berlin".into(),
        ..Spec::default()
    };
    assert_eq!(
        times(&spec, "2026-06-01T00:00:00Z", 3),
        ["2026-06-01T07:00:00Z", "2026-06-01T13:00:00Z", "2026-06-08T07:00:00Z"]
    );
}

#[test]
fn start_and_end_are_within() {
    let spec = Spec {
        start_at: Some(at("2026-06-02T00:00:00Z")),
        end_at: Some(at("2026-06-04T00:00:00Z")),
        ..calendar("hour=0", "")
    };
    let within = ["2026-06-02T00:00:00Z", "2026-06-03T00:00:00Z", "2026-06-04T00:00:00Z"];
    assert_eq!(times(&spec, "2026-01-01T00:00:00Z", 9), within);
    let past = spec.check(at("2026-06-04T00:00:00Z")).unwrap_err().to_string();
    assert!(past.starts_with("schedule matches no time from now on"), "{past}");
}

#[test]
fn exclusions_leave_out_hours_and_days() {
    let spec = Spec {
        exclusions: vec![
            "hour=9 weekday=FRI".parse().unwrap(),
            "month=12 day=24-26".parse().unwrap(),
            "month=12 day=31".parse().unwrap(),
        ],
        ..calendar("hour=9,17", "Europe/Berlin")
    };
    assert_eq!(
        times(&spec, "2026-12-23T12:00:00Z", 4),
        [
            "2026-12-23T16:00:00Z",
            "2026-12-27T08:00:00Z",
            "2026-12-27T16:00:00Z",
            "2026-12-28T08:00:00Z"
        ]
    );
    assert_eq!(times(&spec, "2027-01-08T00:00:00Z", 1), ["2027-01-08T16:00:00Z"]);
}

#[test]
fn a_search_is_bounded_and_loses_nothing() {
    let every_second = |exclusion: &str| Spec {
        exclusions: vec![exclusion.parse().unwrap()],
        ..calendar("second=* minute=* hour=*", "")
    };
    // Whole days are skipped at once.
    let a_year = every_second("year=2026");
    assert_eq!(times(&a_year, "2026-01-01T00:00:00Z", 1), ["2027-01-01T00:00:00Z"]);
    // Else the search goes on from where it ended.
    let mut most = every_second("minute=0-58").times().unwrap();
    let mut after = at("2026-01-01T00:00:00Z");
    let mut searches = 0;
    let found = loop {
        match most.next_after(after) {
            Search::Found(at) => break at,
            Search::NoneUntil(until) => after = until,
            Search::Never => panic!("the last minute of an hour comes"),
        }
        searches += 1;
    };
    assert_eq!((found, searches), (at("2026-01-01T00:59:00Z"), 1));
}

#[test]
fn what_was_found_is_not_searched_again() {
    let spec = Spec {
        cron: vec!["* * * * *".into()],
        calendars: vec!["day=29 month=2 weekday=SUN".parse().unwrap(); 20],
        ..Spec::default()
    };
    let mut times = spec.times().unwrap();
    let mut after = at("2088-03-01T00:00:00Z");
    times.next_after(after);
    let first_search = times.steps();
    assert!(first_search > 20 * 39 * 365, "40 years for each calendar: {first_search}");
    for _ in 0..100 {
        let Search::Found(next) = times.next_after(after) else { panic!("each minute comes") };
        after = next;
    }
    assert!(times.steps() < first_search + 100 * 21, "only the minutes: {}", times.steps());
    // An earlier time is searched again.
    let before = times.next_after(at("2088-02-28T23:59:30Z"));
    assert_eq!(before, Search::Found(at("2088-02-29T00:00:00Z")));
}

#[test]
fn years_are_found_directly() {
    let years = calendar("month=1 day=1 year=9000-9999/500,1980-2020/10", "");
    assert_eq!(
        times(&years, "2015-06-01T00:00:00Z", 9),
        ["2020-01-01T00:00:00Z", "9000-01-01T00:00:00Z", "9500-01-01T00:00:00Z"]
    );
}

#[test]
fn jitter_follows_from_schedule_and_time_and_stays_before_the_next_time() {
    let jitter = Some(Duration::from_secs(3600));
    let spec = Spec { cron: vec!["*/10 * * * *".into()], jitter, ..Spec::default() };
    let mut times = spec.times().unwrap();
    let nominal = times.some_after(at("2026-06-01T00:00:00Z"), 100);
    let delays: Vec<_> =
        nominal.iter().map(|at| times.delayed("s", *at).saturating_since(*at)).collect();
    assert!(delays.iter().all(|delay| *delay < Duration::from_secs(600)));
    assert!(delays.iter().filter(|delay| **delay > Duration::from_secs(300)).count() > 30);
    let again: Vec<_> =
        nominal.iter().map(|at| times.delayed("s", *at).saturating_since(*at)).collect();
    assert_eq!(delays, again);
    assert_ne!(times.delayed("s", nominal[0]), times.delayed("other", nominal[0]));
    let mut none = Spec { jitter: None, ..spec }.times().unwrap();
    assert_eq!(none.delayed("s", nominal[0]), nominal[0]);
}

#[test]
fn a_refusal_names_field_bound_and_what_helps() {
    let cron = |text: &str| Spec { cron: vec![text.into()], ..Spec::default() };
    assert_eq!(
        problem(&cron("0 25 * * *")),
        "cron \"0 25 * * *\" is not a cron expression: hour 25 is not in 0 to 23"
    );
    assert_eq!(problem(&cron(&"*".repeat(1001))), "cron has 1001 bytes, the limit is 1000");
    let hour = problem(&calendar("hour=24 weekday=MON", ""));
    assert_eq!(hour, "calendar \"weekday=MON hour=24\": hour 24 is not in 0 to 23");
    let never = problem(&calendar("day=30 month=2", ""));
    assert_eq!(never, "calendar \"month=2 day=30\" never matches a time");
    let beside = Spec { cron: vec!["@daily".into(), "0 0 31 4 *".into()], ..Spec::default() };
    assert_eq!(problem(&beside), "cron \"0 0 31 4 *\" never matches a time");
    let nearest = problem(&calendar("day=15W", ""));
    assert!(nearest.ends_with("name the weekday, as in MON#1"), "{nearest}");
    let zone = problem(&calendar("hour=9", "Europe/Berln"));
    assert!(zone.starts_with("time zone \"Europe/Berln\" is no time zone; use a name"), "{zone}");
    let interval = |every, offset| {
        let (every, offset) = (Duration::from_millis(every), Duration::from_millis(offset));
        Spec { intervals: vec![Interval { every, offset: Some(offset) }], ..Spec::default() }
    };
    let fraction = "interval is 1.5s; it takes one or more whole seconds";
    assert_eq!(problem(&interval(1500, 0)), fraction);
    assert_eq!(problem(&interval(0, 0)), "interval is 0ns; it takes one or more whole seconds");
    let offset = "interval has the offset 2s, which is not a whole number of seconds below 2s";
    assert_eq!(problem(&interval(2000, 2000)), offset);
    let many = Spec { cron: vec!["@daily".into(); 21], ..Spec::default() };
    assert_eq!(problem(&many), "cron is given 21 times, the limit is 20");
    let jitter = Spec { jitter: Some(Duration::from_secs(90_000)), ..calendar("hour=1", "") };
    assert_eq!(problem(&jitter), "jitter is 90000s, the limit is 86400s");
    let (start_at, end_at) = (at("2026-02-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    let ends = Spec { start_at: Some(start_at), end_at: Some(end_at), ..calendar("hour=1", "") };
    let before = "end 2026-01-01T00:00:00Z is before the start 2026-02-01T00:00:00Z";
    assert_eq!(problem(&ends), before);
    let field = "dayofweek=1".parse::<super::Calendar>().unwrap_err();
    assert!(field.starts_with("there is no field \"dayofweek\"; there are second,"), "{field}");
    assert!("9".parse::<super::Calendar>().unwrap_err().contains("hour=9 weekday=MON-FRI"));
}

#[test]
fn a_specification_without_rules_is_never_due() {
    let empty = Spec::default();
    assert_eq!(empty.check(Timestamp::EPOCH), Ok(()));
    assert_eq!(empty.times().unwrap().next_after(Timestamp::EPOCH), Search::Never);
}

#[test]
fn the_end_of_time_is_no_panic() {
    for expression in ["* * * * *", "0 9 * * *", "CRON_TZ=Europe/Berlin 0 9 * * *", "@every 1s"] {
        for after in [Timestamp::NEVER, Timestamp::LATEST, at("9999-12-31T00:00:00Z")] {
            cron::next_after(expression, after);
        }
        assert!(cron::next_after(expression, at("0001-01-01T00:00:00Z")).is_some());
    }
}

proptest::proptest! {
    /// The next time is what a search second by second finds.
    #[test]
    fn the_next_time_is_the_first_that_matches(
        seconds in 1_700_000_000_i64..1_900_000_000,
        minute in 0_u32..60, hour in proptest::option::of(0_u32..24), weekday in 0_u32..7,
    ) {
        let hour_text = hour.map_or("*".to_owned(), |hour| hour.to_string());
        let spec = calendar(&format!("minute={minute} hour={hour_text} weekday={weekday}"), "");
        let after = Timestamp::new(seconds, 0).unwrap();
        let found = spec.times().unwrap().some_after(after, 1)[0];
        let matches = |at: i64| {
            let (day, of_day) = (at.div_euclid(86_400), at.rem_euclid(86_400));
            of_day % 60 == 0
                && of_day / 60 % 60 == i64::from(minute)
                && hour.is_none_or(|hour| of_day / 3600 == i64::from(hour))
                && (day + 4).rem_euclid(7) == i64::from(weekday)
        };
        let begin = (seconds + 60).div_euclid(60) * 60;
        let first = (begin..).step_by(60).find(|at| matches(*at));
        proptest::prop_assert_eq!(Some(found.seconds()), first);
    }
}
