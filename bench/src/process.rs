//! What the kernel says about this process.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Bytes of memory that are resident.
pub fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("statm can be read");
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|f| f.parse().ok())
        .expect("statm has a resident field");
    pages * rustix::param::page_size() as u64
}

/// CPU time that all threads have used.
pub fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Context switches, voluntary or not, of all threads but the calling one.
///
/// The caller is left out because it sleeps while it measures, which would count as a switch.
pub fn context_switches_of_others() -> u64 {
    let me = rustix::thread::gettid().as_raw_nonzero().to_string();
    fs::read_dir("/proc/self/task")
        .expect("the threads can be listed")
        .map(|entry| entry.expect("a thread can be listed"))
        .filter(|entry| entry.file_name() != *me)
        // A thread may end between the listing and the reading.
        .filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok())
        .map(|status| switches(&status))
        .sum()
}

fn switches(status: &str) -> u64 {
    status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.ends_with("ctxt_switches"))
        .map(|(_, count)| {
            count
                .trim()
                .parse::<u64>()
                .expect("a count of switches is a number")
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_switches_are_counted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), 15);
    }

    #[test]
    fn memory_and_cpu_are_there() {
        assert!(resident_bytes() > 0);
        assert!(cpu_time() > Duration::ZERO);
    }
}
