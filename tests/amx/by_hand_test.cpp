// Tile instructions one by one, beside plain loops. On a machine with AMX the same tests show what its hardware does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cpu_isa.hpp"
#include "machine.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::amx_by_hand::by_hand_test {
namespace {

#include "cpu/level/tiles.inc"

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of tiles 0, 1 and 2: sum (rows, columns) += rows (rows, depth) · panel (depth, columns), elements of 4 bytes.
struct Shape {
    int rows, depth, columns;
};

Configuration configuration(const Shape& s) {
    Configuration c;
    const auto set = [&](int tile, int rows, int elements) {
        c.rows[tile] = static_cast<uint8_t>(rows);
        c.row_bytes[tile] = static_cast<uint16_t>(4 * elements);
    };
    set(0, s.rows, s.columns), set(1, s.rows, s.depth), set(2, s.depth, s.columns);
    return c;
}

inline void multiply_ss() { asm volatile("tdpbssd %tmm2, %tmm1, %tmm0"); }
inline void multiply_su() { asm volatile("tdpbsud %tmm2, %tmm1, %tmm0"); }
inline void multiply_us() { asm volatile("tdpbusd %tmm2, %tmm1, %tmm0"); }
inline void multiply_uu() { asm volatile("tdpbuud %tmm2, %tmm1, %tmm0"); }
inline void multiply_pairs() { multiply_add<0, 1, 2>(); }

template <class T>
struct Matrices { // rows apart by 64 bytes
    static constexpr int kRow = 64 / sizeof(T);
    alignas(64) T rows[16 * kRow], panel[16 * kRow];
};

// Sum is of 4 bytes.
template <class Sum, class T>
void multiply(void (*instruction)(), const Shape& shape, const Matrices<T>& m, Sum* sums) {
    use(configuration(shape));
    load<0>(sums, 64);
    load<1>(m.rows, 64);
    load<2>(m.panel, 64);
    instruction();
    store<0>(sums, 64);
    release();
}

class AmxByHand : public testing::Test {
  protected:
    void SetUp() override {
        if (kernels::available_isas().back() == kernels::Isa::Amx) return;
        if (std::getenv("LD_PRELOAD") && !why_not_by_hand()) FAIL() << "no tiles though there should be";
        GTEST_SKIP() << "this machine has no AMX, and the library that has it is not loaded (docs/cpu-device.md)";
    }
    bool in_hardware() const { return !std::getenv("LD_PRELOAD"); }
    Shape any_shape() { return {number(1, 16), number(1, 16), number(1, 16)}; }
    int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

