//! Four synchronous machines: shard, commit pipeline, lease, queue.
