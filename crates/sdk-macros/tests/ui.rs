//! Error messages for wrong uses of the macros. Each file in `ui` has its expected messages beside
//! it; run with `TRYBUILD=overwrite` to update them, and review the changes.

#[test]
fn mistakes_are_explained_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
