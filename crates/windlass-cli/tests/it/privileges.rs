//! What the system refuses: to the user of the test, and to a user without privileges.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::support::{Ended, command, windlass};

/// The command as a user without privileges: that of the test, if it has none.
struct Unprivileged {
    binary: PathBuf,
    folder: PathBuf,
}

impl Unprivileged {
    fn new(name: &str) -> Unprivileged {
        use std::os::unix::fs::PermissionsExt;
        let id = std::process::id();
        let folder = std::env::temp_dir().join(format!("windlass-cli-{name}-{id}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, everybody.clone()).expect("permissions");
        let binary = folder.join("windlass");
        // Where it was built may be closed to others.
        std::fs::copy(env!("CARGO_BIN_EXE_windlass"), &binary).expect("a copy");
        std::fs::set_permissions(&binary, everybody).expect("permissions");
        Unprivileged { binary, folder }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let plain = command(arguments);
        let root = is_root();
        let mut command = Command::new(if root {
            "setpriv".into()
        } else {
            self.binary.clone()
        });
        if root {
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
                .args(["--inh-caps=-all", "--bounding-set=-all"])
                .arg(&self.binary);
        }
        let output = command
            .args(plain.get_args())
            .current_dir(&self.folder)
            .output()
            .expect("it starts");
        output.into()
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    user.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn state<'a>(document: &'a Value, name: &str) -> &'a str {
    let findings = document["findings"].as_array().expect("a list");
    let found = findings.iter().find(|finding| finding["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no finding {name}"));
    found["state"].as_str().expect("a state")
}

#[test]
fn the_doctor_says_what_this_machine_grants_and_how_to_get_the_rest() {
    let text = windlass(&["doctor"]).fine();
    for name in [
        "cores",
        "rt throttling",
        "timer slack",
        "cgroup",
        "affinity",
        "fifo",
        "mlock",
    ] {
        assert!(
            text.out.lines().any(|l| l.starts_with(name)),
            "{name}: {}",
            text.out
        );
    }
    let document = windlass(&["doctor", "--format", "json"]).fine().json();
    assert_eq!(state(&document, "affinity"), "granted");

    let unprivileged = Unprivileged::new("doctor");
    let document = unprivileged
        .run(&["doctor", "--format", "json"])
        .fine()
        .json();
    assert_eq!(state(&document, "affinity"), "granted");
    for name in ["fifo", "rr", "deadline", "nice"] {
        assert_eq!(state(&document, name), "refused", "{name}");
    }
    for finding in document["findings"].as_array().expect("a list") {
        let advice = finding["advice"].as_str().expect("a text");
        let helps = finding["state"] != "refused" || !advice.is_empty();
        assert!(helps || finding["found"] == "see above", "{finding}");
    }
}

#[test]
fn a_lane_without_privileges_runs_and_says_what_it_lacks_or_does_not_run() {
    let unprivileged = Unprivileged::new("lanes");
    let file = unprivileged.folder.join("graph.yaml");
    let graph = "schema_version: 2
graph: {name: urgent, kind: internal_test}
lanes:
  fifo: {type: isolated_thread, rt_policy: fifo, rt_priority: 10, os_policy: POLICY}
  clock: {type: fixed_rate, hz: 100, wall_clock_enabled: true, nice_priority: -5, mlock: true}
components:
  - {id: a, type: windlass.example.Sensor, execution: {lane: fifo}}
  - {id: b, type: windlass.example.Sensor, execution: {lane: clock}}
edges: []
";
    std::fs::write(&file, graph.replace("POLICY", "warn")).expect("a file");
    let name = file.to_str().expect("a readable path");
    let run = ["graph", "run", name, "--steps", "2", "--format", "json"];
    let document = unprivileged.run(&run).fine().json();
    let grants = document["lane_grants"].as_array().expect("a list");
    let refused: Vec<&str> = grants
        .iter()
        .flat_map(|grant| grant["refused"].as_array().expect("a list"))
        .map(|refused| refused.as_str().expect("a text"))
        .collect();
    assert!(refused.iter().any(|r| r.contains("Fifo")), "{refused:?}");
    assert!(refused.contains(&"nice -5"), "{refused:?}");
    let text = unprivileged.run(&run[..5]).fine();
    assert!(text.out.contains("see `windlass doctor`"), "{}", text.out);

    std::fs::write(&file, graph.replace("POLICY", "strict")).expect("a file");
    let ended = unprivileged.run(&run[..5]).refused();
    assert!(
        ended.out.contains("lane fifo has no threads"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("CAP_SYS_NICE"), "{}", ended.out);
}
