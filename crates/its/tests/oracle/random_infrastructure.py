"""Draws random valid messages of infrastructure services over pycrate's ASN.1 modules and encodes them with pycrate.

Arguments: the kind of message, the number of messages, the seed. Standard output: the same as that of `random_messages.py`.

pycrate's modules are of an earlier edition (TS 103 301 V1) than those of this project. Their members are encoded alike.
Extension additions that only this project's edition has are not drawn.
"""

import json
import random
import sys

from pycrate_asn1dir import ITS_IS

# Number of values in one message above which lists are short and optional members absent.
VALUES_MAX = 400
TEXT = '"\\/ azAZ09~'

KINDS = {
    "ivim": (ITS_IS.IVIM_PDU_Descriptions.IVIM, 6),
    "mapem": (ITS_IS.MAPEM_PDU_Descriptions.MAPEM, 5),
    "spatem": (ITS_IS.SPATEM_PDU_Descriptions.SPATEM, 4),
    "srem": (ITS_IS.SREM_PDU_Descriptions.SREM, 9),
    "ssem": (ITS_IS.SSEM_PDU_Descriptions.SSEM, 10),
}

# Members with another name in this project's edition, and the same octets.
RENAMED = {
    "originatingStationID": "originatingStationId",
    "euVehilcleCategoryT": "euVehicleCategoryT",
    "euVehilcleCategoryG": "euVehicleCategoryG",
    "vehicleHeigthOverall": "vehicleHeightOverall",
    "emissionCO": "emissionCo",
    "emissionHC": "emissionHc",
    "emissionNOX": "emissionNox",
    "emissionHCNOX": "emissionHcNox",
    "soundstationary": "soundStationary",
    "sounddriveby": "soundDriveBy",
    "segment": "segment-carriagewayOrLane",
    **{f"maxLadenweightOnAxle{axle}": f"maxLadenWeightOnAxle{axle}" for axle in range(1, 6)},
}
# Values of one enumeration (`VehicleRole`) with another name in this project's edition.
RENAMED_USAGES = {"reserved1": "uvar", "reserved2": "rfu1", "reserved3": "rfu2"}
# Enumerations that are integers in this project's edition, with the same octets.
NUMBERED = {"euroValue", "copValue", "unitType"}


