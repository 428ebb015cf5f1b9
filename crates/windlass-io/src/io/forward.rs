//! Methods of streams that pass every call on to a pinned field, for `impl` blocks of our traits
//! and of those of `futures-io`: what is left to write is what the type does otherwise.

/// `poll_fill_buf` and `consume` of the field `$inner`.
macro_rules! forward_buf_read {
    ($inner:ident) => {
        fn poll_fill_buf(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<&[u8]>> {
            self.project().$inner.poll_fill_buf(cx)
        }

        fn consume(self: ::std::pin::Pin<&mut Self>, amt: usize) {
            self.project().$inner.consume(amt);
        }
    };
}

/// `poll_write`, `poll_write_vectored` and `poll_flush` of the field `$inner`. `ours` adds what
/// only our trait has: `is_write_vectored` and `poll_shutdown`.
macro_rules! forward_write {
    ($inner:ident) => {
        fn poll_write(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            buf: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            self.project().$inner.poll_write(cx, buf)
        }

        fn poll_write_vectored(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            bufs: &[::std::io::IoSlice<'_>],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            self.project().$inner.poll_write_vectored(cx, bufs)
        }

        fn poll_flush(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            self.project().$inner.poll_flush(cx)
        }
    };
    (ours $inner:ident) => {
        $crate::io::forward::forward_write!($inner);

        fn is_write_vectored(&self) -> bool {
            self.$inner.is_write_vectored()
        }

        fn poll_shutdown(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            self.project().$inner.poll_shutdown(cx)
        }
    };
}

/// `poll_write`, `is_write_vectored` and `poll_flush` of a stream in memory: what it has beside is
/// `poll_write_vectored`, and nothing is left to flush.
macro_rules! write_by_vectors {
    () => {
        fn poll_write(
            self: ::std::pin::Pin<&mut Self>,
            cx: &mut ::std::task::Context<'_>,
            buf: &[u8],
        ) -> ::std::task::Poll<::std::io::Result<usize>> {
            self.poll_write_vectored(cx, &[::std::io::IoSlice::new(buf)])
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(
            self: ::std::pin::Pin<&mut Self>,
            _: &mut ::std::task::Context<'_>,
        ) -> ::std::task::Poll<::std::io::Result<()>> {
            ::std::task::Poll::Ready(Ok(()))
        }
    };
}

pub(super) use {forward_buf_read, forward_write, write_by_vectors};
