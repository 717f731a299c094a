//! The figures in the text format of Prometheus.

use std::fmt::{self, Write};

use super::{HistogramSnapshot, MetricsSnapshot};

impl MetricsSnapshot {
    /// The figures in the text format of Prometheus, version 0.0.4. Serve it where your other metrics
    /// are.
    pub fn to_prometheus(&self) -> String {
        let mut text = Text { queue: escaped(&self.queue), text: String::new() };
        // Writing to a string cannot fail.
        let _written = self.write(&mut text);
        text.text
    }

    fn write(&self, text: &mut Text) -> fmt::Result {
        self.write_workflows(text)?;
        self.write_activities(text)?;
        text.gauge("cached_runs", "Runs in memory.", &[("", self.cache.runs)])?;
        text.counter("cache_hits_total", "Tasks that went on in memory.", self.cache.hits)?;
        text.counter(
            "cache_misses_total",
            "Tasks whose history had to be read.",
            self.cache.misses,
        )?;
        text.counter("cache_evictions_total", "Runs removed from memory.", self.cache.evictions)?;
        let slots = &self.slots;
        let used = [
            ("task", slots.tasks_used),
            ("activity", slots.activities_used),
            ("local_activity", slots.local_activities_used),
        ];
        let all = [
            ("task", slots.tasks),
            ("activity", slots.activities),
            ("local_activity", slots.local_activities),
        ];
        text.gauge("slots_used", "Work in flight.", &used)?;
        text.gauge("slots", "The most work in flight.", &all)?;
        let connection = &self.connection;
        text.counter("connects_total", "Connections to the engine.", connection.connects)?;
        text.counter("connect_failures_total", "Failed tries to connect.", connection.failures)?;
        text.counter("disconnects_total", "Connections that were lost.", connection.disconnects)
    }

    fn write_workflows(&self, text: &mut Text) -> fmt::Result {
        let name = "workflow_tasks_total";
        text.head(name, "Workflow tasks by type and result.", "counter")?;
        for (of, it) in &self.workflows {
            let results =
                [("completed", it.completed), ("failed", it.failed), ("blocked", it.blocked)];
            text.results(name, ("workflow_type", of), &results)?;
        }
        let name = "queries_total";
        text.head(name, "Queries by type and result.", "counter")?;
        for (of, it) in &self.workflows {
            let results = [("answered", it.queries), ("failed", it.failed_queries)];
            text.results(name, ("workflow_type", of), &results)?;
        }
        let name = "replays_total";
        text.head(name, "Runs rebuilt from their history.", "counter")?;
        for (of, it) in &self.workflows {
            text.value(name, &label("workflow_type", of), it.replays)?;
        }
        let name = "workflow_task_seconds";
        text.head(name, "From arrival to end of a workflow task.", "histogram")?;
        for (of, it) in &self.workflows {
            text.histogram(name, &label("workflow_type", of), &it.latency)?;
        }
        let name = "workflow_task_schedule_to_start_seconds";
        text.head(name, "How long workflow tasks waited for a worker.", "histogram")?;
        for (of, it) in &self.workflows {
            text.histogram(name, &label("workflow_type", of), &it.schedule_to_start)?;
        }
        Ok(())
    }

    fn write_activities(&self, text: &mut Text) -> fmt::Result {
        let name = "activity_attempts_total";
        text.head(name, "Attempts of activities by type and result.", "counter")?;
        for (of, it) in &self.activities {
            let results = [
                ("completed", it.completed),
                ("failed", it.failed),
                ("cancelled", it.cancelled),
                ("left", it.left),
                ("dropped", it.dropped),
            ];
            text.results(name, ("activity_type", of), &results)?;
        }
        let name = "activity_seconds";
        text.head(name, "How long the code of attempts ran.", "histogram")?;
        for (of, it) in &self.activities {
            text.histogram(name, &label("activity_type", of), &it.latency)?;
        }
        let name = "activity_schedule_to_start_seconds";
        text.head(name, "How long first attempts waited for a worker.", "histogram")?;
        for (of, it) in &self.activities {
            text.histogram(name, &label("activity_type", of), &it.schedule_to_start)?;
        }
        let name = "local_activity_attempts_total";
        text.head(name, "Attempts of local activities by type and result.", "counter")?;
        for (of, it) in &self.local_activities {
            let results = [("completed", it.completed), ("failed", it.failed)];
            text.results(name, ("activity_type", of), &results)?;
        }
        let name = "local_activity_seconds";
        text.head(name, "How long attempts of local activities took.", "histogram")?;
        for (of, it) in &self.local_activities {
            text.histogram(name, &label("activity_type", of), &it.latency)?;
        }
        Ok(())
    }
}

