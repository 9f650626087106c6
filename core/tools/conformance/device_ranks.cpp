// Two devices of this process as ranks of one model: what they exchange, and that a rank left alone does not wait.
#include <cmath>
#include <cstring>
#include <thread>

#include "conformance/device_case.hpp"
#include "parallel/thread_store.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kRanks = 2;

struct Rank {
    std::unique_ptr<host::Component> component;
    pb_status connected = PB_OK;
    std::string fault;
};

// f(rank) on a thread for each rank, all at once; what it throws not at all.
template <class F>
void at_once(F&& f) {
    std::vector<std::thread> threads;
    for (uint32_t r = 1; r < kRanks; ++r) threads.emplace_back([&f, r] { f(r); });
    f(0);
    for (std::thread& t : threads) t.join();
}

// What each rank has of an exchange: out (rows, width of all).
struct Exchange {
    const char* op;
    int64_t rows;
    std::vector<Floats> inputs, outputs; // by rank
};

// x (rows, width) of each rank, through the op.
Result<> run(std::vector<Bench>& benches, Exchange& e, int64_t width) {
    const bool gathers = std::strcmp(e.op, "all_gather") == 0;
    std::vector<pb_tensor> in, out;
    for (uint32_t r = 0; r < kRanks; ++r) {
        PB_TRY(const pb_tensor x, benches[r].arrays().put(e.inputs[r], {e.rows, width}));
        in.push_back(x);
        if (!gathers) continue;
        PB_TRY(const pb_tensor all, benches[r].arrays().poison({e.rows, width * kRanks}));
        out.push_back(all);
    }
    std::vector<std::string> faults(kRanks);
    at_once([&](uint32_t r) {
        const auto done = benches[r].step([&](const pb_ops& ops) {
            if (gathers) ops.all_gather(ops.ctx, &out[r], &in[r]);
            else ops.all_reduce(ops.ctx, &in[r]);
        });
        if (!done) faults[r] = done.error();
    });
    e.outputs.clear();
    for (uint32_t r = 0; r < kRanks; ++r) {
        if (!faults[r].empty()) return fail(faults[r]);
        PB_TRY(Floats got, benches[r].arrays().get(gathers ? out[r] : in[r]));
        e.outputs.push_back(std::move(got));
    }
    return {};
}

// connect() of all at once; whether it was well is in the ranks.
void connect(std::vector<Rank>& all, parallel::ThreadStore& store) {
    at_once([&](uint32_t r) {
        const host::Component& c = *all[r].component;
        const pb_group group = store.group(r);
        all[r].connected = c.extension<pb_device_collectives>()->connect(c.self(), &group);
        const auto checked = c.check(all[r].connected, "connect");
        if (checked) return;
        all[r].fault = checked.error();
        store.close();
    });
}

Outcome judge(std::vector<Bench>& benches, const char* op) {
    constexpr int64_t kRows = 3, kWidth = 5;
    const bool gathers = std::strcmp(op, "all_gather") == 0;
    Exchange all{op, kRows, {}, {}};
    for (uint32_t r = 0; r < kRanks; ++r) {
        Floats x;
        for (int64_t i = 0; i < kRows * kWidth; ++i)
            x.push_back(static_cast<float>(std::sin(static_cast<double>(i * 7 + r * 101)) * 3));
        all.inputs.push_back(benches[r].rounded(x));
    }
    PB_CHECK(run(benches, all, kWidth));
    const int64_t out_width = gathers ? kWidth * kRanks : kWidth;
    for (uint32_t r = 0; r < kRanks; ++r)
        for (int64_t i = 0; i < kRows * out_width; ++i) {
            const int64_t row = i / out_width, column = i % out_width;
            const auto at = static_cast<size_t>(row * kWidth + column % kWidth);
            const double expected = gathers ? double{all.inputs[static_cast<size_t>(column / kWidth)][at]}
                                            : double{all.inputs[0][at]} + double{all.inputs[1][at]};
            const double got = all.outputs[r][static_cast<size_t>(i)];
            if (!(std::abs(got - expected) <= benches[r].tolerance() * (1 + std::abs(expected))))
                return fail(std::string(op) + ": value " + std::to_string(i) + " is " + std::to_string(got) +
                            " on rank " + std::to_string(r) + ", expected " + std::to_string(expected));
        }
    if (all.outputs[0] != all.outputs[1]) return fail(std::string(op) + " gives other bits on rank 1 than on rank 0");
    for (int64_t row = 0; row < kRows; ++row) {
        Exchange one{op, 1, {}, {}};
        for (const Floats& x : all.inputs) one.inputs.push_back(slice(x, row, row + 1, kWidth));
        PB_CHECK(run(benches, one, kWidth));
        if (one.outputs[0] != slice(all.outputs[0], row, row + 1, out_width))
            return fail(std::string(op) + ": row " + std::to_string(row) + " has other bits alone than among " +
                        std::to_string(kRows));
    }
    return {};
}

}  // namespace

Outcome ranks(Subject& subject) {
    std::vector<Rank> all(kRanks);
    for (Rank& rank : all) {
        PB_TRY(rank.component, subject.make());
        if (!rank.component->extension<pb_device_collectives>()) return Outcome::skip("it is one rank");
    }
    const auto& table = *all[0].component->extension<pb_device_collectives>();
    {
        PB_TRY(const Bench b, Bench::create(*all[0].component));
        if (!b.info().computes) return Outcome::skip("it computes nothing");
        if (b.info().activation_dtype == PB_F16) return Outcome::skip("its activations are f16");
    }
    parallel::ThreadStore store(kRanks, 10'000);
    connect(all, store);
    for (const Rank& rank : all) // two ranks on one device, say, or a library that is not there
        if (rank.connected == PB_UNSUPPORTED || rank.connected == PB_UNAVAILABLE) return Outcome::skip(rank.fault);
    for (const Rank& rank : all)
        if (!rank.fault.empty()) return fail(rank.fault);
    std::vector<Bench> benches;
    for (const Rank& rank : all) {
        PB_TRY(Bench b, Bench::create(*rank.component));
        benches.push_back(std::move(b));
    }
    for (const Bench& b : benches)
        if (!b.ops().all_reduce || !b.ops().all_gather) return fail("connected, it has no all_reduce or no all_gather");
    for (const char* op : {"all_reduce", "all_gather"})
        if (Outcome o = judge(benches, op); o.what != Outcome::What::kOk) return o;

    // The other rank never comes.
    PB_TRY(const pb_tensor x, benches[0].arrays().put({1, 2}, {1, 2}));
    std::string fault;
    std::thread waiting([&] {
        const auto done = benches[0].step([&](const pb_ops& ops) { ops.all_reduce(ops.ctx, &x); });
        if (!done) fault = done.error();
    });
    table.disconnect(all[0].component->self());
    waiting.join();
    if (fault.empty()) return fail("disconnected while it waits for another rank, it reports no fault");

    // After a step that failed on one of them.
    table.disconnect(all[1].component->self());
    parallel::ThreadStore again(kRanks, 10'000);
    connect(all, again);
    for (const Rank& rank : all)
        if (!rank.fault.empty()) return fail("connected again after disconnect(): " + rank.fault);
    return judge(benches, "all_reduce");
}

}  // namespace patchbay::conformance
