//! What can be read about a machine: cores, limits, timers, the kernel.

use std::fs;

use super::{Finding, State};

pub(super) fn findings() -> Vec<Finding> {
    vec![
        cores(),
        kernel(),
        throttling(),
        timer_slack(),
        limit(
            "rt limit",
            "Max realtime priority",
            "ulimit -r, or rtprio in /etc/security/limits.conf",
        ),
        limit(
            "nice limit",
            "Max nice priority",
            "ulimit -e, or nice in /etc/security/limits.conf",
        ),
        limit(
            "memory limit",
            "Max locked memory",
            "ulimit -l, or memlock in /etc/security/limits.conf",
        ),
        cgroup(),
        governor(),
    ]
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The value of a line of `/proc/self/status`.
fn status(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned())
}

fn cores() -> Finding {
    let online = read("/sys/devices/system/cpu/online");
    let allowed = status("Cpus_allowed_list");
    let isolated = read("/sys/devices/system/cpu/isolated");
    let mut found = match (&online, &allowed) {
        (Some(online), Some(allowed)) => format!("online {online}, this process may use {allowed}"),
        (Some(online), None) => format!("online {online}"),
        _ => return Finding::new("cores", State::Unknown, "the system does not say"),
    };
    if let Some(isolated) = &isolated {
        found.push_str(&format!(", isolated at boot: {isolated}"));
    }
    if online != allowed {
        let advice =
            "this process is confined: see taskset, cpuset.cpus of its cgroup, or its container";
        return Finding::new("cores", State::Limited, found).advice(advice);
    }
    let finding = Finding::new("cores", State::Granted, found);
    match isolated {
        Some(_) => finding,
        None => finding.advice(
            "boot with isolcpus=N to keep a core from everybody but the lanes that name it",
        ),
    }
}

fn kernel() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock = clock.map_or_else(String::new, |clock| format!(", clock source {clock}"));
    match read("/sys/kernel/realtime").as_deref() {
        Some("1") => Finding::new(
            "kernel",
            State::Granted,
            format!("{release}, PREEMPT_RT{clock}"),
        ),
        _ => Finding::new(
            "kernel",
            State::Limited,
            format!("{release}, not PREEMPT_RT{clock}"),
        )
        .advice("a kernel with PREEMPT_RT bounds how long the kernel itself can be in the way"),
    }
}

/// What real-time threads may take of each period.
fn throttling() -> Finding {
    let micros = |path: &str| read(path)?.parse::<i64>().ok();
    let runtime = micros("/proc/sys/kernel/sched_rt_runtime_us");
    let period = micros("/proc/sys/kernel/sched_rt_period_us");
    let name = "rt throttling";
    match runtime.zip(period) {
        Some((-1, _)) => Finding::new(name, State::Granted, "off"),
        Some((runtime, period)) if period > 0 => {
            let percent = 100 * runtime / period;
            let found = format!("real-time threads get {runtime} of {period} us ({percent} %)");
            Finding::new(name, State::Limited, found)
                .advice("sysctl kernel.sched_rt_runtime_us=-1 turns it off; a lane that never sleeps then keeps its core for good")
        }
        _ => Finding::new(name, State::Unknown, "the system does not say"),
    }
}

fn timer_slack() -> Finding {
    match read("/proc/self/timerslack_ns") {
        Some(slack) => Finding::new(
            "timer slack",
            State::Granted,
            format!("{slack} ns by default; lanes on the clock set theirs to 1"),
        ),
        None => Finding::new("timer slack", State::Unknown, "the system does not say"),
    }
}

/// A line of `/proc/self/limits`.
fn limit(name: &'static str, title: &str, advice: &str) -> Finding {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(title));
    let mut values = line.unwrap_or_default().split_whitespace();
    match values.next().zip(values.next()) {
        Some(("unlimited", _)) => Finding::new(name, State::Granted, "unlimited"),
        Some((soft, hard)) => {
            let finding = Finding::new(name, State::Limited, format!("{soft}, at most {hard}"));
            finding.advice(format!("raised by {advice}"))
        }
        None => Finding::new(name, State::Unknown, "the system does not say"),
    }
}

/// What the control group of this process limits; version 2 of them.
fn cgroup() -> Finding {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    let Some(own) = own else {
        return Finding::new("cgroup", State::Unknown, "there is no unified hierarchy");
    };
    let folder = format!("/sys/fs/cgroup{}", own.trim_end_matches('/'));
    let limits = [
        ("cpu.max", "max 100000"),
        ("cpuset.cpus", ""),
        ("memory.max", "max"),
    ];
    let set: Vec<String> = limits
        .iter()
        .filter_map(|(file, free)| {
            let value = read(&format!("{folder}/{file}"))?;
            (value != *free).then(|| format!("{file} {value}"))
        })
        .collect();
    match set.is_empty() {
        true => Finding::new(
            "cgroup",
            State::Granted,
            format!("{own}, no limits of its own"),
        ),
        false => Finding::new(
            "cgroup",
            State::Limited,
            format!("{own}: {}", set.join(", ")),
        )
        .advice(
            "cpu.max stops all threads of the group for the rest of a period, real-time or not",
        ),
    }
}

fn governor() -> Finding {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    match read(path).as_deref() {
        Some("performance") => Finding::new("frequency", State::Granted, "performance"),
        Some(other) => Finding::new("frequency", State::Limited, other)
            .advice("the governor `performance` keeps cores from waking up slowly"),
        None => Finding::new("frequency", State::Unknown, "the system does not say"),
    }
}
