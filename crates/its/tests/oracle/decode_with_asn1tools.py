"""Decodes CAMs, DENMs, CPMs and VAMs with asn1tools over ETSI's ASN.1 modules.

Argument: the folder of the modules.

Standard input: lines `cam HEX`, `denm HEX`, `cpm HEX`, `vam HEX`. `cam1` and `denm1` select the modules of release 1.

Standard output: a line of two columns, with a tab between them, for each line of the input:

- the JSON form that viaduct-asn1 documents, except that a BIT STRING of variable size is text; `null` if asn1tools rejects
  the message
- the message that asn1tools encoded again, as HEX; the reason if asn1tools rejects the message
"""

import json
import sys
from pathlib import Path

from modules import CDD, compile_modules

# Files of the modules, and type, of each message.
MESSAGES = {
    "cam": ([CDD, "TS103900v231-CAM.asn"], "CAM"),
    "denm": ([CDD, "TS103831v231-DENM.asn"], "DENM"),
    "cpm": (
        [
            CDD,
            "TS103324v211/CPM-OriginatingStationContainers.asn",
            "TS103324v211/CPM-SensorInformationContainer.asn",
            "TS103324v211/CPM-PerceptionRegionContainer.asn",
            "TS103324v211/CPM-PerceivedObjectContainer.asn",
            "TS103324v211/CPM-PDU-Descriptions.asn",
        ],
        "CollectivePerceptionMessage",
    ),
    "vam": ([CDD, "TS103300-3v231/VAM-PDU-Descriptions.asn"], "VAM"),
    "cam1": (["TS102894-2v131-CDD.asn", "EN302637-2v141-CAM.asn"], "CAM"),
    "denm1": (["TS102894-2v131-CDD.asn", "EN302637-3v131-DENM.asn"], "DENM"),
}
CAM_CONTAINERS = {
    1: "TwoWheelerContainer",
    2: "EHorizonLocationSharingContainer",
    3: "VeryLowFrequencyContainer",
    4: "PathPredictionContainer",
    5: "GeneralizedLanePositionsContainer",
    6: "VehicleMovementControlContainer",
}
CPM_CONTAINERS = {
    1: "OriginatingVehicleContainer",
    2: "OriginatingRsuContainer",
    3: "SensorInformationContainer",
    4: "PerceptionRegionContainer",
    5: "PerceivedObjectContainer",
}


def plain(value):
    """Returns the JSON form of a Python value of asn1tools."""
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


def containers_of(kind, value):
    """Returns the open types of a message, which may be changed in place, and the type of each container number."""
    if kind == "cpm":
        return value["payload"]["cpmContainers"], CPM_CONTAINERS
    if kind == "cam":
        return value["cam"]["camParameters"].get("extensionContainers", []), CAM_CONTAINERS
    return [], {}


def answer(modules, kind, octets):
    """Returns the value with its open types decoded, and the message encoded again."""
    name = MESSAGES[kind][1]
    value = modules.decode(name, octets, check_constraints=True)
    containers, types = containers_of(kind, value)
    shown = []
    for container in containers:
        held_type = types.get(container["containerId"])
        held = container["containerData"]
        if held_type is not None:
            held = modules.decode(held_type, held, check_constraints=True)
            container["containerData"] = modules.encode(held_type, held)
        shown.append({"containerId": container["containerId"], "containerData": held})
    again = modules.encode(name, value)
    for container, decoded in zip(containers, shown):
        container.update(decoded)
    return plain(value), again


def main():
    folder = Path(sys.argv[1])
    compiled = {}
    for line in sys.stdin:
        kind, octets = line.split()
        if kind not in compiled:
            compiled[kind] = compile_modules(folder, MESSAGES[kind][0])
        try:
            value, encoded = answer(compiled[kind], kind, bytes.fromhex(octets))
            print(json.dumps(value), encoded.hex(), sep="\t")
        except Exception as refusal:  # asn1tools raises many types of exceptions
            print("null", " ".join(str(refusal).split()), sep="\t")


main()
