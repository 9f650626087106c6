// A GGUF file as the model folder that it was made from: config.json's keys and Hugging Face's names of tensors. Used
// by Checkpoint::open(), read_model_config() and gguf_tokenizer().
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf.hpp"
#include "weights/mapped_file.hpp"

namespace patchbay::weights {

struct Gguf {
    std::string where;  // its path, for errors
    std::span<const std::byte> bytes;
    GgufHeader header;  // points into bytes; of a model in parts, its tensors into the others' too
};
struct GgufFile {
    MappedFile mapping;
    Gguf gguf;  // points into the mappings
    std::vector<MappedFile> others{};  // of a model in parts
};
// Of a model in parts, path is the first, and the others lie beside it.
Result<GgufFile> open_gguf(const std::filesystem::path&);
Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::filesystem::path&);

// Adds the other parts, if there are some: their mappings and their tensors.
Result<> open_gguf_parts(const std::filesystem::path&, GgufFile&);

// One of those whose names are known: llama, qwen2, gemma3, …
Result<std::string> gguf_architecture(const Gguf&);
// The keys that the architecture's config.json would have, as far as models need them.
Result<FlatConfig> gguf_config(const Gguf&);
// The tensors by Hugging Face's names. Those that have no such name are left out.
struct GgufTensors {
    std::map<std::string, TensorView> read;
    std::map<std::string, uint32_t> unread;  // the type of those whose encoding is not read
    size_t experts = 0;                      // matrices of experts among them that share a tensor with others
};
Result<GgufTensors> gguf_tensors(const Gguf&);

}  // namespace patchbay::weights
