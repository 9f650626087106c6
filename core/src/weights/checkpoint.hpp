// A model's folder or GGUF file: config.json flattened, and tensors memory-mapped. Every byte of it is untrusted.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "weights/encoding.hpp"

namespace patchbay::weights {

// config.json with nested keys joined by '.', arrays as key.0, key.1; scalars as JSON text, strings without quotes;
// what is empty as "[]" or "{}".
using FlatConfig = std::map<std::string, std::string>;
inline constexpr size_t kMaxConfigKeys = 65'536; // of a file; models look for each of theirs among all
// Any JSON object of a model's folder, flattened in this way (generation_config.json, say).
Result<FlatConfig> read_json_flat(const std::filesystem::path& file);
// text: the JSON itself; where: its name, for errors.
Result<FlatConfig> flatten_json(std::string_view text, const std::string& where);
// Of a folder, or of a GGUF file: the keys that its config.json would have.
Result<FlatConfig> read_model_config(const std::filesystem::path& model);
// The value of a key with a single value; none: missing or null. Refuses a list or map, and parents of another
// type.
Result<std::optional<std::string>> single_value(const FlatConfig&, const std::string& key);

// Whether a model is named by a GGUF file, which holds its configuration, its tokenizer and its tensors.
bool is_gguf(const std::filesystem::path&);

// Rows of q, k and v in one matrix: what it stands for has, for each kv head, its query heads, its key and its value;
// the file has all of q, then k, then v.
struct FusedHeads {
    int64_t kv_heads = 0, queries = 0, size = 0; // 0: none; queries: of each kv head
    int64_t operator()(int64_t row) const {
        if (kv_heads == 0) return row;
        const int64_t head = row / size, group = head / (queries + 2), part = head % (queries + 2);
        const int64_t to = part < queries ? group * queries + part : kv_heads * part + group;
        return to * size + row % size;
    }
};

struct TensorView { // lives as long as its checkpoint; data may be unaligned
    Encoding encoding;
    std::vector<int64_t> shape; // of what it stands for, outermost first
    const std::byte* data;      // row by row
    uint64_t bytes;
    bool turned = false;        // the bytes are those of the transposed matrix
    int64_t interleaved = 0;    // n: of every n rows, r and r + n / 2 lie as rows 2·r and 2·r + 1; 0: in order
    FusedHeads fused = {};
    float added = 0;            // to every number, by what wrote the file; loading takes it away
    // Of a matrix whose rows 0, 2, 4, … lie in `data` and 1, 3, 5, … here, of as many bytes; null: all lie in `data`.
    const std::byte* odd_rows = nullptr;

    struct Row {
        const std::byte* data; // where it lies, as row
        int64_t row;           // of these
    };
    Row find_row(int64_t row) const {
        if (!odd_rows) return {data, row};
        return {row % 2 ? odd_rows : data, row / 2};
    }
};

std::string shape_text(const std::vector<int64_t>&); // "(2, 3)"

class Checkpoint {
  public:
    virtual ~Checkpoint() = default;
    // A folder's model.safetensors, or its model.safetensors.index.json and shards; or a GGUF file.
    static Result<std::unique_ptr<Checkpoint>> open(const std::filesystem::path& model);

    // Failure names near misses: "no tensor 'model.layers.0.mlp.gate.weight' (did you mean …)".
    virtual Result<TensorView> tensor(const std::string& name) const = 0;
    virtual bool has(const std::string& name) const = 0;
    virtual std::vector<std::string> names() const = 0;
    // Its numbers have been read and may leave memory; they can be read again. Any name.
    virtual void forget(const std::string& name) const = 0;
};

}  // namespace patchbay::weights
