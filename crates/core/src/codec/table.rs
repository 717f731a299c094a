//! Macros for the tables in the concept files: messages, enumerations and unions. A table names
//! each field or case once and generates both directions of the conversion, and, for tests, a
//! generator of values. A field or case that is missing in a table does not compile.

/// `Name { field, ... }`: a struct and the message of the same name and fields, which is always written.
macro_rules! messages {
    ($($name:ident { $($field:ident),* $(,)? })*) => { $(
        $crate::codec::table::message!($name { $($field),* });
        $crate::codec::table::required!($name, $crate::codec::generated::$name);
    )* };
}

/// A struct and the message of the same name and fields. The concept file says what its absence means.
macro_rules! message {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::codec::wire::Wire<$crate::codec::generated::$name> for $name {
            fn to_wire(&self) -> $crate::codec::generated::$name {
                let Self { $($field),* } = self;
                $crate::codec::generated::$name {
                    $($field: $crate::codec::wire::Wire::to_wire($field),)*
                }
            }

            fn from_wire(
                wire: $crate::codec::generated::$name,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let $crate::codec::generated::$name { $($field),* } = wire;
                Ok(Self {
                    $($field: $crate::codec::wire::field(stringify!($field), $field)?,)*
                })
            }
        }

        #[cfg(test)]
        impl $crate::codec::arbitrary::Sample for $name {
            fn sample(source: &mut $crate::codec::arbitrary::Source) -> Self {
                Self { $($field: source.part(stringify!($field)),)* }
            }
        }
    };
}

/// A message that is always written where its type has no `Option`.
macro_rules! required {
    ($name:ty, $message:ty) => {
        impl $crate::codec::wire::Wire<Option<$message>> for $name {
            fn to_wire(&self) -> Option<$message> {
                Some($crate::codec::wire::Wire::to_wire(self))
            }

            fn from_wire(wire: Option<$message>) -> Result<Self, $crate::codec::DecodeError> {
                $crate::codec::wire::required(wire)
            }
        }
    };
}

/// `Name { Case, ... }`: an enum without data and the enumeration of the same name and cases.
macro_rules! enumerations {
    ($($name:ident { $($case:ident),* $(,)? })*) => { $(
        impl $crate::codec::wire::Wire<i32> for $name {
            fn to_wire(&self) -> i32 {
                match self {
                    $(Self::$case => $crate::codec::generated::$name::$case.into(),)*
                }
            }

            fn from_wire(wire: i32) -> Result<Self, $crate::codec::DecodeError> {
                use $crate::codec::{Problem, generated};
                match generated::$name::try_from(wire) {
                    Ok(generated::$name::Unspecified) => Err(Problem::Missing.into()),
                    $(Ok(generated::$name::$case) => Ok(Self::$case),)*
                    Err(error) => Err(Problem::unknown_value(stringify!($name), &error).into()),
                }
            }
        }

        #[cfg(test)]
        impl $crate::codec::arbitrary::Sample for $name {
            fn sample(source: &mut $crate::codec::arbitrary::Source) -> Self {
                source.case()
            }
        }

        #[cfg(test)]
        impl $crate::codec::arbitrary::Cases for $name {
            fn cases() -> Vec<$crate::codec::arbitrary::Case<Self>> {
                vec![$((stringify!($case), |_| Self::$case)),*]
            }
        }
    )* };
}

/// An enum with data and the oneof with the same cases. Cases under `whole` hold one value, which
/// is the case's value on the wire; cases under `parts` have fields, which are those of the named
/// message. `in` names the message that contains only this oneof, if there is one.
macro_rules! union {
    (
        $name:ident = $module:ident::$oneof:ident $(in $wrapper:ident)? {
            whole { $($whole:ident),* $(,)? }
            parts { $($parts:ident($message:ident) { $($field:ident),* $(,)? }),* $(,)? }
        }
    ) => {
        impl $crate::codec::wire::Wire<$crate::codec::generated::$module::$oneof> for $name {
            fn to_wire(&self) -> $crate::codec::generated::$module::$oneof {
                use $crate::codec::{generated::$module::$oneof, wire::Wire};
                match self {
                    $(Self::$whole(value) => $oneof::$whole(Wire::to_wire(value)),)*
                    $(Self::$parts { $($field),* } => {
                        $oneof::$parts($crate::codec::generated::$message {
                            $($field: Wire::to_wire($field),)*
                        })
                    })*
                }
            }

            fn from_wire(
                wire: $crate::codec::generated::$module::$oneof,
            ) -> Result<Self, $crate::codec::DecodeError> {
                use $crate::codec::{generated::$module::$oneof, wire::field};
                Ok(match wire {
                    $($oneof::$whole(value) => Self::$whole(field(stringify!($whole), value)?),)*
                    $($oneof::$parts($crate::codec::generated::$message { $($field),* }) => {
                        Self::$parts { $($field: field(stringify!($field), $field)?,)* }
                    })*
                })
            }
        }

        impl $crate::codec::wire::Wire<Option<$crate::codec::generated::$module::$oneof>> for $name {
            fn to_wire(&self) -> Option<$crate::codec::generated::$module::$oneof> {
                Some($crate::codec::wire::Wire::to_wire(self))
            }

            fn from_wire(
                wire: Option<$crate::codec::generated::$module::$oneof>,
            ) -> Result<Self, $crate::codec::DecodeError> {
                let wire = wire.ok_or($crate::codec::Problem::UnknownCase)?;
                $crate::codec::wire::Wire::from_wire(wire)
            }
        }

        $(
            impl $crate::codec::wire::Wire<$crate::codec::generated::$wrapper> for $name {
                fn to_wire(&self) -> $crate::codec::generated::$wrapper {
                    $crate::codec::generated::$wrapper {
                        case: $crate::codec::wire::Wire::to_wire(self),
                    }
                }

                fn from_wire(
                    wire: $crate::codec::generated::$wrapper,
                ) -> Result<Self, $crate::codec::DecodeError> {
                    $crate::codec::wire::Wire::from_wire(wire.case)
                }
            }

            $crate::codec::table::required!($name, $crate::codec::generated::$wrapper);
        )?

        #[cfg(test)]
        impl $crate::codec::arbitrary::Sample for $name {
            fn sample(source: &mut $crate::codec::arbitrary::Source) -> Self {
                source.case()
            }
        }

        #[cfg(test)]
        impl $crate::codec::arbitrary::Cases for $name {
            fn cases() -> Vec<$crate::codec::arbitrary::Case<Self>> {
                vec![
                    $((stringify!($whole), |source| {
                        Self::$whole(source.part(stringify!($whole)))
                    }),)*
                    $((stringify!($parts), |_source| {
                        Self::$parts { $($field: _source.part(stringify!($field)),)* }
                    }),)*
                ]
            }
        }
    };
}

pub(super) use {enumerations, message, messages, required, union};
