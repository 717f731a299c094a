//! Help and completions.

use crate::harness::{Ran, abide, compare};

#[test]
fn help_shows_what_there_is() {
    compare("help", &Ran::of(abide().arg("--help")).good());
    compare("help_workflow", &Ran::of(abide().args(["workflow", "--help"])).good());
    compare("help_start", &Ran::of(abide().args(["workflow", "start", "--help"])).good());
    compare("help_dev", &Ran::of(abide().args(["dev", "--help"])).good());
}

#[test]
fn shells_are_given_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Ran::of(abide().args(["completions", shell])).good();
        assert!(script.contains("terminate") && script.contains("reschedule"), "{shell}");
    }
    Ran::of(abide().args(["completions", "nope"])).bad(2);
}
