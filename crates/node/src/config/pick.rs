//! Reads the settings of one component out of the whole file, so that an error in them has its place in the file.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize as _;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::SettingsError;
use super::yaml_options;

/// The value at `components.NAME.settings`; a component without settings has those of an empty map.
pub(crate) fn settings_of<S: DeserializeOwned>(text: &str, component: &str) -> Result<S, SettingsError> {
    let path = ["components", component, "settings"];
    let found = serde_saphyr::with_deserializer_from_str_with_options(text, yaml_options(), |deserializer| {
        Pick { path: &path, value: PhantomData }.deserialize(deserializer)
    });
    match found.map_err(SettingsError::InFile)? {
        Some(settings) => Ok(settings),
        None => serde_saphyr::from_str("{}").map_err(SettingsError::Absent),
    }
}

/// Goes down a path of keys and reads what is at its end.
struct Pick<'a, S> {
    path: &'a [&'a str],
    value: PhantomData<S>,
}

impl<'de, S: DeserializeOwned> DeserializeSeed<'de> for Pick<'_, S> {
    type Value = Option<S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.path.is_empty() { Option::<S>::deserialize(deserializer) } else { deserializer.deserialize_map(self) }
    }
}

impl<'de, S: DeserializeOwned> Visitor<'de> for Pick<'_, S> {
    type Value = Option<S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match self.path.split_first() {
                Some((first, rest)) if *first == key => {
                    found = map.next_value_seed(Pick { path: rest, value: PhantomData::<S> })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}
