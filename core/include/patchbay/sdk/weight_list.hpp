// patchbay/sdk/weight_list.hpp - what a model asks of its checkpoint, listed while it reads config.json: each call adds
// a weight and returns its index. A model that derives from ListedWeights has weight_count(), weight() and fill().
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

struct LinearPart {        // one tensor of the checkpoint, or some rows of it
    std::string name;      // "model.layers.0.mlp.up_proj": its values are name.weight and name.bias
    int64_t rows;          // that this part takes
    bool bias = false;
    int64_t unit = 0;      // rows (or, of a weight sharded by columns, columns) stay together in such units; 0: 1
    int64_t first_row = 0; // where they begin in the stored tensor,
    int64_t stored_rows = 0; // of so many; 0: as many as `rows`
    bool transposed = false; // stored as (cols, stored_rows)
    pb_row_order order = {}; // where its rows do not follow one another
};

class WeightList {
  public:
    // A token or position table (rows, cols).
    uint32_t embedding(const LinearPart& part, int64_t cols) {
        return add(PB_WEIGHT_EMBEDDING, PB_SHARD_NONE, cols, {part});
    }
    // One matrix of the parts' rows, one below the other.
    uint32_t linear(pb_shard shard, int64_t cols, std::initializer_list<LinearPart> parts) {
        return add(PB_WEIGHT_LINEAR, shard, cols, parts);
    }
    // The same, small, and never quantised while it is loaded: of experts, the matrix that chooses them.
    uint32_t router(int64_t cols, const LinearPart& part) {
        const uint32_t index = add(PB_WEIGHT_LINEAR, PB_SHARD_NONE, cols, {part});
        specs_[index].exact = 1;
        return index;
    }
    // The same for one expert of a mixture, which this share of all tokens chooses.
    uint32_t expert(float share, pb_shard shard, int64_t cols, std::initializer_list<LinearPart> parts) {
        const uint32_t index = linear(shard, cols, parts);
        specs_[index].share = share;
        return index;
    }
    // The embedding once more, as the lm head.
    uint32_t tied(uint32_t embedding) {
        specs_[embedding].uses |= 1u << PB_WEIGHT_LINEAR;
        const uint32_t index = add(PB_WEIGHT_LINEAR, PB_SHARD_NONE, specs_[embedding].cols, {});
        specs_[index].tied_to = embedding + 1;
        return index;
    }
    // Of a head: a weight of its target's.
    uint32_t of_target(pb_target_weight which, int64_t cols) {
        const uint32_t index =
            add(which == PB_TARGET_EMBEDDING ? PB_WEIGHT_EMBEDDING : PB_WEIGHT_LINEAR, PB_SHARD_NONE, cols, {});
        specs_[index].of_target = which;
        return index;
    }
    // A vector by its whole name ("model.norm.weight"); offset: added to each value.
    uint32_t vector(int64_t length, const std::string& name, float offset = 0) {
        const uint32_t index = add(PB_WEIGHT_VECTOR, PB_SHARD_NONE, length, {});
        pb_weight_spec& s = specs_[index];
        s.offset = offset;
        s.part_count = 1;
        write(s.parts[0].name, name);
        s.parts[0].rows = 1;
        return index;
    }
    // Numbers [first, first + length) of a stored vector of `stored`.
    uint32_t part_of_vector(int64_t length, const std::string& name, int64_t first, int64_t stored) {
        const uint32_t index = vector(length, name);
        specs_[index].parts[0].first_row = first;
        specs_[index].parts[0].stored_rows = stored;
        return index;
    }
    // A vector that no checkpoint holds.
    uint32_t computed(std::vector<float> values) {
        const uint32_t index = add(PB_WEIGHT_VECTOR, PB_SHARD_NONE, static_cast<int64_t>(values.size()), {});
        computed_.emplace_back(index, std::move(values));
        return index;
    }

    uint32_t count() const { return static_cast<uint32_t>(specs_.size()); }
    const pb_weight_spec& at(uint32_t index) const {
        if (index >= count()) throw Error(PB_INVALID, "no weight " + std::to_string(index));
        return specs_[index];
    }
    void fill(uint32_t index, float* out) const {
        for (const auto& [at, values] : computed_)
            if (at == index) return void(std::copy(values.begin(), values.end(), out));
        throw Error(PB_INVALID, "weight " + std::to_string(index) + " comes from the checkpoint");
    }

  private:
    static constexpr size_t kMaxWeights = 1 << 16; // a config.json of nonsense must not take all memory

    template <size_t n>
    static void write(char (&field)[n], const std::string& text) {
        std::snprintf(field, n, "%s", text.c_str());
    }

    uint32_t add(pb_weight_role role, pb_shard shard, int64_t cols, std::initializer_list<LinearPart> parts) {
        if (specs_.size() == kMaxWeights)
            throw Error(PB_UNSUPPORTED, "more than " + std::to_string(kMaxWeights) + " weights");
        pb_weight_spec s = patchbay::sized<pb_weight_spec>();
        s.role = role;
        s.shard = shard;
        s.cols = cols;
        s.uses = 1u << role;
        for (const LinearPart& p : parts) {
            if (s.part_count == PB_MAX_FUSED) throw Error(PB_FAILED, "more parts than a weight may have: " + p.name);
            pb_weight_part& part = s.parts[s.part_count++];
            write(part.name, p.name + ".weight");
            if (p.bias) write(part.bias, p.name + ".bias");
            part.rows = p.rows;
            part.shard_unit = p.unit;
            part.first_row = p.first_row;
            part.stored_rows = p.stored_rows;
            part.transposed = p.transposed;
            s.orders[s.part_count - 1] = p.order;
        }
        specs_.push_back(s);
        return count() - 1;
    }

    std::vector<pb_weight_spec> specs_;
    std::vector<std::pair<uint32_t, std::vector<float>>> computed_;
};

class ListedWeights {
  public:
    uint32_t weight_count() const { return weights.count(); }
    pb_weight_spec weight(uint32_t index) const { return weights.at(index); }
    void fill(uint32_t index, float* out) const { weights.fill(index, out); }

  protected:
    WeightList weights;
};

}  // namespace patchbay
