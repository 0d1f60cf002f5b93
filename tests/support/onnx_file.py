"""Reads an ONNX file without any package: protobuf's wire format and the few messages of onnx.proto that are checked.

model(path) -> {"opset", "ir", "metadata", "nodes": [(type, inputs, outputs)], "constants": {name: (shape, floats)}, "inputs", "outputs"}
where inputs and outputs are {name: (type of element, shape)}.
"""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """[(number, value)]: int for varints, bytes for the rest."""
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = {1: lambda: (8, at), 5: lambda: (4, at), 2: lambda: varint(data, at)}[kind]()
            value = data[at:at + size]
            assert len(value) == size, "cut off"
            at += size
        found.append((key >> 3, value))
    return found


def of(message, number):
    return [value for n, value in message if n == number]


def value_info(data):
    message = fields(data)
    tensor = fields(of(fields(of(message, 2)[0]), 1)[0])
    dims = [fields(d) for d in of(fields(of(tensor, 2)[0]), 1)]
    shape = [of(d, 1)[0] if of(d, 1) else of(d, 2)[0].decode() for d in dims]
    return of(message, 1)[0].decode(), (of(tensor, 1)[0], shape)


def constant(data):
    message = fields(data)
    raw = of(message, 9)[0]
    assert of(message, 2) == [1], "not fp32"
    return of(message, 8)[0].decode(), (of(message, 1), struct.unpack(f"<{len(raw) // 4}f", raw))


def node(data):
    message = fields(data)
    text = lambda number: [v.decode() for v in of(message, number)]
    return text(4)[0], text(1), text(2)


def model(path):
    message = fields(open(path, "rb").read())
    graph = fields(of(message, 7)[0])
    entries = [fields(e) for e in of(message, 14)]
    return {
        "ir": of(message, 1)[0],
        "opset": of(fields(of(message, 8)[0]), 2)[0],
        "metadata": {of(e, 1)[0].decode(): of(e, 2)[0].decode() for e in entries},
        "nodes": [node(n) for n in of(graph, 1)],
        "constants": dict(constant(t) for t in of(graph, 5)),
        "inputs": dict(value_info(v) for v in of(graph, 11)),
        "outputs": dict(value_info(v) for v in of(graph, 12)),
    }
