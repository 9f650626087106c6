// The device's checks of steps in flight: their order, what they hand back, tokens that stay on the device, and pages
// that go to host memory and come back.
#include <optional>

#include "conformance/device_case.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

// x (3, 8) of 1, to which a step adds y of 1.
class Adding {
  public:
    static Result<Adding> create(const host::Component& component) {
        PB_TRY(Bench bench, Bench::create(component));
        PB_TRY(const pb_tensor x, bench.arrays().put(Floats(24, 1), {3, 8}));
        PB_TRY(const pb_tensor y, bench.arrays().put(Floats(24, 1), {3, 8}));
        return Adding(component, std::move(bench), x, y);
    }
    Bench& bench() { return bench_; }

    // Adds y `times` times; `out`: where x goes as it is then.
    Result<> begin(int times, std::vector<std::byte>& out) {
        PB_CHECK(call(table().begin_step(self()), "begin_step"));
        for (int i = 0; i < times; ++i) bench_.ops().add(bench_.ops().ctx, &x_, &y_);
        out.assign(static_cast<size_t>(24 * dtype_bytes(x_.dtype)), std::byte{0x55});
        return call(async().to_host_async(self(), out.data(), x_.data, out.size()), "to_host_async");
    }
    Result<> end() { return call(table().end_step(self()), "end_step"); }
    Result<> submit() { return call(async().submit_step(self()), "submit_step"); }
    Result<> wait() { return call(async().wait_step(self()), "wait_step"); }
    // Adds y; x goes to the host; adds y; x comes back; adds y.
    Result<> there_and_back(void* host) {
        const auto add = [&] { bench_.ops().add(bench_.ops().ctx, &x_, &y_); };
        PB_CHECK(call(table().begin_step(self()), "begin_step"));
        add();
        PB_CHECK(call(offload().page_to_host(self(), host, x_.data, bytes()), "page_to_host"));
        add();
        PB_CHECK(call(offload().page_to_device(self(), x_.data, host, bytes()), "page_to_device"));
        add();
        return end();
    }
    Result<std::vector<std::byte>> now() const {
        std::vector<std::byte> out(bytes());
        PB_CHECK(call(table().to_host(self(), out.data(), x_.data, out.size()), "to_host"));
        return out;
    }
    size_t bytes() const { return static_cast<size_t>(24 * dtype_bytes(x_.dtype)); }
    bool holds(const std::vector<std::byte>& bytes, float value) const {
        for (size_t i = 0; i < 24; ++i) {
            const float got = x_.dtype == PB_F32 ? reinterpret_cast<const float*>(bytes.data())[i]
                                                 : bf16_to_f32(reinterpret_cast<const uint16_t*>(bytes.data())[i]);
            if (got != value) return false;
        }
        return true;
    }

  private:
    Adding(const host::Component& c, Bench bench, const pb_tensor& x, const pb_tensor& y)
        : component_(&c), bench_(std::move(bench)), x_(x), y_(y) {}
    const pb_device& table() const { return *static_cast<const pb_device*>(component_->type().vtable); }
    const pb_device_async& async() const { return *component_->extension<pb_device_async>(); }
    const pb_device_offload& offload() const { return *component_->extension<pb_device_offload>(); }
    void* self() const { return component_->self(); }
    Result<> call(pb_status status, const char* name) const { return component_->check(status, name); }

    const host::Component* component_;
    Bench bench_;
    pb_tensor x_, y_;
};

}  // namespace

