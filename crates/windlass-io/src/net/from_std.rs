//! Sockets of the standard library as ours.

/// `TryFrom` of a socket that has `from_std`.
macro_rules! from_std {
    ($std:ty => $Socket:ident) => {
        impl TryFrom<$std> for $Socket {
            type Error = ::std::io::Error;

            #[doc = concat!("Takes over a socket; see [`", stringify!($Socket), "::from_std`].")]
            fn try_from(socket: $std) -> ::std::io::Result<$Socket> {
                $Socket::from_std(socket)
            }
        }
    };
}

pub(super) use from_std;
