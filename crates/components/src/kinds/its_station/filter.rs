//! The filter of received frames by the link address of their sender.

use std::collections::BTreeSet;

use viaduct_its::access::{EthernetHeader, MacAddress};
use viaduct_node::SettingError;

use super::settings::FilterSettings;

/// Reason why a frame is filtered out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filtered {
    /// The frame's sender is in `ignore_from`.
    IgnoredSender,
    /// `accept_from` is not empty, and the sender is not in it.
    SenderNotAccepted,
}

impl Filtered {
    /// Every reason.
    pub(super) const ALL: [Self; 2] = [Self::IgnoredSender, Self::SenderNotAccepted];

    /// Returns the reason as it appears in metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::IgnoredSender => "ignored_sender",
            Self::SenderNotAccepted => "sender_not_accepted",
        }
    }
}

/// The filter rules of one station.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// `None` accepts every sender.
    accepted: Option<BTreeSet<MacAddress>>,
    ignored: BTreeSet<MacAddress>,
}

impl Filter {
    /// Creates the filter from its settings.
    pub(super) fn new(settings: &FilterSettings) -> Result<Self, SettingError> {
        let accepted = settings.accepted()?;
        Ok(Self { accepted: (!accepted.is_empty()).then_some(accepted), ignored: settings.ignored()? })
    }

    /// Returns the reason why the frame is filtered out, or `None` if it passes. A frame without a complete Ethernet header
    /// passes: the station drops and counts it.
    pub(super) fn check(&self, frame: &[u8]) -> Option<Filtered> {
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

    /// Returns a broadcast of the station whose address ends with `source`.
    fn frame(source: u8) -> Vec<u8> {
        [[0xFF; 6], [2, 0, 0, 0, 0, source]].concat().into_iter().chain([0x89, 0x47]).collect()
    }

    fn filter(accept_from: &[&str], ignore_from: &[&str]) -> Result<Filter, SettingError> {
        let owned = |listed: &[&str]| listed.iter().map(|text| (*text).to_owned()).collect();
        Filter::new(&FilterSettings { accept_from: owned(accept_from), ignore_from: owned(ignore_from) })
    }

    #[test]
    fn without_rules_every_sender_is_accepted() {
        let filter = filter(&[], &[]).unwrap();
        assert_eq!(filter.check(&frame(9)), None);
        assert_eq!(filter.check(&[0; 13]), None, "the station drops frames that are too short");
    }

    #[test]
    fn senders_are_accepted_and_ignored_by_their_address() {
        let some = filter(&["02:00:00:00:00:09", "02:00:00:00:00:0a"], &["02:00:00:00:00:0a"]).unwrap();
        assert_eq!(some.check(&frame(9)), None);
        assert_eq!(some.check(&frame(8)), Some(Filtered::SenderNotAccepted));
        assert_eq!(some.check(&frame(10)), Some(Filtered::IgnoredSender), "`ignore_from` has precedence");
    }

    #[test]
    fn an_invalid_address_is_reported_with_its_index() {
        let error = filter(&[], &["02:00:00:00:00:09", "x"]).unwrap_err();
        assert_eq!((&*error.key, error.problem.contains("`x`")), ("filter.ignore_from.1", true));
    }
}
