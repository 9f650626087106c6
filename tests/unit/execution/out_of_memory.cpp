// An attention whose making is an exception for the host, as where the host itself finds no memory meanwhile.
#include <new>

#include "patchbay/sdk/attention.hpp"

namespace {

struct Pages {
    struct Bound {};
    pb_attention_layout describe(const pb_attention_spec&) const { return patchbay::sized<pb_attention_layout>(); }
    std::unique_ptr<Bound> bind(const pb_attention_spec&) { return std::make_unique<Bound>(); }
    void plan(Bound&, const pb_attention_batch&, void*) {}
    void append_kv(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
    void run(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
};

constexpr pb_component without_memory(pb_component attention) {
    attention.create = [](const pb_host*, const pb_config*, void**) -> pb_status { throw std::bad_alloc(); };
    return attention;
}

}  // namespace

PATCHBAY_PLUGIN(without_memory(patchbay::attention<Pages>({.name = "out_of_memory", .version = "1.0.0",
                                                           .summary = "for tests"})))
