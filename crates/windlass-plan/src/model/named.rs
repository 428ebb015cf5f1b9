//! Enums whose values have a name in graph files.

/// Declares an enum with the names that its values have in a file; further names of a value follow
/// a `|`.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident {
            $( $(#[$about:meta])* $Value:ident = $name:literal $(| $other:literal)*, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $Name { $( $(#[$about])* $Value, )+ }

        impl $Name {
            /// Every value, in the order of the reference.
            pub const ALL: &'static [$Name] = &[$( $Name::$Value, )+];
            /// Every name that a file may use.
            pub const NAMES: &'static [&'static str] = &[$( $name, $( $other, )* )+];

            /// Its name in a file.
            pub const fn name(self) -> &'static str {
                match self { $( $Name::$Value => $name, )+ }
            }

            /// The value of this name.
            pub fn named(name: &str) -> Option<$Name> {
                match name { $( $name $(| $other)* => Some($Name::$Value), )+ _ => None }
            }
        }

        impl $crate::serde::Serialize for $Name {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $Name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = <String as $crate::serde::Deserialize>::deserialize(from)?;
                let unknown = || {
                    let error = <D::Error as $crate::serde::de::Error>::unknown_variant;
                    error(&name, Self::NAMES)
                };
                Self::named(&name).ok_or_else(unknown)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
