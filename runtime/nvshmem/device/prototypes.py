# SPDX-License-Identifier: BSD-3-Clause
"""Tables of prototypes, a family in a line: "AMO | TYPE NAME_fetch(const TYPE *, int)" stands for one function for each type of
the family AMO. kernels.txt here and the tables of tests/house are written so."""
import re

AMO = ("int=int long=long longlong=long_long uint=unsigned_int ulong=unsigned_long ulonglong=unsigned_long_long int32=int32_t "
       "int64=int64_t uint32=uint32_t uint64=uint64_t size=size_t ptrdiff=ptrdiff_t")
BITWISE = " ".join(word for word in AMO.split() if not re.match("int=|long=|longlong=|size|ptrdiff", word))
SYNC = "short=short ushort=unsigned_short " + AMO
FLOAT = "float=float double=double "

# Names of types with the types, where NVSHMEM has them.
INTEGER = ("char=char schar=signed_char short=short uchar=unsigned_char ushort=unsigned_short int8=int8_t int16=int16_t "
           "uint8=uint8_t uint16=uint16_t " + AMO)
NVSHMEM = {
    "RMA": "half=HALF bfloat16=BFLOAT16 " + FLOAT + INTEGER,
    "INTEGER": INTEGER,
    "EXTENDED": FLOAT + AMO,
    "AMO": AMO,
    "BITWISE": BITWISE,
    "SYNC": SYNC,
    "FLOATING": "half=HALF " + FLOAT,
}
SIZES = {"SIZES": (8, 16, 32, 64, 128), "FORMS": (8, 16, 32, 64, 128, "mem"), "OLD_SIZES": (32, 64)}


def operators(text):
    """X_OPS{and,or}_Y: X_and_Y and X_or_Y."""
    match = re.search(r"OPS\{([\w,]+)\}", text)
    return [text[:match.start()] + op + text[match.end():] for op in match[1].split(",")] if match else [text]


def expanded(family, text, families):
    """The prototypes of a line whose family is one of `families`, or of SIZES, or none of both ("-", "CUDA")."""
    if family in SIZES:
        return [one.replace("SIZE", str(bits)) for bits in SIZES[family] for one in operators(text)]
    if family in ("-", "CUDA"):
        return operators(text)
    kinds = [word.split("=") for word in families[family].split()]
    return [re.sub(r"\bTYPE\b", kind.replace("_t", "@t").replace("_", " ").replace("@", "_"), one.replace("NAME", name))
            for name, kind in kinds for one in operators(text)]


def rows(path):
    """The columns of each line that is no comment."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#") and "|" in line:
                yield [part.strip() for part in line.split("|")]


def words(path):
    """All words of the lines that are no comments."""
    with open(path, encoding="utf-8") as file:
        return {word for line in file if not line.startswith("#") for word in line.split()}


def signature(text):
    """Result, name, parameters."""
    return re.match(r"(.*?[ *])(\w+)\((.*)\)$", text).groups()
