//! What is different on a terminal: colours and progress. `script` lends one.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::support::{broken, command, example};

/// What the command shows on a terminal.
fn shown(arguments: &[&str], no_color: Option<&str>) -> String {
    let plain = command(arguments);
    let mut line = vec![plain.get_program().to_str().expect("a readable path")];
    line.extend(arguments);
    let mut script = Command::new("script");
    script
        .args(["-qec", &line.join(" "), "/dev/null"])
        .current_dir(plain.get_current_dir().expect("a folder"))
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color");
    if let Some(value) = no_color {
        script.env("NO_COLOR", value);
    }
    let output = script.output().expect("script runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn reports_have_colours_on_a_terminal_unless_somebody_refuses_them() {
    let file = broken("unknown_port");
    let colored = |text: String| text.contains("\u{1b}[");
    assert!(colored(shown(&["graph", "validate", &file], None)));
    assert!(colored(shown(&["graph", "validate", &file], Some(""))));
    assert!(!colored(shown(&["graph", "validate", &file], Some("1"))));
    let never = ["graph", "validate", &file, "--color", "never"];
    assert!(!colored(shown(&never, None)));
}

#[test]
fn a_long_run_shows_how_far_it_is() {
    let file = example("hello");
    let long = ["graph", "run", &file, "--duration-ms", "1500"];
    let text = shown(&long, None);
    assert!(text.contains(" epochs, "), "{text:?}");
    assert!(text.contains("stop_reason: duration_bound"), "{text:?}");
    let short = ["graph", "run", &file];
    assert!(!shown(&short, None).contains(" epochs, "));
}
