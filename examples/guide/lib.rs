//! The programs of the guide in `docs/`: a test of this crate compiles each Rust block of a page,
//! and runs it unless it says otherwise. One module per page.

/// Declares a module whose documentation is the page.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = include_str!(concat!("../../docs/", $file))]
        pub mod $name {}
    };
}

page!(activities, "activities.md");
page!(approvals, "approvals.md");
page!(async_completion, "async-completion.md");
page!(cancellation, "cancellation.md");
page!(chains, "chains.md");
page!(changing_code, "changing-code.md");
page!(changing_course, "changing-course.md");
page!(children, "children.md");
page!(conditions, "conditions.md");
page!(crate_readme, "../crates/abide/README.md");
page!(data, "data.md");
page!(embedded, "embedded.md");
page!(getting_started, "getting-started.md");
page!(local_activities, "local-activities.md");
page!(observability, "observability.md");
page!(parallel, "parallel.md");
page!(performance, "performance.md");
page!(readme, "../README.md");
page!(sagas, "sagas.md");
page!(signals_queries_updates, "signals-queries-updates.md");
page!(sleeping_and_deadlines, "sleeping-and-deadlines.md");
page!(testing, "testing.md");
page!(two_programs, "two-programs.md");
page!(updatable_timers, "updatable-timers.md");
page!(updates, "updates.md");
page!(searching, "searching.md");
page!(schedules, "schedules.md");
page!(waiting, "waiting.md");
page!(workers_and_clients, "workers-and-clients.md");
page!(workflows, "workflows.md");
