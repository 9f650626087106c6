// A model's weights as the runner passes them to a device: the tensors that a pb_weight_spec names, checked against
// the shape that the model needs, fused, split for this rank and converted. From a checkpoint, random from a seed, or
// shapes only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "patchbay/abi/model.h"
#include "weights/checkpoint.hpp"
#include "weights/packed_linear.hpp"
#include "weights/piece.hpp"
#include "weights/stored_tensors.hpp"

namespace patchbay::weights {

struct Share;

// Memory that is not zeroed, and not copied when it grows.
class LoadMemory {
  public:
    bool at_least(size_t bytes); // false: not enough memory; the old contents are lost
    std::byte* data() const { return memory_.get(); }

  private:
    std::unique_ptr<std::byte[]> memory_;
    size_t bytes_ = 0;
};

// kAsStored: AWQ, GPTQ and GGUF's blocks stay codes, floats stay floats; kNone: all become floats; kInt8,
// kInt4: floats are rounded.
enum class Quantization { kAsStored, kNone, kInt8, kInt4 };

struct WeightForm {                     // the form in which a weight is wanted
    pb_dtype dtype = PB_F32;            // of weights that are not quantised: PB_F32 or PB_BF16
    Quantization quantization = Quantization::kNone;
    uint32_t group = 32;                // for kInt8 and kInt4: columns that share a scale, 32 or 128; kInt8 also
                                        // kWholeRows
    static constexpr uint32_t kWholeRows = 0;

    uint32_t stored_group() const { return group == kWholeRows ? 128 : group; } // whose scales then are equal
};

struct LoadedWeight {
    pb_dtype dtype = PB_F32;         // PB_I8, PB_I4 or PB_FP8: quantised
    int64_t rows = 0, cols = 0;
    std::span<const std::byte> data; // (rows, cols), row-major, of dtype; f32 where the spec has an offset. Empty where
                                     // there is a shape only
    std::span<const std::byte> bias; // (rows) of dtype, or of f32 if quantised; empty: none
    uint32_t group = 0;              // columns; 0: not quantised, and the three below are empty
    std::span<const float> scales, offsets; // (rows, ⌈cols / group⌉); offsets: empty where all are 0
    std::span<const int32_t> order;         // (cols) as in pb_quant; empty: as they are
    LoadMemory memory;               // holds all of these, except data that the checkpoint's file has in the same form
    bool whole_rows = false;         // of integers: all groups of a row have the same scale
};

class WeightSource {
  public:
    static Result<WeightSource> from_folder(const std::filesystem::path& folder); // or a GGUF file
    // packed: how linears without a .weight are stored.
    static WeightSource from_checkpoint(std::shared_ptr<const Checkpoint>, std::optional<PackedFormat> packed = {});
    static WeightSource dummy(uint64_t seed);
    // For devices that compute nothing: the weights of a checkpoint with this configuration, without their values.
    static Result<WeightSource> shapes(const FlatConfig&);

    // The part of `rank` of `size`. The bias of a weight that is split by columns goes to rank 0 only, because the
    // ranks' outputs are summed. Only the weights of linear() are quantised. The result must not outlive this
    // source. reuse: an earlier result, whose memory is reused: fresh pages cost more than writing to them.
    Result<LoadedWeight> load(const pb_weight_spec&, const WeightForm&, uint32_t rank, uint32_t size,
                              LoadedWeight reuse = {}) const;
    // The weight has been loaded and used: what the checkpoint's files hold of it may leave memory.
    void forget(const pb_weight_spec&) const;
    void read_with(ThreadPool& pool) { pool_ = &pool; } // with all threads of a pool that outlives this source

    // What dtype: auto means: that of the checkpoint's largest tensor (f16: bf16, which takes as much memory; blocks of
    // quantised numbers: bf16, which rounds them by less than they were rounded); of an AWQ or GPTQ checkpoint bf16;
    // of dummy weights what config.json's dtype or torch_dtype says, f32 without one.
    Result<pb_dtype> native_dtype(const FlatConfig&) const;
    bool stores_f16(const FlatConfig&) const; // likewise
    Result<bool> stores_own_head() const; // an lm head that is not a copy of the token table
    // What quantization: auto means: "awq", "gptq", the kind of most blocks ("Q4_K"), or "none".
    std::string stored_quantization() const;

  private:
    WeightSource() = default;
    Result<CodeSources> code_sources(const Share&, const WeightForm&) const;
    bool scales_whole_rows(const WeightForm&) const;
    Result<LoadedWeight> load_in_form(const pb_weight_spec&, const Share&, const WeightForm&, LoadMemory) const;
    std::vector<float> to_add(const Share&, float offset) const;
    Result<LoadedWeight> load_real(const Share&, pb_dtype, float offset, LoadMemory) const;
    Result<LoadedWeight> load_codes(const Share&, const CodeSources&, LoadMemory) const;
    Result<LoadedWeight> outline(const pb_weight_spec&, const Share&, const WeightForm&, LoadMemory) const;
    void read(const Piece&, pb_dtype wanted, std::byte* target, ThreadPool*) const;

    StoredTensors stored_;   // without a checkpoint: dummy, or shapes only
    enum class Numbers { kSome, kNone } numbers_ = Numbers::kSome;
    int64_t vocab_size_ = 0; // of shapes only
    uint64_t seed_ = 0;
    ThreadPool* pool_ = nullptr;
};

// 64 hexadecimal digits that identify a model (cache keys, records of a run): of config.json, or a GGUF file's
// metadata, and of each tensor's name, dtype, shape and 64 bytes from its middle. Cheap, hence no proof that all
// weights are equal.
Result<std::string> model_identity(const std::filesystem::path& model);

}  // namespace patchbay::weights
