// patchbay/sdk/lm_head.hpp - the matrix that makes logits. Its rows are dealt to the ranks where they divide, and each
// then gathers all logits. For model plugins.
#pragma once
#include <optional>
#include <string>

#include "patchbay/sdk/decoder.hpp"
#include "patchbay/sdk/weight_list.hpp"

namespace patchbay {

struct LmHead {
    // name: of the tensor, without ".weight". tied: the index of the token table, if that is what it names: with
    // several ranks, each has its rows of it once more.
    static LmHead list(WeightList& weights, const DecoderShape& s, const std::string& name,
                       std::optional<uint32_t> tied, bool bias = false) {
        LmHead out;
        out.ranks = s.ranks > 1 && s.vocab % s.ranks == 0 ? s.ranks : 1;
        const pb_shard shard = out.ranks > 1 ? PB_SHARD_ROWS : PB_SHARD_NONE;
        out.weight = tied && out.ranks == 1 ? weights.tied(*tied)
                                            : weights.linear(shard, s.hidden, {{name, s.vocab, bias}});
        return out;
    }

    // The step's logits from x (rows that sample, hidden).
    void run(const Forward& f, const pb_tensor& x) const {
        const pb_tensor& logits = f.raw.logits;
        if (ranks == 1) return f.linear(logits, x, weight);
        const pb_tensor own = f.temp(PB_F32, {logits.shape[0], logits.shape[1] / ranks});
        f.linear(own, x, weight);
        f.all_gather(logits, own);
    }

    // Likewise from x (T, hidden): of it the rows that sample.
    void run_rows(const Forward& f, const DecoderShape& s, const pb_tensor& x) const {
        const pb_tensor rows = f.temp({f.raw.logit_rows.shape[0], s.hidden});
        f.gather_rows(rows, x, f.raw.logit_rows);
        run(f, rows);
    }

    uint32_t weight = 0, ranks = 1; // ranks: that have rows each
};

}  // namespace patchbay
