// Attention that keeps its contract in every probe, and breaks it in the engine of the tests, where batches have at
// most `seqs` sequences: straight from its definition otherwise, in a layout of its own.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/reference.hpp"
#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {
namespace {

constexpr const char* kFaults[] = {"none", "throws_in_create", "throws_in_bind", "throws_in_plan",
                                   "slow", "hangs", "exits", nullptr};

class Faulty {
  public:
    using Bound = kernels::AttentionShape;
    static constexpr pb_param kParams[] = {
        param::choice("fault", "none", kFaults, "what it does wrong"),
        param::integer("at", "1", 1, 1e6, "plans", "the plan in which it does"),
        param::integer("rank", "0", 0, 64, "", "on which it does, of those that rank 0 starts; 0: everywhere"),
        param::integer("seqs", "0", 0, 1e6, "sequences", "at most in a batch of the engine in which it does"),
    };
    explicit Faulty(const Context& context)
        : clock_(context.host()), pool_(context.host()), fault_(context.get<std::string>("fault")),
          at_(context.get<int64_t>("at")), seqs_(context.get<uint32_t>("seqs")) {
        if (const int64_t rank = context.get<int64_t>("rank"); rank > 0 && !is_rank(rank)) fault_ = "none";
        if (fault_ == "throws_in_create") throw Error(PB_FAILED, "fails on purpose");
    }

    pb_attention_layout describe(const pb_attention_spec& spec) const {
        const Bound shape = shape_of(spec);
        pb_attention_layout out = patchbay::sized<pb_attention_layout>();
        out.page_bytes = kernels::reference::page_bytes(shape);
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "faulty/%s/%u/%ux%u", dtype_name(spec.kv_dtype),
                      spec.block_size, spec.kv_heads, spec.head_dim);
        return out;
    }

    std::unique_ptr<Bound> bind(const pb_attention_spec& spec) {
        here_ = spec.max_seqs == seqs_;
        if (here_ && fault_ == "throws_in_bind") throw Error(PB_FAILED, "fails on purpose");
        return std::make_unique<Bound>(shape_of(spec));
    }

    void plan(Bound& bound, const pb_attention_batch& batch, void*) {
        if (const std::string fault = kernels::fault_of(bound, kernels::batch_of(batch)); !fault.empty())
            throw Error(PB_INVALID, fault);
        if (!here_ || ++plans_ < at_) return;
        if (fault_ == "throws_in_plan") throw Error(PB_FAILED, "fails on purpose");
        while (fault_ == "hangs") pause();
        if (fault_ == "exits") _exit(3);
        for (int i = 0; i < 100 && fault_ == "slow"; ++i) (void)clock_.now_ns(); // which moves when it is looked at
    }

    void append_kv(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        kernels::reference::append_kv(bound, kernels::batch_of(batch), {kv.data, kv.page_stride}, k, v);
    }

    void run(Bound& bound, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const kernels::AttentionBatch view = kernels::batch_of(batch);
        pool_.run(view.seq_count, [&](uint32_t s) {
            kernels::reference::attend(bound, view, {kv.data, kv.page_stride}, out, q, s, view.query_starts[s],
                                       view.query_starts[s + 1]);
        });
    }

  private:
    static bool is_rank(int64_t rank) { // "patchbay worker --fd 3 --rank 1 …", with zeros between
        std::ifstream file("/proc/self/cmdline");
        const std::string line(std::istreambuf_iterator<char>(file), {});
        const std::string wanted = std::string("--rank") + '\0' + std::to_string(rank) + '\0';
        return line.find(wanted) != line.npos;
    }
    static Bound shape_of(const pb_attention_spec& spec) {
        const auto refuse = [](const char* why) { throw Error(PB_UNSUPPORTED, why); };
        if (std::string(spec.device ? spec.device : "") != "cpu") refuse("the device is not 'cpu'");
        if (spec.activation_dtype != PB_F32) refuse("the activation dtype is not f32");
        if (spec.kv_dtype != PB_F32 && spec.kv_dtype != PB_BF16) refuse("kv dtype not in {f32, bf16}");
        if (spec.head_dim == 0 || spec.head_dim > 65536) refuse("head_dim not in 1 to 65536");
        check_heads_and_pages(spec);
        return kernels::shape_of(spec);
    }

    HostClock clock_;
    Pool pool_;
    std::string fault_;
    int64_t at_, plans_ = 0;
    uint32_t seqs_;
    bool here_ = false;
};

}  // namespace
}  // namespace patchbay

PATCHBAY_PLUGIN(patchbay::attention<patchbay::Faulty>({.name = "faulty", .version = "1.0.0", .summary = "for tests"}))
