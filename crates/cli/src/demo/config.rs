//! The config files of the demo's nodes.

use super::Arguments;

/// Returns name and text of each file. The edge is first, because it must be ready when the vehicles start.
pub(super) fn files(arguments: &Arguments) -> Vec<(String, String)> {
    vec![("demo/edge.yaml".to_owned(), edge(arguments)), ("demo/vehicles.yaml".to_owned(), vehicles(arguments))]
}

fn edge(arguments: &Arguments) -> String {
    let Arguments { port, mqtt_port, group_port, node_port, .. } = arguments;
    let recorded = arguments.capture.as_ref().map_or_else(String::new, |capture| {
        // JSON strings are YAML strings.
        let file = serde_json::Value::from(capture.display().to_string());
        format!(
            "  recorded:\n    kind: its_station\n    settings:\n      station_id: 902\n      \
             access: {{ replay: {{ file: {file}, repeat: true }} }}\n"
        )
    });
    format!(
        "node: edge\n\
         http: 127.0.0.1:{node_port}\n\
         components:\n\
         \x20 station:\n\
         \x20   kind: its_station\n\
         \x20   settings:\n\
         \x20     station_id: 901\n\
         \x20     access: {{ udp_multicast: {{ group: \"239.118.122.97:{group_port}\" }} }}\n\
         {recorded}\
         \x20 broker:\n\
         \x20   kind: mqtt_broker\n\
         \x20   settings: {{ listen: \"127.0.0.1:{mqtt_port}\" }}\n\
         \x20 uplink:\n\
         \x20   kind: mqtt_bridge\n\
         \x20   settings:\n\
         \x20     broker: \"mqtt://127.0.0.1:{mqtt_port}\"\n\
         \x20     routes: [ {{ from: its/rx/*, to: \"{{topic}}\", qos: 1, encoding: json }} ]\n\
         \x20 probe:\n\
         \x20   kind: mqtt_probe\n\
         \x20   settings: {{ broker: \"mqtt://127.0.0.1:{mqtt_port}\", filter: its/#, qos: 1 }}\n\
         \x20 api:\n\
         \x20   kind: api\n\
         \x20   settings: {{ listen: \"127.0.0.1:{port}\", topics: [ its/rx/* ], map: town }}\n"
    )
}

fn vehicles(arguments: &Arguments) -> String {
    let Arguments { vehicles, rate, group_port, vehicles_node_port, .. } = arguments;
    format!(
        "node: vehicles\n\
         http: 127.0.0.1:{vehicles_node_port}\n\
         components:\n\
         \x20 fleet:\n\
         \x20   kind: fleet\n\
         \x20   settings:\n\
         \x20     vehicles: {vehicles}\n\
         \x20     rate_hz: {rate}\n\
         \x20     udp_multicast: {{ group: \"239.118.122.97:{group_port}\" }}\n"
    )
}
