"""Draws random valid messages over ETSI's ASN.1 modules and encodes them with asn1tools.

Arguments: the folder of the modules, the kind of message, the number of messages, the seed. Standard output: for each message
a line of three columns with tabs between them:

- `beyond` if a list has more or fewer elements than the root of its extensible size allows, otherwise `root`;
- the message in UPER, as HEX;
- the JSON form that viaduct-etsi documents.

A value is drawn by a walk over the types that asn1tools compiled from the modules. The types of this project are not used.
"""

import json
import random
import sys
from pathlib import Path

from modules import CDD, compile_modules

# Number of values in one message above which lists are short and optional members absent.
VALUES_MAX = 500
# Characters of texts: characters that JSON escapes, and plain ones; UNICODE_TEXT adds characters of several octets.
TEXT = '"\\/ azAZ09~\x00\x1f\x7f'
UNICODE_TEXT = TEXT + "äß€𝄞"

# Members whose INTEGER may have these values only; `modules.py` passes the enclosing range to asn1tools.
PERMITTED = {
    "vehicleSubClass": [0, 5, 6, 7, 8, 9, 10, 11, 14],
    "vruSubProfileBicyclist": [0, 1, 5, 7, 8, 9, 10],
}

CPM_CONTAINERS = {
    1: "OriginatingVehicleContainer",
    2: "OriginatingRsuContainer",
    3: "SensorInformationContainer",
    4: "PerceptionRegionContainer",
    5: "PerceivedObjectContainer",
}
CAM_CONTAINERS = {
    1: "TwoWheelerContainer",
    2: "EHorizonLocationSharingContainer",
    3: "VeryLowFrequencyContainer",
    4: "PathPredictionContainer",
    5: "GeneralizedLanePositionsContainer",
    6: "VehicleMovementControlContainer",
}

# Files, type, protocolVersion and messageId, and types of the containers that are open types, by kind of message.
KINDS = {
    "cam": ([CDD, "TS103900v231-CAM.asn"], "CAM", (2, 2), CAM_CONTAINERS),
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
        (2, 14),
        CPM_CONTAINERS,
    ),
    "denm": ([CDD, "TS103831v231-DENM.asn"], "DENM", (2, 1), {}),
    "vam": ([CDD, "TS103300-3v231/VAM-PDU-Descriptions.asn"], "VAM", (3, 16), {}),
}


