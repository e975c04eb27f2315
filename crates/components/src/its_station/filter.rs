//! Which frames of the link a station looks at, by their link addresses.

use std::collections::BTreeSet;

use viaduct_its::access::{EthernetHeader, MacAddress};
use viaduct_node::SettingError;

use super::settings::{Access, FilterSettings, parse_mac};

/// Why a frame is left unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filtered {
    /// It is for another station alone.
    OtherDestination,
    /// Its sender is in `ignore_from`.
    IgnoredSender,
    /// There is an `accept_from`, and its sender is not in it.
    SenderNotAccepted,
}

impl Filtered {
    /// Every reason.
    pub(super) const ALL: [Self; 3] = [Self::OtherDestination, Self::IgnoredSender, Self::SenderNotAccepted];

    /// The reason as metrics have it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::OtherDestination => "other_destination",
            Self::IgnoredSender => "ignored_sender",
            Self::SenderNotAccepted => "sender_not_accepted",
        }
    }
}

/// The rules of one station.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Frames to one station come through where it is this one; `None` lets those to others through too.
    only_for: Option<MacAddress>,
    /// Absent: every sender.
    accepted: Option<BTreeSet<MacAddress>>,
    ignored: BTreeSet<MacAddress>,
}

impl Filter {
    /// The rules for a station of this address.
    pub(super) fn new(settings: &FilterSettings, access: &Access, own: MacAddress) -> Result<Self, SettingError> {
        let accepted = addresses("filter.accept_from", &settings.accept_from)?;
        Ok(Self {
            only_for: (!takes_all(access)).then_some(own),
            accepted: (!accepted.is_empty()).then_some(accepted),
            ignored: addresses("filter.ignore_from", &settings.ignore_from)?,
        })
    }

    /// Why the frame is left unread, where it is. One that is too short for addresses is for the station to drop.
    pub(super) fn refuses(&self, frame: &[u8]) -> Option<Filtered> {
        let (link, _) = EthernetHeader::parse(frame)?;
        if self.ignored.contains(&link.source) {
            return Some(Filtered::IgnoredSender);
        }
        if self.accepted.as_ref().is_some_and(|accepted| !accepted.contains(&link.source)) {
            return Some(Filtered::SenderNotAccepted);
        }
        let for_other = |own: MacAddress| !is_group(link.destination) && link.destination != own;
        self.only_for.is_some_and(for_other).then_some(Filtered::OtherDestination)
    }
}

/// A capture was taken by another station, whose frames are what is asked for.
const fn takes_all(access: &Access) -> bool {
    match access {
        Access::Replay(_) => true,
        Access::Ethernet(settings) => settings.promiscuous,
        Access::UdpMulticast(_) => false,
    }
}

/// Whether the address is one of many stations: broadcast or multicast (IEEE 802, I/G bit).
const fn is_group(address: MacAddress) -> bool {
    address.0[0] & 1 != 0
}

fn addresses(key: &str, listed: &[String]) -> Result<BTreeSet<MacAddress>, SettingError> {
    let parse = |(index, text): (usize, &String)| parse_mac(&format!("{key}.{index}"), text);
    listed.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::its_station::settings::{EthernetSettings, UdpMulticastSettings};

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn frame(destination: [u8; 6], source: u8) -> Vec<u8> {
        [destination, [2, 0, 0, 0, 0, source]].concat().into_iter().chain([0x89, 0x47]).collect()
    }

    fn filter(accept_from: &[&str], ignore_from: &[&str]) -> Filter {
        let owned = |listed: &[&str]| listed.iter().map(|text| (*text).to_owned()).collect();
        let settings = FilterSettings { accept_from: owned(accept_from), ignore_from: owned(ignore_from) };
        Filter::new(&settings, &Access::UdpMulticast(UdpMulticastSettings::default()), OWN).unwrap()
    }

    #[test]
    fn a_frame_for_another_station_is_left_unread() {
        let filter = filter(&[], &[]);
        assert_eq!(filter.refuses(&frame(OWN.0, 9)), None);
        assert_eq!(filter.refuses(&frame([0xFF; 6], 9)), None);
        assert_eq!(filter.refuses(&frame([1, 0, 0x5E, 0, 0, 1], 9)), None, "multicast");
        assert_eq!(filter.refuses(&frame([2, 0, 0, 0, 0, 7], 9)), Some(Filtered::OtherDestination));
        assert_eq!(filter.refuses(&[0; 13]), None, "the station drops what is too short");
    }

    #[test]
    fn a_promiscuous_station_reads_frames_for_others() {
        let access = Access::Ethernet(EthernetSettings { promiscuous: true, ..EthernetSettings::on("any") });
        let filter = Filter::new(&FilterSettings::default(), &access, OWN).unwrap();
        assert_eq!(filter.refuses(&frame([2, 0, 0, 0, 0, 7], 9)), None);
    }

    #[test]
    fn senders_are_accepted_and_ignored_by_their_address() {
        let some = filter(&["02:00:00:00:00:09", "02:00:00:00:00:0a"], &["02:00:00:00:00:0a"]);
        assert_eq!(some.refuses(&frame([0xFF; 6], 9)), None);
        assert_eq!(some.refuses(&frame([0xFF; 6], 8)), Some(Filtered::SenderNotAccepted));
        assert_eq!(some.refuses(&frame([0xFF; 6], 10)), Some(Filtered::IgnoredSender), "ignored goes before accepted");
    }

    #[test]
    fn a_wrong_address_is_named_by_its_place() {
        let settings =
            FilterSettings { ignore_from: vec!["02:00:00:00:00:09".into(), "x".into()], ..Default::default() };
        let access = Access::UdpMulticast(UdpMulticastSettings::default());
        let error = Filter::new(&settings, &access, OWN).unwrap_err().to_string();
        assert!(error.contains("filter.ignore_from.1") && error.contains("`x`"), "{error}");
    }
}
