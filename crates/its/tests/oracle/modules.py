"""ETSI's ASN.1 modules, compiled by asn1tools."""

import re

import asn1tools

CDD = "TS102894-2v241-CDD.asn"
# Types with a DEFAULT value that the modules define by a name: type, name and number.
DEFAULTS = [
    ("AltitudeValue", "unavailable", 800001),
    ("DeltaAltitude", "unavailable", 12800),
    ("LaneType", "traffic", 0),
    ("Direction", "sameDirection", 0),
    ("DeltaTimeSecond", "defaultValidity", 600),
    ("ValidityDuration", "defaultValidity", 600),
]


def compile_modules(folder, names):
    return asn1tools.compile_string("\n".join(clean(folder / name) for name in names), "uper")


def clean(path):
    """Returns the module without the syntax that asn1tools does not parse. This does not change the encoding."""
    octets = path.read_bytes()
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        text = octets.decode("cp1252")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"--[^\n]*", " ", text)
    text = re.sub(r"WITH\s+(SUCCESSORS|DESCENDANTS)", " ", text)
    # In PER, a union of values constrains by its outer bounds (X.691, 10.5); asn1tools misinterprets it.
    text = text.replace("(unknown|passengerCar..tram|agricultural)", "(0..14)")
    text = re.sub(r"VruSubProfileBicyclist \(unavailable[^)]*\)", "VruSubProfileBicyclist (0..10)", text)
    # A size after a reference to a type restricts the size of the type (X.680, 50.8); asn1tools ignores it.
    text = re.sub(
        r"SequenceOfCartesianPosition3d\s*\(SIZE\(3\.\.16,\s*\.\.\.\)\)",
        "SEQUENCE (SIZE(3..16,...)) OF CartesianPosition3d",
        text,
    )
    # asn1tools does not resolve the names of default values.
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
