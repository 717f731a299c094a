//! What the macros say when they are used wrongly. Each file in `ui` has its messages beside it; run
//! with `TRYBUILD=overwrite` to write them anew, and read what changed.

#[test]
fn mistakes_are_explained_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