    std::mt19937_64 engine_{1};
};

TEST_F(AmxByHand, ConfigurationsAreKeptUntilTheyAreReleased) {
    const Configuration c = configuration({3, 5, 7});
    Configuration stored;
    use(c);
    asm volatile("sttilecfg %0" : "=m"(stored));
    EXPECT_EQ(std::memcmp(&c, &stored, sizeof c), 0);
    release();
    asm volatile("sttilecfg %0" : "=m"(stored));
    EXPECT_THAT(std::vector<uint8_t>(reinterpret_cast<uint8_t*>(&stored), reinterpret_cast<uint8_t*>(&stored + 1)),
                testing::Each(0));
}

TEST_F(AmxByHand, RowsComeAndGoWithTheirBytesAlone) {
    for (int i = 0; i < 50; ++i) {
        const int rows = number(1, 16), bytes = number(1, 64), stride = number(64, 200);
        Configuration c;
        c.rows[5] = static_cast<uint8_t>(rows), c.row_bytes[5] = static_cast<uint16_t>(bytes);
        std::vector<uint8_t> from(static_cast<size_t>(16 * stride)), to(from.size(), 99), expected = to;
        for (uint8_t& x : from) x = static_cast<uint8_t>(number(0, 255));
        for (int r = 0; r < rows; ++r)
            std::memcpy(expected.data() + r * stride, from.data() + r * stride, static_cast<size_t>(bytes));
        use(c);
        if (i % 2) load<5>(from.data(), stride);
        else load_past<5>(from.data(), stride);
        store<5>(to.data(), stride);
        release();
        ASSERT_EQ(to, expected) << rows << " rows of " << bytes;
    }
}

// An instruction is met twice, since what is done the first time differs from what is done later.
TEST_F(AmxByHand, MemoryIsNamedInEveryWay) {
    constexpr size_t kStack = 64 << 10; // below `from`, for where that is taken for a stack
    alignas(64) static uint8_t memory[kStack + 6 * 1024], to[1024];
    uint8_t* const from = memory + kStack;
    static Configuration whole;
    whole.rows[0] = 16, whole.row_bytes[0] = 64;
    for (uint8_t& x : memory) x = static_cast<uint8_t>(number(0, 255));
    const auto expect = [&](const uint8_t* at, int64_t stride, const char* what) {
        asm volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(to), "r"(int64_t(64)) : "memory");
        for (int r = 0; r < 16; ++r)
            EXPECT_EQ(std::memcmp(to + r * 64, at + r * stride, 64), 0) << what << ", row " << r;
    };
    for (int time = 0; time < 2; ++time) {
        asm volatile("ldtilecfg %0" : : "m"(whole)); // from the instruction on, or by a register
        asm volatile("ldtilecfg (%0)" : : "r"(&whole));
        asm volatile("lea -0x10(%0), %%r13\n ldtilecfg 0x10(%%r13)" : : "r"(&whole) : "r13");
        asm volatile("mov %0, %%r12\n mov $32, %%r9\n ldtilecfg -0x40(%%r12,%%r9,2)" : : "r"(&whole) : "r9", "r12");
        asm volatile("tileloadd (%0,%1,4), %%tmm0" : : "r"(from), "r"(int64_t(16)));
        expect(from, 64, "scaled");
        asm volatile("mov %0, %%r14\n mov $128, %%r15\n tileloadd 0x12(%%r14,%%r15,1), %%tmm0"
                     : : "r"(from) : "r14", "r15");
        expect(from + 0x12, 128, "high registers and a byte");
        asm volatile("mov %0, %%r12\n mov $16, %%rax\n tileloadd 0x1000(%%r12,%%rax,8), %%tmm0"
                     : : "r"(from) : "r12", "rax");
        expect(from + 0x1000, 128, "four bytes");
        asm volatile("mov %0, %%r13\n mov $-64, %%r12\n tileloaddt1 -0x40(%%r13,%%r12,2), %%tmm0"
                     : : "r"(from + 5 * 1024) : "r12", "r13");
        expect(from + 5 * 1024 - 64, -128, "backwards");
        asm volatile("tileloadd 64(%0), %%tmm0" : : "r"(from));
        expect(from + 64, 0, "one row for all");
        asm volatile("mov %%rsp, %%rbx\n mov %0, %%rsp\n tileloadd 0x400(%%rsp,%1,1), %%tmm0\n mov %%rbx, %%rsp"
                     : : "r"(from), "r"(int64_t(64)) : "rbx", "memory");
        expect(from + 0x400, 64, "the stack");
    }
    release();
}

TEST_F(AmxByHand, TilesBeginAs0) {
    alignas(64) uint8_t some[1024], to[1024];
    std::memset(some, 7, sizeof some);
    use(configuration({16, 16, 16}));
    load<0>(some, 64);
    load<1>(some, 64);
    zero<0>();
    store<0>(to, 64);
    EXPECT_THAT(to, testing::Each(0));
    use(configuration({16, 16, 16}));
    store<1>(to, 64);
    EXPECT_THAT(to, testing::Each(0));
    release();
}

TEST_F(AmxByHand, PairsOfBf16AreSummedApart) {
    std::normal_distribution<float> normal;
    for (int i = 0; i < 200; ++i) {
        const Shape s = i == 0 ? Shape{16, 16, 16} : any_shape();
        Matrices<uint16_t> m;
        alignas(64) float sums[256];
        for (uint16_t& x : m.rows) x = f32_to_bf16(normal(engine_));
        for (uint16_t& x : m.panel) x = f32_to_bf16(normal(engine_));
        for (float& x : sums) x = normal(engine_);
        std::vector<float> expected(sums, sums + 256);
        for (int r = 0; r < s.rows; ++r)
            for (int n = 0; n < s.columns; ++n) {
                float part[2] = {};
                for (int k = 0; k < s.depth; ++k)
                    for (int j = 0; j < 2; ++j)
                        part[j] = std::fma(bf16_to_f32(m.rows[r * 32 + 2 * k + j]),
                                           bf16_to_f32(m.panel[k * 32 + 2 * n + j]), part[j]);
                expected[static_cast<size_t>(r * 16 + n)] += part[0] + part[1];
            }
        multiply(multiply_pairs, s, m, sums);
        ASSERT_EQ(std::memcmp(sums, expected.data(), sizeof sums), 0) << s.rows << " " << s.depth << " " << s.columns;
    }
}

