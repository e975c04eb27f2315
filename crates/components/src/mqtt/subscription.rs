//! Filters that are subscribed to: which of them take the same messages, and why a broker takes none of one.

use viaduct_mqtt::packet::suback::SubAckReasonCode;

/// Whether there is a topic that both filters match. A broker may hand such a message over once or twice (MQTT 5,
/// 3.3.4), and which of two routes it is for nobody could tell.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    // A wildcard at the beginning does not match a topic of the broker itself (MQTT 5, 4.7.2).
    if one.starts_with('$') != other.starts_with('$') {
        return false;
    }
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            // `v/#` matches `v` too.
            (Some("#"), _) | (_, Some("#")) | (None, None) => return true,
            (Some(a), Some(b)) if a == "+" || b == "+" || a == b => {}
            _ => return false,
        }
    }
}

/// Why a broker does not take a subscription, in words (MQTT 5, 3.9.3); `None` where it takes it.
pub(crate) const fn refusal(code: SubAckReasonCode) -> Option<&'static str> {
    use SubAckReasonCode as Code;
    match code {
        Code::GrantedQoS0 | Code::GrantedQoS1 | Code::GrantedQoS2 => None,
        Code::UnspecifiedError => Some("it does not say why"),
        Code::ImplementationSpecificError => Some("for reasons of its own"),
        Code::NotAuthorized => Some("this client may not subscribe to it"),
        Code::TopicFilterInvalid => Some("it does not take such a filter"),
        Code::PacketIdentifierInUse => Some("the packet identifier is in use"),
        Code::QuotaExceeded => Some("this client has too many subscriptions"),
        Code::SharedSubscriptionsNotSupported => Some("it has no shared subscriptions"),
        Code::SubscriptionIdentifiersNotSupported => Some("it has no subscription identifiers"),
        Code::WildcardSubscriptionsNotSupported => Some("it takes no wildcards"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_overlap_where_a_topic_matches_both() {
        for (one, other, expected) in [
            ("v/in", "v/in", true),
            ("v/in", "v/out", false),
            ("v/+", "v/in", true),
            ("v/+", "v/in/cam", false),
            ("+/in", "v/+", true),
            ("v/+/cam", "v/+/denm", false),
            ("v/#", "v", true),
            ("v/#", "v/in/cam", true),
            ("v/#", "w/in", false),
            ("#", "v/in", true),
            ("#", "$SYS/load", false),
            ("v/in", "v/in/", false),
        ] {
            assert_eq!((overlap(one, other), overlap(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn what_is_granted_is_no_refusal() {
        assert_eq!(refusal(SubAckReasonCode::GrantedQoS1), None);
        assert_eq!(refusal(SubAckReasonCode::NotAuthorized), Some("this client may not subscribe to it"));
    }
}