struct Text {
    queue: String,
    text: String,
}

impl Text {
    fn head(&mut self, name: &str, help: &str, kind: &str) -> fmt::Result {
        let text = &mut self.text;
        writeln!(text, "# HELP abide_worker_{name} {help}\n# TYPE abide_worker_{name} {kind}")
    }

    /// One line; `labels` are those besides the queue.
    fn value(&mut self, name: &str, labels: &str, value: impl fmt::Display) -> fmt::Result {
        let Self { queue, text } = self;
        let comma = if labels.is_empty() { "" } else { "," };
        writeln!(text, "abide_worker_{name}{{queue=\"{queue}\"{comma}{labels}}} {value}")
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.head(name, help, "counter")?;
        self.value(name, "", value)
    }

    fn gauge(&mut self, name: &str, help: &str, values: &[(&str, u64)]) -> fmt::Result {
        self.head(name, help, "gauge")?;
        for (kind, value) in values {
            let labels = if kind.is_empty() { String::new() } else { label("kind", kind) };
            self.value(name, &labels, value)?;
        }
        Ok(())
    }

    fn results(
        &mut self,
        name: &str,
        (key, of): (&str, &str),
        results: &[(&str, u64)],
    ) -> fmt::Result {
        for (result, value) in results {
            let labels = format!("{},{}", label(key, of), label("result", result));
            self.value(name, &labels, value)?;
        }
        Ok(())
    }

    fn histogram(&mut self, name: &str, labels: &str, it: &HistogramSnapshot) -> fmt::Result {
        for (bound, count) in &it.buckets {
            let bound =
                bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let labels = format!("{labels},{}", label("le", &bound));
            self.value(&format!("{name}_bucket"), &labels, count)?;
        }
        if it.count() > 0 {
            self.value(&format!("{name}_sum"), labels, it.sum.as_secs_f64())?;
            self.value(&format!("{name}_count"), labels, it.count())?;
        }
        Ok(())
    }
}

fn label(key: &str, value: &str) -> String {
    format!("{key}=\"{}\"", escaped(value))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::worker::metrics::{WorkflowMetrics, histogram::Histogram};

    #[test]
    fn the_text_has_a_line_for_each_figure() {
        let latency = Histogram::default();
        latency.record(Duration::from_millis(1500));
        let order = WorkflowMetrics {
            completed: 3,
            latency: latency.figures(),
            ..WorkflowMetrics::default()
        };
        let snapshot = MetricsSnapshot {
            queue: "a \"queue\"".into(),
            workflows: [("Order".to_owned(), order)].into(),
            ..MetricsSnapshot::default()
        };
        let text = snapshot.to_prometheus();
        for line in [
            "# TYPE abide_worker_workflow_tasks_total counter",
            "abide_worker_workflow_tasks_total{queue=\"a \\\"queue\\\"\",workflow_type=\"Order\",\
             result=\"completed\"} 3",
            "abide_worker_workflow_task_seconds_bucket{queue=\"a \\\"queue\\\"\",\
             workflow_type=\"Order\",le=\"1\"} 0",
            "abide_worker_workflow_task_seconds_bucket{queue=\"a \\\"queue\\\"\",\
             workflow_type=\"Order\",le=\"5\"} 1",
            "abide_worker_workflow_task_seconds_sum{queue=\"a \\\"queue\\\"\",\
             workflow_type=\"Order\"} 1.5",
            "abide_worker_cached_runs{queue=\"a \\\"queue\\\"\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
        // Every line is a comment, or a name with labels and a number.
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            let (_, value) = line.rsplit_once("} ").unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
