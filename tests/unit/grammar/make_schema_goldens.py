#!/usr/bin/env python3
"""Writes schema_goldens.json: schemas with texts that they accept and refuse, judged by the package jsonschema.

  python3 tests/unit/grammar/make_schema_goldens.py     (needs jsonschema[format-nongpl] 4.x)

Each text is parsed as JSON and validated (2020-12, formats checked). `accept` lists texts that are valid and that the
grammar must accept, `reject` texts that are invalid, or no JSON at all, and that it must refuse. Valid texts outside of
what the grammar generates (docs/structured-output.md) are left out by hand, in `narrow`: they must be valid, and are
not generated.
"""
import json
import pathlib

import jsonschema

CASES = [
    ({"type": "integer"}, ["0", "-7", "12345678901234567890"], ["01", "1.5", "\"1\"", "-", "", "+1", "1e"], ["1.0"]),
    ({"type": "number"}, ["0", "-1.5e-3", "3.25", "1E9", "-0.0"], [".5", "1.", "01", "--1", "1e", "true", "NaN"], []),
    ({"type": ["string", "null"]}, ["null", "\"\"", "\"a\\n\\u00e9\\ud83d\\ude00\"", "\"é😀\""],
     ["\"a", "nul", "\"\\x\"", "\"a\nb\"", "1", "'a'"], []),
    ({"type": "boolean"}, ["true", "false"], ["True", "0", "null"], []),
    ({"enum": ["red", "a\"b", 3, None, {"k": [1, 2]}]}, ["\"red\"", "\"a\\\"b\"", "3", "null", "{\"k\": [1, 2]}", "{\"k\":[1,2]}"],
     ["\"re\"", "\"reds\"", "4", "{}", "{\"k\": [2, 1]}"], ["\"\\u0072ed\""]),
    ({"const": "only"}, ["\"only\""], ["\"other\"", "only"], []),
    ({"type": "string", "enum": ["a", 1, "bb"], "minLength": 2}, ["\"bb\""], ["\"a\"", "1"], []),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"],
      "additionalProperties": False},
     ["{\"a\": 1}", "{\"a\":1,\"b\":\"x\"}", "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"],
     ["{}", "{\"b\": \"x\"}", "{\"a\": 1, \"c\": 2}", "{\"a\": \"1\"}", "{\"a\": 1,}", "{\"a\": 1 \"b\": \"x\"}", "{,\"a\": 1}", "[]"],
     ["{\"b\": \"x\", \"a\": 1}", "{ \"a\":  1}"]),
    ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
      "additionalProperties": False},
     ["{}", "{\"a\": 1}", "{\"b\": 1}", "{\"c\": 1}", "{\"a\": 1, \"c\": 2}", "{\"a\":1,\"b\":2,\"c\":3}", "{\"b\": 1, \"c\": 2}"],
     ["{\"d\": 1}", "{\"a\": 1 \"c\": 2}", "{,}"], []),
    ({"type": "object", "properties": {"ab": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
     ["{\"ab\": 1}", "{\"ab\": 1, \"x\": true}", "{\"x\": true, \"y\": false}", "{\"abc\": true}", "{\"a\": true}", "{\"\": false}"],
     ["{\"ab\": true}", "{\"x\": 1}", "{\"ab\": 1, \"ab\": true}"], ["{\"x\": true, \"ab\": 1}"]),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
     ["{\"a\": 1}", "{\"a\": 1, \"b\": 2}"], ["{}", "{\"a\": 1, \"b\": 2, \"c\": 3}", "{\"a\": null}"], []),
    ({"type": "object", "required": ["x", "y"], "additionalProperties": {"type": "null"}},
     ["{\"x\": null, \"y\": null}", "{\"x\": null, \"y\": null, \"z\": null}"], ["{\"x\": null}", "{\"x\": 1, \"y\": null}"], []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4},
     ["[1, 2]", "[1,2,3,4]", "[\n  1,\n  2\n]"], ["[]", "[1]", "[1,2,3,4,5]", "[1, \"2\"]", "[1,2,]", "[1 2]"], []),
    ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}, "minItems": 1},
     ["[\"a\"]", "[\"a\", 1]", "[\"a\", 1, true, false]"], ["[]", "[1]", "[\"a\", true]", "[\"a\", 1, 2]"], []),
    ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": False}, ["[]", "[1]", "[1, 2]"],
     ["[2]", "[1, 2, 3]", "[1, 3]"], []),
    ({"type": "array", "maxItems": 0}, ["[]"], ["[1]"], []),
    ({"type": "array"}, ["[]", "[1, \"a\", null, [true], {\"k\": {}}]"], ["[1, 2", "{}", "[,]"], []),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["\"ab\"", "\"日本語\"", "\"\\n\\t\"", "\"\\ud83d\\ude00a\"", "\"😀😀😀\""],
     ["\"a\"", "\"abcd\"", "\"\\ud83d\\ude00\"", "\"\""], []),
    ({"type": "string", "pattern": "^[a-z]+$"}, ["\"abc\""], ["\"\"", "\"aB\"", "\"a1\""], ["\"\\u0061\""]),
    ({"type": "string", "pattern": "b+"}, ["\"abbc\"", "\"b\"", "\"\\n b\""], ["\"ac\"", "\"\""], []),
    ({"type": "string", "pattern": "^x|y$"}, ["\"xab\"", "\"aby\""], ["\"axa\"", "\"ya\""], []),
    ({"type": "string", "pattern": "^[^a]\"\\\\$"}, ["\"b\\\"\\\\\"", "\"\\n\\\"\\\\\""], ["\"a\\\"\\\\\"", "\"b\""], []),
    ({"type": "string", "pattern": "^[a-z]*[0-9]$", "minLength": 3, "maxLength": 4}, ["\"ab1\"", "\"abc1\""],
     ["\"a1\"", "\"abcd1\"", "\"abc\""], []),
    ({"type": "string", "format": "date"}, ["\"2024-02-29\"", "\"1999-12-31\"", "\"2000-02-29\""],
     ["\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"2024-1-1\""], []),
    ({"type": "string", "format": "ipv4"}, ["\"127.0.0.1\"", "\"255.255.255.0\""], ["\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""], []),
    ({"type": "string", "format": "ipv6"}, ["\"::1\"", "\"2001:db8::8a2e:370:7334\"", "\"1:2:3:4:5:6:7:8\"", "\"::\"", "\"1::\""],
     ["\"1:2\"", "\"1::2::3\"", "\"12345::\"", "\"1:2:3:4:5:6:7:8:9\""], []),
    ({"type": "string", "format": "uuid"}, ["\"123e4567-e89b-12d3-a456-426614174000\""], ["\"123e4567\"", "\"123e4567-e89b-12d3-a456-42661417400g\""], []),
    ({"type": "string", "format": "email"}, ["\"a.b@example.com\""], ["\"nobody\""], []),
    ({"type": "string", "format": "date", "pattern": "^2024"}, ["\"2024-05-06\""], ["\"2023-05-06\"", "\"2024\""], []),
    ({"type": "integer", "minimum": 0, "maximum": 130}, ["0", "7", "99", "100", "130"], ["-1", "131", "1000", "7.5"], ["-0", "7.0"]),
    ({"type": "integer", "minimum": -12, "exclusiveMaximum": 345}, ["-12", "-9", "-1", "0", "344", "99"], ["-13", "345", "-20", "1000"], []),
    ({"type": "integer", "exclusiveMinimum": 9}, ["10", "11", "100", "99999999999999999999"], ["9", "8", "-10", "0"], []),
    ({"type": "integer", "maximum": -5}, ["-5", "-6", "-10", "-123"], ["-4", "0", "5"], []),
    ({"type": "number", "minimum": 0.5, "maximum": 2.25}, ["0.5", "0.50", "0.51", "1", "1.999", "2.25", "2.250", "2"],
     ["0.49", "0", "2.26", "2.2501", "3", "-1", "10"], ["1e0"]),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, ["0.1", "0.001", "0.999"], ["0", "0.0", "1", "1.0", "-0.5"], []),
    ({"type": "number", "minimum": -1.5, "exclusiveMaximum": 0}, ["-1.5", "-1", "-0.25", "-1.49"], ["-1.51", "0", "1", "-2"], []),
    ({"type": "number", "minimum": 1e3}, ["1000", "1000.5", "99999"], ["999", "999.99", "-1000"], ["1e3"]),
    ({"type": "integer", "multipleOf": 7}, ["0", "7", "-14", "70", "343"], ["1", "-8", "71"], []),
    ({"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 100}, ["5", "95", "100"], ["0", "105", "3"], []),
    ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]}, ["1", "\"ab\""], ["\"abc\"", "null", "1.5"], []),
    ({"type": "string", "anyOf": [{"minLength": 3}, {"const": "x"}]}, ["\"x\"", "\"abc\""], ["\"y\"", "1"], []),
    ({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "v": {"type": "integer"}}, "required": ["kind", "v"]},
                {"type": "object", "properties": {"kind": {"const": "b"}, "w": {"type": "string"}}, "required": ["kind"]}]},
     ["{\"kind\": \"a\", \"v\": 1}", "{\"kind\": \"b\"}", "{\"kind\": \"b\", \"w\": \"x\"}"],
     ["{\"kind\": \"a\"}", "{\"kind\": \"c\"}", "{\"kind\": \"a\", \"v\": \"x\"}"], ["{\"kind\": \"b\", \"z\": 1}"]),
    ({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 10}]}, ["3", "10", "-1"], ["4", "9"], []),
    ({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {"type": "boolean"}, "a": {"minimum": 5}}, "required": ["b"]}]},
     ["{\"a\": 5, \"b\": true}"], ["{\"a\": 4, \"b\": true}", "{\"a\": 5}", "{\"b\": true}"], []),
    ({"allOf": [{"type": "integer"}, {"anyOf": [{"minimum": 10}, {"maximum": -10}]}, {"multipleOf": 2}]}, ["10", "-12", "100"], ["2", "11", "-4"], []),
    ({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"},
      "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v"], "additionalProperties": False}}},
     ["{\"v\": 1}", "{\"v\": 1, \"next\": null}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": {\"v\": 3}}}"],
     ["{}", "{\"v\": 1, \"next\": {}}", "{\"v\": 1, \"next\": {\"v\": 2}", "{\"v\": 1, \"next\": 3}"], []),
    ({"type": "array", "items": {"$ref": "#"}}, ["[]", "[[], [[]]]"], ["[1]", "[[]"], []),
    ({"type": "object", "properties": {"a/b~c": {"type": "integer"}, "d": {"$ref": "#/properties/a~1b~0c"}}},
     ["{\"a/b~c\": 1, \"d\": 2}"], ["{\"d\": \"x\"}"], []),
    ({"type": "object", "properties": {"é\"\n": {"const": True}}, "required": ["é\"\n"]}, ["{\"é\\\"\\n\": true}"], ["{\"e\": true}", "{}"], []),
    ({}, ["1", "null", "\"x\"", "[1, {\"a\": []}]", "{\"a\": {\"b\": [1, 2]}}"], ["", "nope", "{a: 1}", "[1"], []),
    (True, ["1", "{}"], ["nope"], []),
    ({"title": "t", "description": "d", "default": 1, "type": "integer", "examples": [1], "$comment": "c"}, ["4"], ["\"x\""], []),
    ({"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object", "unevaluatedProperties": False},
     ["{\"a\": 1}"], ["{\"a\": 1, \"b\": 2}"], []),
]


def valid(validator, text):
    try:
        value = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    except ValueError:
        return False
    return validator.is_valid(value)


def main():
    out = []
    for schema, accept, reject, narrow in CASES:
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(
            schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for text in accept + narrow:
            assert valid(validator, text), (schema, text, "is refused")
        for text in reject:
            assert not valid(validator, text), (schema, text, "is valid")
        out.append({"schema": json.dumps(schema, ensure_ascii=False), "accept": accept, "reject": reject, "narrow": narrow})
    path = pathlib.Path(__file__).with_name("schema_goldens.json")
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in out)
    path.write_text("[\n" + lines + "\n]\n", encoding="utf-8")
    print(f"{path.name}: {len(out)} schemas, {sum(len(c['accept']) + len(c['reject']) + len(c['narrow']) for c in out)} texts")


if __name__ == "__main__":
    main()
