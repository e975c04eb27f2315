//! Topic filters of subscriptions: overlaps, and the reasons of a rejection.

use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::suback::SubAckReasonCode;

/// Returns `true` if there is a topic that both filters match. A broker may deliver such a message once or twice (MQTT 5, 3.3.4),
/// and the route that it is meant for would be ambiguous.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    // A leading wildcard does not match topics of the broker itself (MQTT 5, 4.7.2).
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

/// Returns the reason why a broker rejected a subscription (MQTT 5, 3.9.3), or `None` if it accepted the subscription.
pub(crate) const fn refusal(code: SubAckReasonCode) -> Option<&'static str> {
    use SubAckReasonCode as Code;
    match code {
        Code::GrantedQoS0 | Code::GrantedQoS1 | Code::GrantedQoS2 => None,
        Code::UnspecifiedError => Some("no reason given"),
        Code::ImplementationSpecificError => Some("implementation-specific error"),
        Code::NotAuthorized => Some("this client is not authorized"),
        Code::TopicFilterInvalid => Some("the topic filter is invalid"),
        Code::PacketIdentifierInUse => Some("the packet identifier is in use"),
        Code::QuotaExceeded => Some("this client has too many subscriptions"),
        Code::SharedSubscriptionsNotSupported => Some("shared subscriptions are not supported"),
        Code::SubscriptionIdentifiersNotSupported => Some("subscription identifiers are not supported"),
        Code::WildcardSubscriptionsNotSupported => Some("wildcard subscriptions are not supported"),
    }
}

/// Returns the quality of service that a broker has granted, or `None` if it rejected the subscription.
pub(crate) const fn granted(code: SubAckReasonCode) -> Option<QoS> {
    match code {
        SubAckReasonCode::GrantedQoS0 => Some(QoS::AtMostOnce),
        SubAckReasonCode::GrantedQoS1 => Some(QoS::AtLeastOnce),
        SubAckReasonCode::GrantedQoS2 => Some(QoS::ExactlyOnce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_overlap_if_a_topic_matches_both() {
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
    fn a_granted_subscription_is_not_rejected() {
        assert_eq!(refusal(SubAckReasonCode::GrantedQoS1), None);
        assert_eq!(refusal(SubAckReasonCode::NotAuthorized), Some("this client is not authorized"));
    }
}
