//! The promises of the HTTP server and client, each as a test.

mod client;
mod faults;
mod server;
mod simulated;
mod support;
mod tls;
