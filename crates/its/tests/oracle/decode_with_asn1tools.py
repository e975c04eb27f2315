"""Decodes CAMs, DENMs, CPMs and VAMs with asn1tools over ETSI's ASN.1 modules.

Arguments: the folder of the modules. Standard input: lines `cam HEX`, `denm HEX`, `cpm HEX`, `vam HEX`; `cam1` and `denm1`
are the modules of release 1. Standard output: for each line the JSON
form that viaduct-etsi documents (but for a BIT STRING of variable size, which is text too), and behind it, after a tab, the
message encoded again by asn1tools, as HEX. A message that asn1tools refuses is `null`, and behind it the reason.
"""

import json
import re
import sys
from pathlib import Path

import asn1tools

# Of each message: the files of its modules, and its type.
MESSAGES = {
    "cam": (["TS102894-2v241-CDD.asn", "TS103900v231-CAM.asn"], "CAM"),
    "denm": (["TS102894-2v241-CDD.asn", "TS103831v231-DENM.asn"], "DENM"),
    "cpm": (
        [
            "TS102894-2v241-CDD.asn",
            "TS103324v211/CPM-OriginatingStationContainers.asn",
            "TS103324v211/CPM-SensorInformationContainer.asn",
            "TS103324v211/CPM-PerceptionRegionContainer.asn",
            "TS103324v211/CPM-PerceivedObjectContainer.asn",
            "TS103324v211/CPM-PDU-Descriptions.asn",
        ],
        "CollectivePerceptionMessage",
    ),
    "vam": (["TS102894-2v241-CDD.asn", "TS103300-3v231/VAM-PDU-Descriptions.asn"], "VAM"),
    "cam1": (["TS102894-2v131-CDD.asn", "EN302637-2v141-CAM.asn"], "CAM"),
    "denm1": (["TS102894-2v131-CDD.asn", "EN302637-3v131-DENM.asn"], "DENM"),
}
# Types with a DEFAULT value that the modules give by name, and its number.
DEFAULTS = [
    ("AltitudeValue", "unavailable", 800001),
    ("DeltaAltitude", "unavailable", 12800),
    ("LaneType", "traffic", 0),
    ("Direction", "sameDirection", 0),
    ("DeltaTimeSecond", "defaultValidity", 600),
    ("ValidityDuration", "defaultValidity", 600),
]
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


def compile_modules(folder, names):
    return asn1tools.compile_string("\n".join(clean(folder / name) for name in names), "uper")


def clean(path):
    """The module without what asn1tools does not parse; none of it changes the encoding."""
    octets = path.read_bytes()
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        text = octets.decode("cp1252")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"--[^\n]*", " ", text)
    text = re.sub(r"WITH\s+(SUCCESSORS|DESCENDANTS)", " ", text)
    # A union of values constrains by its outer bounds in PER (X.691, 10.5); asn1tools takes it for something else.
    text = text.replace("(unknown|passengerCar..tram|agricultural)", "(0..14)")
    text = re.sub(r"VruSubProfileBicyclist \(unavailable[^)]*\)", "VruSubProfileBicyclist (0..10)", text)
    # A size behind a reference to a type narrows the size of the type (X.680, 50.8); asn1tools ignores it.
    text = re.sub(
        r"SequenceOfCartesianPosition3d\s*\(SIZE\(3\.\.16,\s*\.\.\.\)\)",
        "SEQUENCE (SIZE(3..16,...)) OF CartesianPosition3d",
        text,
    )
    # asn1tools does not look the names of default values up.
    for type_name, name, number in DEFAULTS:
        text = re.sub(rf"\b{type_name}\s+DEFAULT\s+{name}\b", f"{type_name} DEFAULT {number}", text)
    return without_inner_subtypes(text)


def without_inner_subtypes(text):
    """Removes every constraint in parentheses that has `WITH COMPONENT` in it."""
    out = []
    at = 0
    while at < len(text):
        if text[at] == "(":
            end = closing(text, at)
            inside = text[at : end + 1]
            if "WITH COMPONENT" in inside:
                at = end + 1
                continue
        out.append(text[at])
        at += 1
    return "".join(out)


def closing(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("a parenthesis is not closed")


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


def containers_of(kind, value):
    """The open types of a message, in place, and what their numbers mean."""
    if kind == "cpm":
        return value["payload"]["cpmContainers"], CPM_CONTAINERS
    if kind == "cam":
        return value["cam"]["camParameters"].get("extensionContainers", []), CAM_CONTAINERS
    return [], {}


def answer(modules, kind, octets):
    """The value with its open types decoded, and the message encoded again."""
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
        except Exception as refusal:  # asn1tools raises whatever its input makes it meet
            print("null", " ".join(str(refusal).split()), sep="\t")


main()