class Drawer:
    """Draws values of compiled types: each as asn1tools' Python value and as the JSON form."""

    def __init__(self, modules, containers, seed):
        self.modules = modules
        self.containers = containers
        self.random = random.Random(seed)
        self.methods = {
            "Sequence": self.sequence,
            "SequenceOf": self.sequence_of,
            "Choice": self.choice,
            "Integer": self.integer,
            "Enumerated": self.enumerated,
            "Boolean": self.boolean,
            "Null": self.null,
            "BitString": self.bit_string,
            "OctetString": self.octet_string,
            "IA5String": self.ia5_string,
            "NumericString": self.numeric_string,
            "UTF8String": self.utf8_string,
        }

    def message(self, name):
        self.left = VALUES_MAX
        self.beyond = False
        # 0.0 draws messages with the mandatory members only, 1.0 messages with all members.
        self.presence = self.random.choice([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
        return self.draw(self.compiled(name))

    def compiled(self, name):
        return self.modules.types[name].type

    def draw(self, kind):
        self.left -= 1
        return self.methods[type(kind).__name__](kind)

    def chance(self, probability):
        return self.random.random() < probability

    def sequence(self, kind):
        names = [member.name for member in kind.root_members]
        if names == ["containerId", "containerData"]:
            return self.container(kind)
        value, shown = {}, {}
        for member in kind.root_members:
            self.member(member, value, shown)
        for addition in kind.additions or []:
            self.addition(addition, value, shown)
        return value, shown

    def member(self, member, value, shown):
        if member.default is not None:
            return self.member_with_default(member, value, shown)
        if not member.optional or self.is_present():
            value[member.name], shown[member.name] = self.draw(member)

    def member_with_default(self, member, value, shown):
        """Draws a member with a default value. The default value is shown but not sent (X.691, 19.5)."""
        default = shown[member.name] = member.default
        if self.is_present():
            held, shown[member.name] = self.draw(member)
            if held != default:
                value[member.name] = held

    def is_present(self):
        return self.left > 0 and self.chance(self.presence)

    def addition(self, addition, value, shown):
        if type(addition).__name__ != "AdditionGroup":
            self.member(addition, value, shown)
        elif self.is_present():
            for member in addition.root_members:
                self.member(member, value, shown)

    def container(self, kind):
        """Draws a container: an identifier, and an open type with the content of that identifier."""
        if self.chance(0.9):
            number, name = self.random.choice(list(self.containers.items()))
            held, shown = self.draw(self.compiled(name))
            octets = bytes(self.modules.encode(name, held))
        else:
            number = self.random.randint(len(self.containers) + 1, 16)
            octets = self.random.randbytes(self.random.randint(1, 200))
            shown = octets.hex().upper()
        value = {"containerId": number, "containerData": octets}
        return value, {"containerId": number, "containerData": shown}

    def sequence_of(self, kind):
        drawn = [self.draw(kind.element_type) for _ in range(self.size(kind))]
        return [value for value, _ in drawn], [shown for _, shown in drawn]

    def size(self, kind):
        low, high = kind.minimum or 0, kind.maximum
        if kind.has_extension_marker and self.chance(0.03):
            self.beyond = True
            # The last of these sizes needs a length of two octets.
            return self.random.choice([size for size in (low - 1, high + 1, high + 127) if size >= 0])
        if self.left <= 0 or self.chance(0.3):
            return low
        if self.chance(0.1) and high * 8 <= self.left:
            return high
        return min(high, low + int(self.random.expovariate(0.5)))

    def choice(self, kind):
        members = list(kind.root_index_to_member.values())
        members += (kind.additions_index_to_member or {}).values()
        member = self.random.choice(members)
        value, shown = self.draw(member)
        return (member.name, value), {member.name: shown}

    def integer(self, kind):
        low, high = kind.minimum, kind.maximum
        if kind.name in PERMITTED and (low, high) in ((0, 10), (0, 14)):
            drawn = self.random.choice(PERMITTED[kind.name])
        elif kind.has_extension_marker and self.chance(0.02):
            drawn = self.random.choice([high + 1, high + self.random.randint(1, 1 << 16)])
        elif self.chance(0.4):
            drawn = self.random.choice([low, high, min(low + 1, high), max(high - 1, low), min(max(0, low), high)])
        else:
            drawn = self.random.randint(low, high)
        return drawn, drawn

    def enumerated(self, kind):
        names = list(kind.root_data_to_index) + list(kind.additions_data_to_index or {})
        name = self.random.choice(names)
        return name, name

    def boolean(self, _):
        value = self.chance(0.5)
        return value, value

    def null(self, _):
        return None, None

    def bit_string(self, kind):
        length = self.random.randint(kind.minimum, kind.maximum)
        bits = [self.random.randint(0, 1) for _ in range(length)]
        if kind.has_named_bits:
            # Zeros at the end of named bits are not sent (X.691, 16.3).
            while len(bits) > kind.minimum and bits[-1] == 0:
                bits.pop()
        text = "".join(map(str, bits))
        octets = bytes(int(text[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(text), 8))
        shown = octets.hex().upper()
        if kind.minimum != kind.maximum or kind.has_extension_marker:
            shown = {"value": shown, "length": len(bits)}
        return (octets, len(bits)), shown

    def octet_string(self, kind):
        octets = self.random.randbytes(self.text_size(kind))
        return octets, octets.hex().upper()

    def text_size(self, kind):
        low, high = getattr(kind, "minimum", None), getattr(kind, "maximum", None)
        return self.random.randint(low or 0, 40 if high is None else high)

    def ia5_string(self, kind):
        return self.text(TEXT, self.text_size(kind))

    def numeric_string(self, kind):
        return self.text("0123456789 ", self.text_size(kind))

    def utf8_string(self, _):
        # Every UTF8String of the modules permits 1 to 24 characters; the size is not visible in PER.
        return self.text(UNICODE_TEXT, self.random.randint(1, 24))

    def text(self, characters, length):
        text = "".join(self.random.choices(characters, k=length))
        return text, text


def main():
    folder, kind, count, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    files, name, (version, number), containers = KINDS[kind]
    modules = compile_modules(folder, files)
    drawer = Drawer(modules, containers, seed)
    for _ in range(count):
        value, shown = drawer.message(name)
        for header in (value["header"], shown["header"]):
            header["protocolVersion"], header["messageId"] = version, number
        octets = modules.encode(name, value)
        print("beyond" if drawer.beyond else "root", octets.hex(), json.dumps(shown), sep="\t")


main()
