// A model's weights as the runner hands them to a device: the tensors that a pb_weight_spec names, checked against
// the shape that the model needs, fused, cut for this rank and converted. From a checkpoint, or made up from a seed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "patchbay/abi/model.h"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {

struct LoadedWeight {
    pb_dtype dtype;
    int64_t rows, cols;
    std::vector<std::byte> data; // (rows, cols), row-major, of dtype; f32 where the spec has an offset
    std::vector<std::byte> bias; // (rows) of dtype; empty: none
};

class WeightSource {
  public:
    static Result<WeightSource> from_folder(const std::filesystem::path& folder);
    static WeightSource from_checkpoint(std::shared_ptr<const Checkpoint>);
    static WeightSource dummy(uint64_t seed);

    // The part of `rank` of `size`. wanted: PB_F32 or PB_BF16. The bias of a weight that is cut along its columns goes
    // to rank 0 only, because the ranks' outputs are summed.
    Result<LoadedWeight> load(const pb_weight_spec&, pb_dtype wanted, uint32_t rank, uint32_t size) const;

    // What dtype: auto means: that of the checkpoint's largest tensor (f16: f32, which holds its every value);
    // of dummy weights what config.json's dtype or torch_dtype says, f32 without one.
    Result<pb_dtype> native_dtype(const FlatConfig&) const;

  private:
    WeightSource() = default;
    struct Piece;
    std::string stored_name(const std::string& name) const;
    Result<> check(const Piece&) const;
    void read(const Piece&, pb_dtype wanted, std::byte* target) const;
    void read_transposed(const Piece&, pb_dtype wanted, std::byte* target) const;

    std::shared_ptr<const Checkpoint> checkpoint_; // null: dummy
    uint64_t seed_ = 0;
};

// 64 hexadecimal digits that tell models apart (cache keys, records of a run): of config.json and of
// each tensor's name, dtype, shape and 64 bytes from its middle. Cheap, hence no proof that all weights are equal.
Result<std::string> model_identity(const std::filesystem::path& folder);

}  // namespace patchbay::weights
