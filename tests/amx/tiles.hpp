// The tile registers of a thread, and the effects of AMX instructions on them, by Intel's manual, without the hardware.
#pragma once
#include <cstddef>
#include <cstdint>

namespace patchbay::amx_by_hand {

constexpr int kTiles = 8, kMaxRows = 16, kMaxRowBytes = 64;

struct Configuration { // in memory, too
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16]; // those from kTiles on are 0
    uint8_t rows[16];
};
static_assert(sizeof(Configuration) == 64);

struct Tile {
    alignas(64) uint8_t rows[kMaxRows][kMaxRowBytes];
};

struct Tiles { // all 0: as after tilerelease
    Configuration configuration; // palette 0: none
    Tile tile[kTiles];
};

// Each of these refuses what hardware refuses; see refusal.hpp.
void load_configuration(Tiles& tiles, const void* from);
void store_configuration(const Tiles& tiles, void* to);
void release(Tiles& tiles);
void zero(Tiles& tiles, int tile);
void load(Tiles& tiles, int tile, const uint8_t* from, int64_t stride);
void store(const Tiles& tiles, int tile, uint8_t* to, int64_t stride);

enum class Product { kBf16, kSignedSigned, kSignedUnsigned, kUnsignedSigned, kUnsignedUnsigned };

// sum (rows, columns) += rows (rows, depth) · panel (depth, columns); an element of depth is a pair of bf16 or four
// bytes.
void multiply_add(Tiles& tiles, Product product, int sum, int rows, int panel);

struct ProductShape {
    int rows, depth; // depth: elements of 4 bytes
};

// Of shapes that fit. In products.cpp, which is compiled for AVX-512 and shares no inline function with other files.
void multiply_add_bf16(Tile& sum, const Tile& rows, const Tile& panel, const ProductShape& shape);
void multiply_add_bytes(Tile& sum, const Tile& rows, const Tile& panel, const ProductShape& shape, bool signed_rows,
                        bool signed_panel);

}  // namespace patchbay::amx_by_hand
