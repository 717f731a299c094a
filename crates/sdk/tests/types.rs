//! What the compiler says when definitions are used with the wrong types. Run with
//! `TRYBUILD=overwrite` to write the messages anew, and read what changed.

#[test]
fn calls_are_typed() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
