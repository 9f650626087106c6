"""python3 as_float16.py FILE.safetensors: writes its bfloat16 tensors as float16, in place. config.test reads it."""

import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    header, data = json.loads(file.read(size)), file.read()
count = len(data) // 2
for name, tensor in header.items():
    if name == "__metadata__":
        continue
    assert tensor["dtype"] == "BF16", name
    tensor["dtype"] = "F16"
bits = struct.unpack(f"<{count}H", data)
numbers = struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(b << 16 for b in bits)))
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + struct.pack(f"<{count}e", *numbers))
