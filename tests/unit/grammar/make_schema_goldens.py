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
    ({"type": "integer", "x-order": 3, "readonly": True, "self": {"vendor": "v"}, "format": "int32"}, ["4"], ["\"x\"", "1.5"], []),
    ({"type": "string", "format": "colour"}, ["\"red\""], ["1"], []),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "patternProperties": {"^x-": {"type": "boolean"}},
      "additionalProperties": False},
     ["{}", "{\"a\": 1}", "{\"a\": 1, \"x-b\": true}", "{\"x-\": false, \"x-y\": true}"],
     ["{\"x-b\": 1}", "{\"b\": true}", "{\"ax-\": true}", "{\"a\": true}"], ["{\"x-b\": true, \"a\": 1}"]),
    ({"patternProperties": {"a": {"type": "integer"}, "b$": {"minimum": 5}}, "additionalProperties": {"type": "null"}},
     ["{\"a\": 1}", "{\"ab\": 5}", "{\"b\": 5}", "{\"c\": null}", "{\"ba\": 1}"],
     ["{\"ab\": 4}", "{\"a\": 1.5}", "{\"ab\": \"x\"}", "{\"b\": 4}", "{\"c\": 1}"], ["{\"b\": \"x\"}"]),
    ({"properties": {"ab": {"minimum": 2}}, "patternProperties": {"^a": {"type": "integer"}}}, ["{\"ab\": 2}", "{\"ac\": 1}"],
     ["{\"ab\": 1}", "{\"ab\": \"x\"}", "{\"ab\": 2.5}", "{\"ac\": \"x\"}"], []),
    ({"type": "object", "propertyNames": {"pattern": "^[a-c]+$", "maxLength": 2}, "additionalProperties": {"type": "integer"}},
     ["{}", "{\"ab\": 1, \"c\": 2}"], ["{\"abc\": 1}", "{\"d\": 1}", "{\"a\": null}"], []),
    ({"propertyNames": {"enum": ["p", "q"]}}, ["{\"p\": 1, \"q\": null}"], ["{\"r\": 1}", "{\"pq\": 1}"], ["1"]),
    ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, ["1", "2.5", "-3"], ["2", "3", "1.5"], []),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": {"a": {}, "b": {}, "c": {}}},
     ["{\"a\": 1}", "{\"b\": 1, \"c\": 2}"], ["{}", "{\"a\": 1, \"b\": 2}", "{\"c\": 1}"], []),
    ({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^a"}, {"const": 1}]},
     ["\"bc\"", "\"abcd\"", "1"], ["\"ab\"", "\"bcde\"", "2"], []),
    ({"not": {"type": ["string", "integer"]}}, ["1.5", "null", "[]"], ["1", "\"x\""], []),
    ({"type": "string", "not": {"enum": ["a", "b"]}}, ["\"c\"", "\"ab\"", "\"\""], ["\"a\"", "\"b\"", "\"\\u0061\""], []),
    ({"type": "string", "not": {"pattern": "^a|z"}}, ["\"ba\""], ["\"ab\"", "\"bzb\""], []),
    ({"type": "number", "not": {"const": 1}}, ["2", "1.5", "0"], ["1", "1.0", "1e0", "10e-1"], []),
    ({"type": "integer", "not": {"minimum": 3, "maximum": 7}}, ["2", "8", "-9"], ["3", "5", "7"], []),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}}, ["{}", "{\"a\": 1}", "{\"b\": 1}"],
     ["{\"a\": 1, \"b\": 2}"], []),
    ({"not": {"anyOf": [{"type": "string"}, {"type": "object"}]}, "enum": ["a", {}, 1, []]}, ["1", "[]"], ["\"a\"", "{}"], []),
    ({"not": {"not": {"type": "integer"}}}, ["1"], ["\"x\""], []),
    ({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "v": {}, "w": {}}, "required": ["kind"],
      "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["v"]}, "else": {"required": ["w"]}},
     ["{\"kind\": \"a\", \"v\": 1}", "{\"kind\": \"b\", \"w\": 1}", "{\"kind\": \"b\", \"v\": 1, \"w\": 2}"],
     ["{\"kind\": \"a\", \"w\": 1}", "{\"kind\": \"b\", \"v\": 1}", "{\"v\": 1}"], []),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, ["\"ab\"", "1", "null"], ["\"a\""], []),
    ({"then": {"type": "null"}, "type": "integer"}, ["1"], ["null"], []),
    ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["b"]}},
     ["{}", "{\"a\": 1, \"b\": 2}", "{\"b\": 1}", "{\"c\": 1}"], ["{\"a\": 1}", "{\"a\": 1, \"c\": 2}"], []),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
     ["{\"a\": 1, \"b\": 2}", "{\"b\": \"x\"}", "{\"a\": 1}"], ["{\"a\": 1, \"b\": \"x\"}"], []),
    ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "maxProperties": 2},
     ["{\"a\": 1, \"b\": 2}", "{\"a\": 1, \"c\": 2}", "{\"b\": 1, \"c\": 2}"],
     ["{}", "{\"b\": 1}", "{\"a\": 1, \"b\": 2, \"c\": 3}"], []),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"], "minProperties": 2, "additionalProperties": {"type": "null"}},
     ["{\"a\": 1, \"b\": 2}", "{\"b\": 1, \"z\": null}", "{\"a\": 1, \"b\": 2, \"z\": null, \"y\": null}"],
     ["{\"b\": 1}", "{\"a\": 1, \"z\": null}", "{\"b\": 1, \"b\": 2}"], []),
    ({"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c"]}, "maxItems": 2},
     ["[]", "[\"a\"]", "[\"a\", \"c\"]", "[\"b\",\"c\"]"], ["[\"a\", \"a\"]", "[\"a\", \"b\", \"c\"]", "[\"d\"]"], ["[\"b\", \"a\"]"]),
    ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, ["[]", "[\"a\"]"], ["[\"a\", \"a\"]", "[1]"], ["[\"a\", \"b\"]"]),
    ({"type": "string", "maxLength": 100000, "minLength": 2}, ["\"ab\"", "\"" + "ab" * 900 + "\""], ["\"a\""], []),
    ({"type": "string", "minLength": 700, "maxLength": 1500}, ["\"" + "a" * n + "\"" for n in (700, 701, 1023, 1024, 1499, 1500)],
     ["\"" + "a" * n + "\"" for n in (699, 1501, 1600)], []),
    ({"$id": "http://example.com/root", "$defs": {"n": {"$id": "n", "type": "integer"}, "s": {"$anchor": "text", "type": "string"},
      "%": {"type": "null"}}, "anyOf": [{"$ref": "n"}, {"$ref": "#text"}, {"$ref": "http://example.com/root#/$defs/%25"}]},
     ["1", "\"x\"", "null"], ["1.5", "[]", "true"], []),
    ({"enum": [[1], [1, 2], {"a": 1}, 3], "maxItems": 1, "required": ["a"]}, ["[1]", "{\"a\": 1}", "3"], ["[1, 2]"], []),
    ({"type": "integer", "minimum": -1.7976931348623157e308, "maximum": 1e300}, ["5", "-123456789"], ["1.5"], []),
    ({"type": "integer", "allOf": [{"minLength": 3}]}, ["5"], ["\"abc\""], []),
    ({"contains": {"type": "integer", "minimum": 5}}, ["[5]", "[1, \"x\", 7]", "[6, 7]"], ["[]", "[1]", "[4, null]"], []),
    ({"type": "array", "items": {"type": "integer"}, "contains": {"multipleOf": 3}, "minContains": 2, "maxContains": 2, "maxItems": 4},
     ["[3, 6]", "[1, 3, 6]", "[3, 1, 2, 9]"], ["[3]", "[3, 6, 9]", "[3, 1]", "[3, 6, 1, 2, 4]", "[3, 6, \"x\"]"], []),
    ({"contains": {"const": 1}, "maxContains": 1, "minContains": 0, "minItems": 2}, ["[2, 3]", "[1, null]"], ["[1, 1]", "[1]", "[]"], []),
    ({"type": "array", "prefixItems": [{"type": "string"}], "contains": {"type": "string"}, "minContains": 2},
     ["[\"a\", \"b\"]", "[\"a\", 1, \"b\"]"], ["[\"a\"]", "[1, \"a\", \"b\"]", "[\"a\", 1]"], []),
    ({"type": "array", "allOf": [{"contains": {"type": "string"}}, {"contains": {"type": "integer"}}]},
     ["[1, \"a\"]", "[\"a\", null, 1]"], ["[1]", "[\"a\", \"b\"]"], []),
    ({"type": "array", "contains": {"type": "string"}, "uniqueItems": True}, ["[\"a\"]"], ["[1]", "[]", "[\"a\", \"a\"]"], []),
    ({"not": {"type": "array", "contains": {"const": 1}}, "type": "array"}, ["[]", "[2, 3]"], ["[1]", "[2, 1]"], []),
    ({"type": "array", "prefixItems": [{"const": 1}], "unevaluatedItems": {"type": "string"}}, ["[1]", "[1, \"a\"]"], ["[1, 2]", "[\"a\"]"], []),
    ({"type": "array", "allOf": [{"prefixItems": [True, {"type": "null"}]}], "prefixItems": [{"const": 1}], "unevaluatedItems": False},
     ["[]", "[1]", "[1, null]"], ["[1, 2]", "[1, null, 3]"], []),
    ({"type": "array", "anyOf": [{"prefixItems": [{"const": 1}]}, {"prefixItems": [{"const": 2}, {"const": 3}]}],
      "unevaluatedItems": False}, ["[1]", "[2, 3]", "[2]"], ["[1, 3]", "[2, 3, 4]"], []),
    ({"type": "array", "contains": {"type": "string"}, "unevaluatedItems": {"type": "integer"}},
     ["[\"a\"]", "[1, \"a\", 2]"], ["[1]", "[\"a\", null]"], []),
    ({"type": "array", "allOf": [{"items": True}], "unevaluatedItems": False}, ["[1, 2]"], ["{}"], []),
    ({"type": "array", "prefixItems": [{"const": 1}], "allOf": [{"unevaluatedItems": {"type": "integer"}}]}, ["[1, 2]"],
     ["[1, \"a\"]", "[2]"], []),
    ({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}, ["{\"a\": null, \"b\": 1}", "{\"c\": 2}"],
     ["{\"b\": null}", "{\"a\": 1, \"b\": \"x\"}"], []),
    ({"type": "object", "properties": {"b": {}}, "allOf": [{"properties": {"a": {}}, "unevaluatedProperties": False}]},
     ["{\"a\": 1}", "{}"], ["{\"b\": 1}", "{\"a\": 1, \"b\": 2}"], []),
    ({"type": "object", "properties": {"k": {"enum": ["x", "y"]}}, "required": ["k"], "unevaluatedProperties": False,
      "if": {"properties": {"k": {"const": "x"}}}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}},
     ["{\"k\": \"x\", \"a\": 1}", "{\"k\": \"y\", \"b\": 1}", "{\"k\": \"y\"}"], ["{\"k\": \"x\", \"b\": 1}", "{\"k\": \"y\", \"a\": 1}"], []),
    ({"type": "object", "not": {"required": ["a"], "properties": {"b": {"type": "null"}}}, "properties": {"a": {}},
      "unevaluatedProperties": False}, ["{}"], ["{\"a\": 1}", "{\"a\": 1, \"b\": 2}", "{\"b\": 2}"], []),
    ({"$id": "http://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
      "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "type": "object",
                         "properties": {"v": True, "next": {"$dynamicRef": "#node"}}}}},
     ["{\"v\": 1}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": {}}}"], ["{\"w\": 1}", "{\"next\": {\"w\": 1}}", "{\"next\": 1}"], []),
    ({"$id": "http://example.com/r", "anyOf": [{"type": "object", "properties": {"s": {"$ref": "texts"}}, "required": ["s"], "additionalProperties": False},
      {"type": "object", "properties": {"n": {"$ref": "numbers"}}, "required": ["n"], "additionalProperties": False}],
      "$defs": {"list": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#of"}, "$defs": {"any": {"$dynamicAnchor": "of"}}},
                "t": {"$id": "texts", "$ref": "list", "$defs": {"of": {"$dynamicAnchor": "of", "type": "string"}}},
                "n": {"$id": "numbers", "$ref": "list", "$defs": {"of": {"$dynamicAnchor": "of", "type": "number"}}}}},
     ["{\"s\": [\"a\"]}", "{\"n\": [1, 2]}"], ["{\"s\": [1]}", "{\"n\": [\"a\"]}", "{\"s\": [null]}"], []),
    ({"type": "number", "multipleOf": 0.25}, ["0", "0.25", "-1.5", "3", "10.75"], ["0.3", "0.1", "1.1", "-0.2"], ["0.250"]),
    ({"type": "number", "multipleOf": 1.5}, ["0", "1.5", "-3", "4.5", "30.0"], ["1", "2.5", "0.5", "1.6"], []),
    ({"type": "integer", "multipleOf": 2.5}, ["0", "5", "-10"], ["2", "4", "7"], []),
    ({"type": "array", "not": {"prefixItems": [True, {"type": "string"}]}}, ["[1, 2]", "[1, null, 3]"], ["[]", "[1]", "[1, \"a\"]"], []),
    ({"type": "array", "not": {"prefixItems": [True], "items": {"type": "integer"}}}, ["[1, \"a\"]"], ["[1, 2]", "[\"a\"]", "[]"],
     ["[1, 2, \"a\"]"]),
    ({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}, ["{\"a\": 1, \"ab\": 2}", "{\"a\": 1, \"ab\": 2, \"ab\": 3, \"c\": 1}"],
     ["{}", "{\"a\": 1}", "{\"a\": 1, \"a\": 2}", "{\"a\": 1, \"ab\": null}"], ["{\"a\": 1, \"b\": 2}"]),
    ({"type": "object", "properties": {"k": {}}, "required": ["k"], "patternProperties": {"^x": {}}, "minProperties": 3, "maxProperties": 3,
      "additionalProperties": False}, ["{\"k\": 1, \"x\": 1, \"xx\": 2}"], ["{\"k\": 1, \"x\": 1}", "{\"k\": 1, \"x\": 1, \"xx\": 2, \"x\": 3, \"xxx\": 4}"], []),
    ({"type": "object", "propertyNames": {"anyOf": [{"const": "a"}, {"pattern": "^x", "maxLength": 2}]}}, ["{\"a\": 1, \"xb\": 2}"],
     ["{\"b\": 1}", "{\"xbc\": 1}"], []),
    ({"type": "integer", "not": {"multipleOf": 3}}, ["1", "-5", "10"], ["0", "3", "-9", "3.0"], []),
    ({"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "integer"}, ["3", "5", "-9"], ["15", "0", "7", "30"], []),
    ({"const": [1, 2], "contains": {"const": 2}}, ["[1, 2]"], ["[2, 1]"], []),
]


OLDER = [  # judged by the draft that $schema names
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "$id": "http://example.com/s", "$recursiveAnchor": True, "$ref": "tree",
      "unevaluatedProperties": False, "$defs": {"tree": {"$id": "tree", "$recursiveAnchor": True, "type": "object",
      "properties": {"v": True, "next": {"$recursiveRef": "#"}}}}},
     ["{\"v\": 1}", "{\"next\": {\"v\": 2}}"], ["{\"w\": 1}", "{\"next\": {\"w\": 1}}"], []),
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "array", "items": [{"const": 1}], "contains": {"const": "a"},
      "minContains": 0, "unevaluatedItems": {"type": "null"}}, ["[1]", "[1, null]"], ["[1, 2]"], ["[1, \"a\"]"]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "contains": {"const": 1}, "minContains": 0}, ["[1]"], ["[]", "[2]"], []),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 3, "exclusiveMinimum": True,
      "maximum": 5, "exclusiveMaximum": False}, ["4", "5", "3.5"], ["3", "3.0", "6"], []),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [{"type": "integer"}, {"type": "string"}],
      "additionalItems": {"type": "boolean"}}, ["[]", "[1]", "[1, \"x\", true]"], ["[\"x\"]", "[1, \"x\", 2]"], []),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "additionalItems": False},
     ["[1]"], ["[1, 2]", "[null]"], []),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": {}, "b": {}, "c": {}},
      "dependencies": {"a": ["b"], "b": {"required": ["c"]}}}, ["{}", "{\"c\": 1}", "{\"b\": 1, \"c\": 2}",
      "{\"a\": 1, \"b\": 2, \"c\": 3}"], ["{\"a\": 1}", "{\"b\": 1}", "{\"a\": 1, \"b\": 2}", "{\"a\": 1, \"c\": 2}"], []),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/r.json", "definitions":
      {"i": {"id": "#whole", "type": "integer"}, "s": {"id": "t/s.json", "type": "string", "minLength": 1}},
      "anyOf": [{"$ref": "#whole"}, {"$ref": "t/s.json"}]}, ["1", "\"a\""], ["\"\"", "null"], []),
]


def valid(validator, text):
    try:
        value = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    except ValueError:
        return False
    return validator.is_valid(value)


def main():
    out = []
    for schema, accept, reject, narrow in CASES + OLDER:
        kind = jsonschema.Draft202012Validator
        if isinstance(schema, dict):
            kind = jsonschema.validators.validator_for(schema, default=kind)
        kind.check_schema(schema)
        validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
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
