// How `config show` and `config schema` print configurations and their keys.
#pragma once
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/table.hpp"
#include "host/registry.hpp"

namespace patchbay::config {

// JSON Schema (draft 2020-12) of an engine configuration, and of a file with further keys besides.
std::string json_schema(const host::Registry&, const std::string& title = "Patchbay engine configuration",
                        const std::vector<KeyInfo>& further_keys = {});
// The same for a file with only these keys; and for a map of them, as a part of another schema.
std::string json_schema(const std::string& title, const std::vector<KeyInfo>&);
std::string json_schema_of(const std::vector<KeyInfo>&);

// Valid YAML of an effective tree, each value's origin after it as a comment. Reading it gives the same values.
std::string show_yaml(const Node& effective);
// {"values": {…}, "origins": {"engine.max_num_seqs": "demo.yaml:5:17", …}}
std::string show_json(const Node& effective);

}  // namespace patchbay::config
