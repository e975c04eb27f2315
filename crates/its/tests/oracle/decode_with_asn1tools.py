"""Decodes CAMs and CPMs with asn1tools over ETSI's ASN.1 modules.

Arguments: the folder of the modules. Standard input: lines `cam HEX` or `cpm HEX`. Standard output: for each line the JSON
form that viaduct-etsi documents (but for a BIT STRING of variable size, which is text too), and behind it, after a tab, the
message encoded again by asn1tools, as HEX. A message that asn1tools refuses is `null`, and behind it the reason.
"""

import json
import sys
from pathlib import Path

from modules import CDD, compile_modules

CAM_FILES = ["TS102894-2v241-CDD.asn", "TS103900v231-CAM.asn"]
CPM_FILES = [
    CDD,
    "TS103324v211/CPM-OriginatingStationContainers.asn",
    "TS103324v211/CPM-SensorInformationContainer.asn",
    "TS103324v211/CPM-PerceptionRegionContainer.asn",
    "TS103324v211/CPM-PerceivedObjectContainer.asn",
    "TS103324v211/CPM-PDU-Descriptions.asn",
]
CPM_CONTAINERS = {
    1: "OriginatingVehicleContainer",
    2: "OriginatingRsuContainer",
    3: "SensorInformationContainer",
    4: "PerceptionRegionContainer",
    5: "PerceivedObjectContainer",
}


def plain(value):
    """asn1tools' Python values in the JSON form."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, tuple) and isinstance(value[0], bytes):
        return value[0].hex().upper()
    if isinstance(value, tuple):
        return {value[0]: plain(value[1])}
    if isinstance(value, bytes):
        return value.hex().upper()
    return value


def expand(modules, cpm):
    """Decodes the containers of a CPM in place, and gives a copy that has them encoded again."""
    again = []
    for container in cpm["payload"]["cpmContainers"]:
        kind = CPM_CONTAINERS.get(container["containerId"])
        if kind is None:
            again.append(dict(container))
            continue
        held = modules.decode(kind, container["containerData"], check_constraints=True)
        again.append({"containerId": container["containerId"], "containerData": modules.encode(kind, held)})
        container["containerData"] = held
    return {**cpm, "payload": {**cpm["payload"], "cpmContainers": again}}


def answer(cam_modules, cpm_modules, kind, octets):
    if kind == "cam":
        value = cam_modules.decode("CAM", octets, check_constraints=True)
        return plain(value), cam_modules.encode("CAM", value)
    value = cpm_modules.decode("CollectivePerceptionMessage", octets, check_constraints=True)
    again = expand(cpm_modules, value)
    return plain(value), cpm_modules.encode("CollectivePerceptionMessage", again)


def main():
    folder = Path(sys.argv[1])
    cam_modules = compile_modules(folder, CAM_FILES)
    cpm_modules = compile_modules(folder, CPM_FILES)
    for line in sys.stdin:
        kind, octets = line.split()
        try:
            value, encoded = answer(cam_modules, cpm_modules, kind, bytes.fromhex(octets))
            print(json.dumps(value), encoded.hex(), sep="\t")
        except Exception as refusal:  # asn1tools raises whatever its input makes it meet
            print("null", " ".join(str(refusal).split()), sep="\t")


main()
