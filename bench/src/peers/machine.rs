//! The machine itself: the physical limits beside which the peers are read.

use super::{Peer, cannot};
use crate::workload::Workload;
use crate::workloads::limits;

pub const PEER: Peer = Peer {
    name: "machine",
    workloads: &[&[
        Workload::FetchAdd,
        Workload::CompareExchange,
        Workload::CacheLine,
        Workload::FutexWake,
        Workload::Malloc,
        Workload::InstantNow,
    ]],
    run: |job| match job.workload {
        Workload::FetchAdd => limits::fetch_add(job.size),
        Workload::CompareExchange => limits::compare_exchange(job.size),
        Workload::CacheLine => limits::cache_line(job.size),
        Workload::FutexWake => limits::futex_wake(job.size),
        Workload::Malloc => limits::malloc(job.size),
        Workload::InstantNow => limits::instant_now(job.size),
        other => cannot(other),
    },
};
