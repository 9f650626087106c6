// GGUF files that tests write themselves, right ones and wrong ones.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "weights/gguf.hpp"

namespace patchbay::weights {

template <class T>
std::string bytes_of(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
}

inline std::string gguf_text(const std::string& text) { return bytes_of(uint64_t{text.size()}) + text; }

class GgufBytes {
  public:
    uint32_t version = 3;

    // A value whose bytes are given as the format has them.
    GgufBytes& key(const std::string& name, GgufType type, const std::string& bytes) {
        keys_ += gguf_text(name) + bytes_of(type) + bytes;
        key_count_ += 1;
        return *this;
    }
    GgufBytes& key(const std::string& name, const std::string& text) {
        return key(name, GgufType::kString, gguf_text(text));
    }
    GgufBytes& key(const std::string& name, uint32_t value) { return key(name, GgufType::kU32, bytes_of(value)); }
    GgufBytes& key(const std::string& name, float value) { return key(name, GgufType::kF32, bytes_of(value)); }
    GgufBytes& array(const std::string& name, GgufType type, uint64_t count, const std::string& bytes) {
        return key(name, GgufType::kArray, bytes_of(type) + bytes_of(count) + bytes);
    }
    GgufBytes& texts(const std::string& name, const std::vector<std::string>& items) {
        std::string bytes;
        for (const std::string& item : items) bytes += gguf_text(item);
        return array(name, GgufType::kString, items.size(), bytes);
    }
    // sizes: as the format has them, the innermost first.
    GgufBytes& tensor(const std::string& name, std::vector<uint64_t> sizes, uint32_t type, uint64_t offset) {
        tensors_ += gguf_text(name) + bytes_of(static_cast<uint32_t>(sizes.size()));
        for (const uint64_t size : sizes) tensors_ += bytes_of(size);
        tensors_ += bytes_of(type) + bytes_of(offset);
        tensor_count_ += 1;
        return *this;
    }
    std::string with(const std::string& data, size_t alignment = 32) const {
        std::string out =
            "GGUF" + bytes_of(version) + bytes_of(tensor_count_) + bytes_of(key_count_) + keys_ + tensors_;
        out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
        return out + data;
    }

  private:
    std::string keys_, tensors_;
    uint64_t key_count_ = 0, tensor_count_ = 0;
};

// A Llama of one layer: its keys and one tensor, without the bytes of it.
inline GgufBytes tiny_llama() {
    GgufBytes out;
    out.key("general.architecture", "llama").key("llama.context_length", 64u).key("llama.embedding_length", 32u);
    out.key("llama.block_count", 1u).key("llama.feed_forward_length", 32u).key("llama.attention.head_count", 4u);
    out.key("llama.attention.layer_norm_rms_epsilon", 1e-5f).tensor("token_embd.weight", {32, 8}, 0, 0);
    return out;
}

}  // namespace patchbay::weights
