// What a checkpoint stores under the names that a model gives its tensors: numbers, or codes of a packed linear.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/packed_linear.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

class StoredTensors {
  public:
    // Without a checkpoint nothing is stored. packed: how linears without a .weight are.
    explicit StoredTensors(std::shared_ptr<const Checkpoint> checkpoint = nullptr,
                           std::optional<PackedFormat> packed = std::nullopt)
        : checkpoint_(std::move(checkpoint)), packed_(packed) {}

    const Checkpoint* checkpoint() const { return checkpoint_.get(); } // null: there is none
    const std::optional<PackedFormat>& packed() const { return packed_; }

    Result<TensorView> tensor(const std::string& name) const;
    // "model.layers.0.mlp.up_proj" for the weight of that name, where it is packed.
    std::optional<std::string> packed_module(const std::string& name) const;
    // Whether the tensor has the shape that the model needs, and numbers that it can have. Without a checkpoint it has.
    Result<> check(const Piece&) const;
    Result<> find_scales(Piece&) const; // of an fp8 tensor
    void forget(const std::string& name) const; // of a weight: what the files hold of it may leave memory

  private:
    std::string stored_name(const std::string& name) const;

    std::shared_ptr<const Checkpoint> checkpoint_;
    std::optional<PackedFormat> packed_;
};

}  // namespace patchbay::weights
