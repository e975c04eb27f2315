#!/usr/bin/env bash
# Records village.pcap in the current folder: eight seconds of a roadside unit, six vehicles, a pedestrian and an intersection.
# Needs root (a network namespace of its own), `viaduct` on the path and mosquitto-clients.
set -euo pipefail
if [ "${1:-}" != inside ]; then
  exec unshare --net bash "$0" inside
fi
here=$(dirname "$0")
ip link set lo up

timeout 16 viaduct run "$here/record.yaml" &
node=$!
sleep 1
timeout 16 viaduct run "$here/fleet.yaml" &
fleet=$!
sleep 1

send() {
  timeout 12 viaduct its send "$here/$1.json" --udp 127.0.0.1 --type "$1" --position 45.01612,7.565831 --station-type 15 \
    --repeat "$2" --count "$3" >/dev/null &
}
send mapem 1hz 8
send spatem 2hz 16
send ivim 1hz 8

# A pedestrian who walks north, five states per second.
for step in $(seq 0 40); do
  echo "{\"position\":{\"latitude_deg\":$(echo "45.01622 + $step * 0.00000225" | bc -l),\"longitude_deg\":7.56595},\"speed_mps\":1.25,\"heading_deg\":0}"
  sleep 0.2
done | timeout 10 mosquitto_pub -p 1999 -t pedestrian/state -l &
# A cyclist who rides east and a pedestrian who stands, as a camera of the roadside unit sees them.
for step in $(seq 0 80); do
  echo "{\"objects\":[{\"id\":1,\"position\":{\"latitude_deg\":45.0164,\"longitude_deg\":$(echo "7.5657 + $step * 0.0000076" | bc -l)},\"speed_mps\":6,\"heading_deg\":90,\"class\":\"cyclist\"},{\"id\":2,\"position\":{\"latitude_deg\":45.0158,\"longitude_deg\":7.566},\"speed_mps\":0,\"heading_deg\":0,\"class\":\"pedestrian\"}]}"
  sleep 0.1
done | timeout 10 mosquitto_pub -p 1999 -t rsu/objects -l &

# Road works: trigger, update to another place, cancellation.
works() {
  mosquitto_pub -p 1999 -t rsu/events -m "{\"name\":\"works\",\"report\":{\"cause\":3,\"validity_s\":60,\"position\":{\"latitude_deg\":$1,\"longitude_deg\":7.5661},\"relevance_distance_m\":500,\"repetition_interval_ms\":1000,\"repetition_duration_ms\":60000}}"
}
sleep 1
works 45.0150
sleep 3.2
works 45.0148
sleep 2.2
mosquitto_pub -p 1999 -t rsu/events -m '{"name":"works","end":{}}'
sleep 1.5
kill -INT "$fleet" "$node"
