//! TLS on both sides.

use std::sync::Arc;

use std::future::IntoFuture;
use windlass_http::rustls;
use windlass_http::{Client, ClientError, TlsAcceptor, TlsConnector, TlsError, serve};
use windlass_io::net::TcpListener;
use windlass_runtime::{Runtime, spawn};

use crate::support::{Result, by_path, runtime, text};

/// A certificate for localhost and its key, as PEM.
fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

async fn server(chain: &str, key: &str) -> Result<String> {
    let acceptor = TlsAcceptor::from_pem(chain.as_bytes(), key.as_bytes())?;
    let listener = TcpListener::bind("localhost:0").await?;
    let port = listener.local_addr()?.port();
    drop(spawn(
        serve(listener, by_path()).tls(acceptor).into_future(),
    ));
    Ok(format!("https://localhost:{port}"))
}

fn both_versions_are_served(runtime: Runtime) -> Result {
    runtime.block_on(async {
        let (chain, key) = certificate();
        let url = server(&chain, &key).await?;
        let client = Client::builder()
            .tls(TlsConnector::trusting(chain.as_bytes())?)
            .build();
        let response = client.get(format!("{url}/a")).await?;
        assert_eq!(response.version(), windlass_http::hyper::Version::HTTP_2);
        assert_eq!(text(response).await?, "/a");
        assert_eq!(text(client.get(format!("{url}/b")).await?).await?, "/b");
        assert_eq!(client.kept_connections(), 1, "many requests share it");

        let mut roots = rustls::RootCertStore::empty();
        use rustls::pki_types::pem::PemObject;
        roots.add(rustls::pki_types::CertificateDer::from_pem_slice(
            chain.as_bytes(),
        )?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let old = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Client::builder()
            .tls(TlsConnector::from_config(old))
            .build();
        let response = client.get(format!("{url}/c")).await?;
        assert_eq!(response.version(), windlass_http::hyper::Version::HTTP_11);
        assert_eq!(text(response).await?, "/c");
        Ok(())
    })
}

#[test]
fn both_versions_of_http_are_served_over_tls() -> Result {
    both_versions_are_served(runtime())
}

#[test]
fn both_versions_of_http_are_served_over_tls_in_a_simulation() -> Result {
    both_versions_are_served(Runtime::simulated(3))
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused() -> Result {
    runtime().block_on(async {
        let (chain, key) = certificate();
        let url = server(&chain, &key).await?;
        let error = Client::new().get(&url).await.expect_err("unknown issuer");
        assert!(matches!(error, ClientError::Tls { .. }), "{error}");
        let (another, _) = certificate();
        let client = Client::builder()
            .tls(TlsConnector::trusting(another.as_bytes())?)
            .build();
        assert!(matches!(
            client.get(&url).await,
            Err(ClientError::Tls { .. })
        ));
        // Plain HTTP to a TLS port, and TLS to a plain one.
        let plain = url.replace("https", "http");
        assert!(matches!(
            Client::new().get(&plain).await,
            Err(ClientError::Broken(_))
        ));
        Ok(())
    })
}

#[test]
fn a_missing_certificate_is_named() {
    let (chain, key) = certificate();
    let nowhere = TlsAcceptor::from_pem_files("/nowhere/chain.pem", "/nowhere/key.pem");
    assert!(
        matches!(&nowhere, Err(TlsError::Unreadable { path, .. }) if path.ends_with("chain.pem"))
    );
    let swapped = TlsAcceptor::from_pem(key.as_bytes(), chain.as_bytes());
    assert!(matches!(swapped, Err(TlsError::NoCertificate)));
    let no_key = TlsAcceptor::from_pem(chain.as_bytes(), b"");
    assert!(matches!(no_key, Err(TlsError::NoKey)));
    let (_, strange) = certificate();
    let mismatch = TlsAcceptor::from_pem(chain.as_bytes(), strange.as_bytes());
    assert!(
        matches!(mismatch, Err(TlsError::Refused(_))),
        "{mismatch:?}"
    );
    assert!(matches!(
        TlsConnector::trusting(b"nothing"),
        Err(TlsError::NoCertificate)
    ));
}
