//! Whose frames a station looks at, by the link address of who sent them.

use std::collections::BTreeSet;

use viaduct_its::access::{EthernetHeader, MacAddress};
use viaduct_node::SettingError;

use super::settings::FilterSettings;

/// Why a frame is left unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filtered {
    /// Its sender is in `ignore_from`.
    IgnoredSender,
    /// There is an `accept_from`, and its sender is not in it.
    SenderNotAccepted,
}

impl Filtered {
    /// Every reason.
    pub(super) const ALL: [Self; 2] = [Self::IgnoredSender, Self::SenderNotAccepted];

    /// The reason as metrics have it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::IgnoredSender => "ignored_sender",
            Self::SenderNotAccepted => "sender_not_accepted",
        }
    }
}

/// The rules of one station.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Absent: every sender.
    accepted: Option<BTreeSet<MacAddress>>,
    ignored: BTreeSet<MacAddress>,
}

impl Filter {
    /// The rules that are set.
    pub(super) fn new(settings: &FilterSettings) -> Result<Self, SettingError> {
        let accepted = settings.accepted()?;
        Ok(Self { accepted: (!accepted.is_empty()).then_some(accepted), ignored: settings.ignored()? })
    }

    /// Why the frame is left unread, where it is. One that is too short for addresses is for the station to drop.
    pub(super) fn refuses(&self, frame: &[u8]) -> Option<Filtered> {
        let (link, _) = EthernetHeader::parse(frame)?;
        if self.ignored.contains(&link.source) {
            return Some(Filtered::IgnoredSender);
        }
        let other = self.accepted.as_ref().is_some_and(|accepted| !accepted.contains(&link.source));
        other.then_some(Filtered::SenderNotAccepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broadcast of the station with that last octet in its address.
    fn frame(source: u8) -> Vec<u8> {
        [[0xFF; 6], [2, 0, 0, 0, 0, source]].concat().into_iter().chain([0x89, 0x47]).collect()
    }

    fn filter(accept_from: &[&str], ignore_from: &[&str]) -> Result<Filter, SettingError> {
        let owned = |listed: &[&str]| listed.iter().map(|text| (*text).to_owned()).collect();
        Filter::new(&FilterSettings { accept_from: owned(accept_from), ignore_from: owned(ignore_from) })
    }

    #[test]
    fn without_rules_every_sender_is_heard() {
        let filter = filter(&[], &[]).unwrap();
        assert_eq!(filter.refuses(&frame(9)), None);
        assert_eq!(filter.refuses(&[0; 13]), None, "the station drops what is too short");
    }

    #[test]
    fn senders_are_accepted_and_ignored_by_their_address() {
        let some = filter(&["02:00:00:00:00:09", "02:00:00:00:00:0a"], &["02:00:00:00:00:0a"]).unwrap();
        assert_eq!(some.refuses(&frame(9)), None);
        assert_eq!(some.refuses(&frame(8)), Some(Filtered::SenderNotAccepted));
        assert_eq!(some.refuses(&frame(10)), Some(Filtered::IgnoredSender), "ignored goes before accepted");
    }

    #[test]
    fn a_wrong_address_is_named_by_its_place() {
        let error = filter(&[], &["02:00:00:00:00:09", "x"]).unwrap_err();
        assert_eq!((&*error.key, error.problem.contains("`x`")), ("filter.ignore_from.1", true));
    }
}
