// The metadata of one GGUF file, asked for by key and put under the names that config.json has for them. Used by
// gguf_config().
#pragma once
#include <string>
#include <string_view>

#include "weights/gguf_model.hpp"

namespace patchbay::weights {

struct GgufKeys {
    const Gguf& file;
    std::string architecture;
    FlatConfig out;  // config.json's keys so far

    bool is(std::string_view name) const { return architecture == name; }
    std::string own(const std::string& key) const { return architecture + "." + key; }
    const GgufValue* find(const std::string& key) const { return file.header.find(key); }
    bool has(const std::string& key) const { return find(key) != nullptr; }
    bool has_tensor(const std::string& name) const { return file.header.tensors.contains(name); }
    // "m.gguf: llama.block_count is 'many', expected a size"
    Failure fault(const std::string& key, const std::string& expected) const;

    Result<int64_t> integer(const std::string& key) const;  // of 0 or more, in 31 bits
    Result<double> number(const std::string& key) const;
    // Of the architecture's own key `from` to config.json's `to`.
    Result<> copy_integer(const std::string& from, const std::string& to);
    Result<> copy_number(const std::string& from, const std::string& to);
    Result<> copy_integer_if_there(const std::string& from, const std::string& to);
    Result<> copy_number_if_there(const std::string& from, const std::string& to);
    // Refuses a file that has the architecture's own key with another value.
    Result<> only(const std::string& key, int64_t value, const std::string& description = "") const;
    // Refuses a file that has the architecture's own key with a larger value.
    Result<> at_most(const std::string& key, int64_t value) const;
    void name_it(const char* class_name, const char* model_type);
    void set(const std::string& key, bool value) { out[key] = value ? "true" : "false"; }
    // eps: what config.json calls the epsilon of LayerNorm; nullptr: it is RMSNorm's.
    Result<> copy_sizes(const char* eps);
    Result<> copy_kv_heads();
    // Of a head, the part that positions turn; without the key, all of it. Returns how many numbers turn.
    Result<int64_t> copy_turning_part(int64_t head_dim, const std::string& to);
    // As many f32 numbers, put as to.0, to.1, …
    Result<> copy_numbers(const std::string& tensor, int64_t count, const std::string& to);
};

// A number as the shortest text that reads as it.
std::string text_of(float value);
std::string text_of(double value);

// All keys of a family that has its own; false: it is read like Llama, GPT-2, Gemma or Phi 3.
Result<bool> read_gguf_family(GgufKeys& keys);

// The settings of positions: bases, scalings, the part of a head that is rotated.
Result<> read_gguf_positions(GgufKeys& keys, int64_t head_dim);

}  // namespace patchbay::weights
