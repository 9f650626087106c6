// The files beside a folder's weights: config.json, generation_config.json, model.safetensors.index.json and one shard.
#include <cstddef>
#include <cstdint>

#include "fuzz_folder.hpp"
#include "weights/checkpoint.hpp"
#include "weights/end_tokens.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay::weights;
    if (size > 1 << 14) return 0;
    write_files(data, size,
                {"config.json", "generation_config.json", "model.safetensors.index.json", "a.safetensors"});
    const auto config = read_model_config(fuzz_folder());
    if (!config && config.error().empty()) __builtin_trap();
    constexpr uint32_t kVocabulary = 1000;
    const auto ends = end_tokens(config ? *config : FlatConfig{}, fuzz_folder(), kVocabulary);
    if (!ends && ends.error().empty()) __builtin_trap();
    if (ends)
        for (const int32_t id : *ends)
            if (id < 0 || static_cast<uint32_t>(id) >= kVocabulary) __builtin_trap();
    const auto checkpoint = Checkpoint::open(fuzz_folder());
    if (!checkpoint) return checkpoint.error().empty() ? __builtin_trap(), 0 : 0;
    for (const auto& name : (*checkpoint)->names())
        if (const auto tensor = (*checkpoint)->tensor(name); tensor && tensor->bytes > size) __builtin_trap();
    return 0;
}