// One row, one pair, one column: the sum += a · x + b · y.
float one_pair(float sum, float a, float x, float b, float y) {
    Matrices<uint16_t> m{};
    alignas(64) float sums[256] = {sum};
    m.rows[0] = f32_to_bf16(a), m.panel[0] = f32_to_bf16(x);
    m.rows[1] = f32_to_bf16(b), m.panel[1] = f32_to_bf16(y);
    multiply(multiply_pairs, {1, 1, 1}, m, sums);
    return sums[0];
}

TEST_F(AmxByHand, DenormalsAre0) {
    const float low = std::numeric_limits<float>::min(), denormal = low / 2;
    EXPECT_EQ(one_pair(1, denormal, 0x1p100f, 0, 0), 1.0f); // taken
    EXPECT_EQ(one_pair(0, 0x1p-70f, 0x1p-70f, 0, 0), 0.0f); // made
    EXPECT_EQ(one_pair(denormal, 0, 0, 0, 0), 0.0f);        // as the sum
    EXPECT_EQ(one_pair(low, -denormal * 2, 0.5f, 0, 0), low);
    EXPECT_EQ(one_pair(0, low, 1, 0, 0), low);
}

TEST_F(AmxByHand, InfinitiesAreAddedAsFloatsAre) {
    EXPECT_EQ(one_pair(1, kInfinity, 2, 3, 4), kInfinity);
    EXPECT_TRUE(std::isnan(one_pair(1, kInfinity, 0, 3, 4)));
    EXPECT_TRUE(std::isnan(one_pair(1, kInfinity, 1, -kInfinity, 1)));
}

template <class Row, class Panel>
void expect_products(void (*instruction)(), const Shape& s, std::mt19937_64& engine) {
    Matrices<uint8_t> m;
    alignas(64) int32_t sums[256];
    for (uint8_t& x : m.rows) x = static_cast<uint8_t>(engine());
    for (uint8_t& x : m.panel) x = static_cast<uint8_t>(engine());
    if (s.rows == 16 && s.depth == 16) std::memset(&m, engine() % 2 ? 0x80 : 0xff, sizeof m); // the extremes
    for (int32_t& x : sums) x = static_cast<int32_t>(engine()); // may run over
    std::vector<int32_t> expected(sums, sums + 256);
    for (int r = 0; r < s.rows; ++r)
        for (int n = 0; n < s.columns; ++n) {
            auto sum = static_cast<uint32_t>(expected[static_cast<size_t>(r * 16 + n)]);
            for (int k = 0; k < s.depth; ++k)
                for (int j = 0; j < 4; ++j)
                    sum += static_cast<uint32_t>(static_cast<Row>(m.rows[r * 64 + 4 * k + j]) *
                                                 static_cast<Panel>(m.panel[k * 64 + 4 * n + j]));
            expected[static_cast<size_t>(r * 16 + n)] = static_cast<int32_t>(sum);
        }
    multiply(instruction, s, m, sums);
    ASSERT_EQ(std::memcmp(sums, expected.data(), sizeof sums), 0) << s.rows << " " << s.depth << " " << s.columns;
}

TEST_F(AmxByHand, BytesAreSummedAsWholeNumbers) {
    for (int i = 0; i < 100; ++i) {
        const Shape s = i < 4 ? Shape{16, 16, 16} : any_shape();
        expect_products<int8_t, int8_t>(multiply_ss, s, engine_);
        expect_products<int8_t, uint8_t>(multiply_su, s, engine_);
        expect_products<uint8_t, int8_t>(multiply_us, s, engine_);
        expect_products<uint8_t, uint8_t>(multiply_uu, s, engine_);
        if (HasFailure()) return;
    }
}

TEST_F(AmxByHand, ThreadsHaveTilesOfTheirOwn) {
    alignas(64) uint8_t ones[1024], to[1024];
    std::memset(ones, 1, sizeof ones);
    use(configuration({16, 16, 16}));
    load<0>(ones, 64);
    std::thread([] {
        alignas(64) uint8_t twos[1024];
        std::memset(twos, 2, sizeof twos);
        EXPECT_EQ(kernels::available_isas().back(), kernels::Isa::Amx);
        use(configuration({16, 16, 16}));
        load<0>(twos, 64);
        release();
    }).join();
    store<0>(to, 64);
    release();
    EXPECT_THAT(to, testing::Each(1));
}