Outcome steps(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto* const async = component->extension<pb_device_async>();
    if (!async || !async->to_host_async) return Outcome::skip("the host waits before it copies from it");
    PB_TRY(Adding adding, Adding::create(*component));
    if (!adding.bench().info().computes || adding.bench().info().activation_dtype == PB_F16)
        return Outcome::skip("it has no numbers in a dtype that is tried");
    std::vector<std::byte> first, second;
    PB_CHECK(adding.begin(1, first));
    PB_CHECK(adding.end());
    if (!adding.holds(first, 2)) return fail("after end_step() to_host_async() has not given what the step computed");
    PB_CHECK(adding.begin(1, first));
    PB_CHECK(adding.submit());
    PB_CHECK(adding.begin(2, second));
    PB_CHECK(adding.submit());
    PB_CHECK(adding.wait());
    if (!adding.holds(first, 3)) return fail("of two steps in flight the first has not given what it computed");
    PB_CHECK(adding.wait());
    if (!adding.holds(second, 5)) return fail("of two steps in flight the second has not given what it computed");
    PB_CHECK(adding.begin(1, first));
    PB_CHECK(adding.submit());
    PB_CHECK(adding.begin(1, second));
    PB_CHECK(adding.end());
    if (!adding.holds(second, 7)) return fail("after a step in flight end_step() does not give what its own computed");
    PB_CHECK(adding.wait()); // which end_step() leaves to be waited for
    return adding.holds(first, 6) ? Outcome() : fail("a step before one that ended gives other numbers than its own");
}

Outcome host_pages(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto* const offload = component->extension<pb_device_offload>();
    void* const self = component->self();
    if (!offload) return Outcome::skip("the host copies pages by to_host and to_device");
    PB_TRY(Adding adding, Adding::create(*component));
    if (adding.bench().info().activation_dtype == PB_F16) return Outcome::skip("its activations are f16");
    void* host = nullptr;
    PB_CHECK(component->check(offload->host_alloc(self, adding.bytes(), &host), "host_alloc"));
    const auto judge = [&]() -> Outcome {
        if (!adding.bench().info().computes) {
            PB_CHECK(adding.bench().step(
                [&](const pb_ops&) { (void)offload->page_to_host(self, host, nullptr, uint64_t{1} << 20); }));
            const uint64_t took = component->extension<pb_device_simulation>()->charged_ns(self);
            return took > 0 ? Outcome() : fail("a page to the host takes no time");
        }
        if (!host || reinterpret_cast<uintptr_t>(host) % 64 != 0) return fail("host_alloc is not aligned to 64 bytes");
        PB_CHECK(adding.there_and_back(host));
        const auto* const first = static_cast<const std::byte*>(host);
        if (!adding.holds({first, first + adding.bytes()}, 2))
            return fail("page_to_host() has not copied what the ops before it left");
        PB_TRY(const auto now, adding.now());
        return adding.holds(now, 3) ? Outcome() : fail("page_to_device() is not in order with the ops around it");
    };
    const Outcome outcome = judge();
    offload->host_free(self, host);
    return outcome;
}

Outcome fill_placeholders(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(Bench bench, Bench::create(*component));
    const pb_ops& ops = bench.ops();
    if (!ops.fill_placeholders) return Outcome::skip("it leaves the op out");
    const auto& table = subject.table<pb_device>();
    const std::vector<int32_t> ids = {4, -1, 0, -3, -1, 7, -2}, sampled = {900, 901, 902}, want = {4,   900, 0, 902,
                                                                                                  900, 7,   901};
    PB_TRY(const pb_tensor to, bench.arrays().put_ints(ids));
    PB_TRY(const pb_tensor from, bench.arrays().put_ints(sampled));
    PB_CHECK(bench.step([&](const pb_ops& o) { o.fill_placeholders(o.ctx, &to, &from); }));
    if (!bench.info().computes) return {};
    std::vector<int32_t> got(ids.size());
    PB_CHECK(component->check(table.to_host(component->self(), got.data(), to.data, got.size() * sizeof got[0]),
                              "to_host"));
    for (size_t t = 0; t < got.size(); ++t)
        if (got[t] != want[t])
            return fail("id " + std::to_string(ids[t]) + " became " + std::to_string(got[t]) + ", expected " +
                        std::to_string(want[t]));
    PB_TRY(const pb_tensor beyond, bench.arrays().put_ints({-4}));
    if (bench.step([&](const pb_ops& o) { o.fill_placeholders(o.ctx, &beyond, &from); }))
        return fail("it takes a token that was not sampled, without a fault");
    return {};
}

}  // namespace patchbay::conformance