class Drawer:
    """Draws values of pycrate's types: each as pycrate's Python value and as the JSON form."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.methods = {
            "SEQUENCE": self.sequence,
            "SEQUENCE OF": self.sequence_of,
            "CHOICE": self.choice,
            "INTEGER": self.integer,
            "ENUMERATED": self.enumerated,
            "BOOLEAN": self.boolean,
            "NULL": self.null,
            "BIT STRING": self.bit_string,
            "OCTET STRING": self.octet_string,
            "IA5String": self.text,
            "NumericString": self.digits,
            "UTF8String": self.text,
        }

    def message(self, kind):
        self.left = VALUES_MAX
        self.in_destination = False
        self.beyond = False
        self.presence = self.random.choice([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
        return self.draw(kind)

    def draw(self, kind):
        self.left -= 1
        return self.methods[kind.TYPE](kind)

    def chance(self, probability):
        return self.random.random() < probability

    def sequence(self, kind):
        if list(kind._cont) == ["regionId", "regExtValue"]:
            return self.regional()
        value, shown = {}, {}
        additions = self.additions(kind)
        for name, member in kind._cont.items():
            if name in (kind._ext or []):
                if name not in additions:
                    continue
            elif (member._opt or member._def is not None) and not self.is_present():
                continue
            held, held_shown = self.draw(member)
            if member._def is None or held != member._def:
                value[name], shown[RENAMED.get(name, name)] = held, held_shown
        return value, shown

    def additions(self, kind):
        """Returns the names of the drawn extension additions: all mandatory ones, or a random choice if all are optional.

        pycrate rejects a second addition in a group that has a mandatory one.
        """
        if not kind._ext or not self.is_present():
            return []
        mandatory = [name for name in kind._ext if not kind._cont[name]._opt]
        return mandatory or [name for name in kind._ext if self.is_present()]

    def is_present(self):
        return self.left > 0 and self.chance(self.presence)

    def regional(self):
        """Returns a regional extension whose content no edition defines."""
        region = self.random.choice([0, 4, 128, 255])
        octets = self.random.randbytes(self.random.randint(1, 20))
        return (
            {"regionId": region, "regExtValue": ("_unk_004", octets)},
            {"regionId": region, "regExtValue": octets.hex().upper()},
        )

    def sequence_of(self, kind):
        drawn = [self.draw(kind._cont) for _ in range(self.size(kind))]
        return [value for value, _ in drawn], [shown for _, shown in drawn]

    def size(self, kind):
        low, high = bounds(kind._const_sz)
        if kind._const_sz.ext is not None and self.chance(0.03):
            self.beyond = True
            # The last of these sizes needs a length of two octets.
            return self.random.choice([size for size in (low - 1, high + 1, high + 127) if size >= 0])
        if self.left <= 0 or self.chance(0.3):
            return low
        if self.chance(0.1) and high * 8 <= self.left:
            return high
        return min(high, low + int(self.random.expovariate(0.5)))

    def choice(self, kind):
        # A sign's destinations may have signs again, which pycrate cannot encode: one object holds both values.
        names = [name for name in kind._cont if name != "ddd" or not self.in_destination]
        name = self.random.choice(names)
        outer, self.in_destination = self.in_destination, self.in_destination or name == "ddd"
        value, shown = self.draw(kind._cont[name])
        self.in_destination = outer
        return (name, value), {RENAMED.get(name, name): shown}

    def integer(self, kind):
        low, high = self.random.choice(parts(kind._const_val))
        if self.chance(0.4):
            drawn = self.random.choice([low, high, min(low + 1, high), max(high - 1, low), min(max(0, low), high)])
        else:
            drawn = self.random.randint(low, high)
        return drawn, drawn

    def enumerated(self, kind):
        name = self.random.choice(list(kind._cont))
        if kind._name in NUMBERED:
            return name, kind._cont[name]
        return name, RENAMED_USAGES.get(name, name) if kind._name == "usage" else name

    def boolean(self, _):
        value = self.chance(0.5)
        return value, value

    def null(self, _):
        return 0, None

    def bit_string(self, kind):
        low, high = bounds(kind._const_sz)
        length = self.random.randint(low, high)
        number = self.random.getrandbits(length)
        octets = (number << -length % 8).to_bytes((length + 7) // 8, "big")
        shown = octets.hex().upper()
        if low != high or kind._const_sz.ext is not None:
            shown = {"value": shown, "length": length}
        return (number, length), shown

    def octet_string(self, kind):
        octets = self.random.randbytes(self.length(kind))
        return octets, octets.hex().upper()

    def text(self, kind):
        text = "".join(self.random.choices(TEXT, k=self.length(kind)))
        return text, text

    def digits(self, kind):
        text = "".join(self.random.choices("0123456789 ", k=self.length(kind)))
        return text, text

    def length(self, kind):
        low, high = bounds(kind._const_sz) if kind._const_sz else (0, 20)
        return self.random.randint(low, high)


def parts(constraint):
    """Returns the ranges of the root of a constraint."""
    return [(part, part) if isinstance(part, int) else (part.lb, part.ub) for part in constraint.root]


def bounds(constraint):
    """Returns the lowest and the highest value of the root of a constraint."""
    return min(low for low, _ in parts(constraint)), max(high for _, high in parts(constraint))


def main():
    (kind, number), count, seed = KINDS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    drawer = Drawer(seed)
    for _ in range(count):
        value, shown = drawer.message(kind)
        # Outside the header, `stationID` keeps its name.
        value["header"].update({"protocolVersion": 2, "messageID": number})
        shown["header"] = {"protocolVersion": 2, "messageId": number, "stationId": value["header"]["stationID"]}
        kind.set_val(value)
        print("beyond" if drawer.beyond else "root", kind.to_uper().hex(), json.dumps(shown), sep="\t")


main()