TEST_F(AmxByHand, ThreadsMeetAnInstructionTogether) {
    alignas(64) static uint8_t ones[1024];
    std::memset(ones, 1, sizeof ones);
    constexpr int kThreads = 8, kTimes = 2000;
    std::atomic<int> waiting = kThreads, wrong = 0;
    std::vector<std::thread> threads;
    for (int n = 0; n < kThreads; ++n)
        threads.emplace_back([&] {
            use(configuration({16, 16, 16}));
            alignas(64) int32_t sums[256] = {};
            --waiting;
            while (waiting > 0) {}
            for (int i = 0; i < kTimes; ++i) {
                asm volatile("tileloadd (%0,%2,1), %%tmm1\n"
                             "tileloadd (%0,%2,1), %%tmm2\n"
                             "tileloadd (%1,%2,1), %%tmm0\n"
                             "tdpbssd %%tmm2, %%tmm1, %%tmm0\n"
                             "tilestored %%tmm0, (%1,%2,1)\n"
                             : : "r"(ones), "r"(sums), "r"(int64_t(64)) : "memory");
            }
            for (const int32_t sum : sums) wrong += sum != kTimes * 64;
            release();
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

// Twice, too.
TEST_F(AmxByHand, RegistersFlagsAndStackStay) {
    alignas(64) uint8_t ones[1024];
    std::memset(ones, 1, sizeof ones);
    use(configuration({16, 16, 16}));
    for (int time = 0; time < 2; ++time) {
        const double in = 1.5;
        double low = 0, high = 0;
        int64_t carry = 0, mask = 0, near = 0, far = 0, others = 0;
        asm volatile("vbroadcastsd %4, %%zmm31\n"
                     "kxnorq %%k1, %%k1, %%k1\n"
                     "stc\n"
                     "tileloadd (%5,%6,1), %%tmm0\n"
                     "sbb %2, %2\n"
                     "kmovq %%k1, %3\n"
                     "vmovsd %%xmm31, %0\n"
                     "vextractf64x4 $1, %%zmm31, %%ymm31\n"
                     "vmovsd %%xmm31, %1\n"
                     : "=m"(low), "=m"(high), "+r"(carry), "=&r"(mask)
                     : "m"(in), "r"(ones), "r"(int64_t(64))
                     : "memory", "cc");
        EXPECT_EQ(low, in);
        EXPECT_EQ(high, in);
        EXPECT_EQ(carry, -1);
        EXPECT_EQ(mask, -1);
        asm volatile("movq $17, -8(%%rsp)\n"
                     "movq $18, -128(%%rsp)\n"
                     "tilezero %%tmm1\n"
                     "mov -8(%%rsp), %0\n"
                     "mov -128(%%rsp), %1\n"
                     : "=r"(near), "=r"(far) : : "memory");
        EXPECT_EQ(near, 17);
        EXPECT_EQ(far, 18);
        asm volatile(".irp r, rax, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15\n"
                     "mov %%rsp, %%\\r\n"
                     ".endr\n"
                     "tdpbssd %%tmm2, %%tmm1, %%tmm0\n"
                     ".irp r, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15\n"
                     "sub %%rsp, %%\\r\n"
                     "or %%\\r, %%rcx\n"
                     ".endr\n"
                     "sub %%rsp, %%rax\n"
                     "or %%rcx, %%rax\n"
                     : "=a"(others) : : "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
                       "r14", "r15", "cc", "memory");
        EXPECT_EQ(others, 0);
    }
    release();
}

TEST_F(AmxByHand, MachineKeepsItsName) {
    EXPECT_NE(kernels::cpu_brand(), "unknown CPU");
    EXPECT_FALSE(kernels::cpu_brand().empty());
}

using AmxByHandDeathTest = AmxByHand;

template <class Change>
void use_changed(const Change& change) {
    Configuration c = configuration({4, 8, 16});
    change(c);
    use(c);
}

TEST_F(AmxByHandDeathTest, WrongConfigurationsAreRefused) {
    if (in_hardware()) GTEST_SKIP() << "for machines without AMX in hardware";
    EXPECT_DEATH(use_changed([](auto& c) { c.palette = 2; }), "amx_by_hand: ldtilecfg at 0x.* palette 2");
    EXPECT_DEATH(use_changed([](auto& c) { c.palette = 0; }), "palette 0 with tiles");
    EXPECT_DEATH(use_changed([](auto& c) { c.reserved[3] = 1; }), "reserved bytes that are not 0");
    EXPECT_DEATH(use_changed([](auto& c) { c.row_bytes[8] = 4; }), "reserved bytes that are not 0");
    EXPECT_DEATH(use_changed([](auto& c) { c.rows[15] = 1; }), "reserved bytes that are not 0");
    EXPECT_DEATH(use_changed([](auto& c) { c.rows[2] = 17; }), "tile 2 of 17 rows, expected 16 at most");
    EXPECT_DEATH(use_changed([](auto& c) { c.row_bytes[1] = 68; }), "tile 1 of rows of 68 bytes, expected 64 at most");
    EXPECT_DEATH(use_changed([](auto& c) { c.rows[3] = 1; }), "tile 3 of 1 rows of 0 bytes");
    EXPECT_DEATH(use_changed([](auto& c) { c.row_bytes[0] = 0; }), "tile 0 of 4 rows of 0 bytes");
}

TEST_F(AmxByHandDeathTest, TilesWithoutAShapeAreRefused) {
    if (in_hardware()) GTEST_SKIP() << "for machines without AMX in hardware";
    EXPECT_DEATH(zero<0>(), "tilezero at 0x.*: no configuration was loaded");
    alignas(64) uint8_t to[1024];
    use(configuration({4, 8, 16}));
    EXPECT_DEATH(store<7>(to, 64), "tilestored at 0x.*: tile 7 has no rows");
    EXPECT_DEATH(load<7>(to, 64), "tileloadd at 0x.*: tile 7 has no rows");
    EXPECT_DEATH((multiply_add<0, 1, 7>()), "tdpbf16ps at 0x.*: tile 7 has no rows");
    release();
    EXPECT_DEATH(multiply_ss(), "tdpbssd at 0x.*: no configuration was loaded");
}

TEST_F(AmxByHandDeathTest, ProductsOfShapesThatDoNotFitAreRefused) {
    if (in_hardware()) GTEST_SKIP() << "for machines without AMX in hardware";
    const auto multiply_changed = [](const auto& change) {
        use_changed(change);
        multiply_pairs();
    };
    EXPECT_DEATH(multiply_changed([](auto& c) { c.rows[0] = 5; }), "has 5 rows, but tile 1 has 4");
    EXPECT_DEATH(multiply_changed([](auto& c) { c.row_bytes[0] = 60; }), "of 60 bytes, but those of tile 2 have 64");
    EXPECT_DEATH(multiply_changed([](auto& c) { c.rows[2] = 9; }), "rows of 32 bytes, but tile 2 has 9 rows");
    EXPECT_DEATH(multiply_changed([](auto& c) { c.row_bytes[1] = 30; }), "rows of 30 bytes, expected a multiple of 4");
    use(configuration({4, 4, 4}));
    const auto square = [] { asm volatile(".byte 0xc4, 0xe2, 0x72, 0x5c, 0xc1"); }; // no assembler takes it
    EXPECT_DEATH(square(), "tdpbf16ps at 0x.*: tiles 0, 1 and 1 are not three");
    release();
}

TEST_F(AmxByHandDeathTest, OtherFaultsStayTheProgramsOwn) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "for builds without AddressSanitizer";
#endif
    EXPECT_EXIT(asm volatile("ud2"), testing::KilledBySignal(SIGILL), "");
    EXPECT_EXIT(asm volatile("int3"), testing::KilledBySignal(SIGTRAP), "");
    EXPECT_EXIT(*static_cast<volatile int*>(nullptr) = 1, testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(std::raise(SIGILL), testing::KilledBySignal(SIGILL), "");
    EXPECT_EXIT(std::raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), "");
    Configuration c = configuration({4, 4, 4});
    use(c);
    EXPECT_EXIT(load<0>(nullptr, 64), testing::KilledBySignal(SIGSEGV), "");
    release();
}

volatile std::sig_atomic_t faults = 0;

TEST_F(AmxByHand, HandlersOfTheProgramSeeTheirFaultsAlone) {
    struct sigaction mine = {}, before = {};
    mine.sa_flags = SA_SIGINFO;
    mine.sa_sigaction = [](int, siginfo_t*, void* context) {
        faults = faults + 1;
        static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2; // ud2 has two bytes
    };
    ASSERT_EQ(sigaction(SIGILL, &mine, &before), 0);
    const auto violations = std::signal(SIGSEGV, [](int) { faults = 100; });
    asm volatile("ud2");
    use(configuration({4, 4, 4}));
    zero<0>();
    release();
    EXPECT_EQ(kernels::available_isas().back(), kernels::Isa::Amx);
    EXPECT_EQ(faults, 1);
    struct sigaction now = {};
    ASSERT_EQ(sigaction(SIGILL, &before, &now), 0);
    EXPECT_EQ(now.sa_sigaction, mine.sa_sigaction);
    EXPECT_EQ(before.sa_handler, SIG_DFL);
    std::signal(SIGSEGV, violations);
}

TEST_F(AmxByHand, ChildrenHaveTilesToo) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        use(configuration({4, 4, 4}));
        release();
        _exit(kernels::available_isas().back() == kernels::Isa::Amx ? 3 : 4);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
}

}  // namespace
}  // namespace patchbay::amx_by_hand::by_hand_test
