//! Parts that CoAP server and client share.

use viaduct_coap::codec::ContentFormat;
use viaduct_coap::{DropReason, Endpoint};
use viaduct_node::{Component, Context};

use crate::encoding::Encoding;
use crate::machine_counters::MachineCounters;
use crate::mqtt::typed::InboundType;

/// Returns the content format of the payloads of an encoding (RFC 7252, 12.3).
pub(crate) const fn content_format(encoding: Encoding) -> ContentFormat {
    match encoding {
        Encoding::Json => ContentFormat::JSON,
        Encoding::Primitive => ContentFormat::TEXT,
        Encoding::Protobuf | Encoding::Native | Encoding::MqttClient => ContentFormat::OCTET_STREAM,
    }
}

/// Checks that payloads of an encoding can be of a type.
pub(crate) fn check_type(kind: &InboundType, encoding: Encoding) -> Result<(), String> {
    let definition = Err("use `opaque: NAME` with `encoding: native`, which passes on the octets");
    match (encoding, kind) {
        (_, InboundType::V2xMessage) => Err("`v2x_message` is written over MQTT, which has answers for it".to_owned()),
        (Encoding::Native, InboundType::Opaque(_)) => Ok(()),
        (Encoding::Native, _) => Err("`encoding: native` needs `opaque: NAME`".to_owned()),
        (Encoding::Protobuf, InboundType::Protobuf(_)) => kind.check(Encoding::Json, definition),
        (Encoding::Protobuf, _) => Err("`encoding: protobuf` needs `protobuf: NAME`".to_owned()),
        _ => kind.check(encoding, definition),
    }
}

/// Opens the counters of an endpoint.
pub(crate) fn endpoint_counters<C: Component>(context: &Context<C>) -> MachineCounters<Endpoint> {
    MachineCounters::new(context, |totals| {
        totals.one("received", |endpoint: &Endpoint| endpoint.counters().received);
        totals.one("sent", |endpoint| endpoint.counters().sent);
        totals.one("octets_received", |endpoint| endpoint.counters().octets_received);
        totals.one("octets_sent", |endpoint| endpoint.counters().octets_sent);
        totals.one("retransmissions", |endpoint| endpoint.counters().retransmissions);
        totals.one("duplicates", |endpoint| endpoint.counters().duplicates);
        totals.one("peers_evicted", |endpoint| endpoint.counters().evicted);
        totals.one("notifications_superseded", |endpoint| endpoint.counters().superseded);
        totals.each("refused", &DropReason::ALL, DropReason::label, |endpoint, reason| {
            endpoint.counters().dropped(reason)
        });
    })
}
