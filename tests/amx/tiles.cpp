#include "tiles.hpp"

#include <algorithm>
#include <cstring>

#include "refusal.hpp"

namespace patchbay::amx_by_hand {
namespace {

bool all_zero(const void* bytes, size_t count) {
    const auto* at = static_cast<const uint8_t*>(bytes);
    return std::all_of(at, at + count, [](uint8_t b) { return b == 0; });
}

void require_configured(const Tiles& tiles, int tile) {
    if (tiles.configuration.palette == 0) refuse("no configuration was loaded");
    if (tiles.configuration.rows[tile] == 0) refuse("tile %d has no rows in the configuration", tile);
}

}  // namespace

void load_configuration(Tiles& tiles, const void* from) {
    Configuration c;
    std::memcpy(&c, from, sizeof c);
    if (c.palette > 1) refuse("palette %d, expected 0 or 1", c.palette);
    if (c.palette == 0 && !all_zero(&c, sizeof c)) refuse("palette 0 with tiles that have a shape");
    // Hardware takes a row to begin with, after a load that was interrupted. Programs do not use it.
    if (c.start_row != 0) refuse("start row %d, expected 0", c.start_row);
    if (!all_zero(c.reserved, sizeof c.reserved) || !all_zero(c.row_bytes + kTiles, sizeof c.row_bytes / 2) ||
        !all_zero(c.rows + kTiles, sizeof c.rows / 2))
        refuse("reserved bytes that are not 0");
    for (int t = 0; t < kTiles; ++t) {
        const int rows = c.rows[t], bytes = c.row_bytes[t];
        if (rows > kMaxRows) refuse("tile %d of %d rows, expected %d at most", t, rows, kMaxRows);
        if (bytes > kMaxRowBytes) refuse("tile %d of rows of %d bytes, expected %d at most", t, bytes, kMaxRowBytes);
        if ((rows == 0) != (bytes == 0)) refuse("tile %d of %d rows of %d bytes: both or neither is 0", t, rows, bytes);
    }
    release(tiles);
    tiles.configuration = c;
}

void store_configuration(const Tiles& tiles, void* to) { std::memcpy(to, &tiles.configuration, sizeof(Configuration)); }

void release(Tiles& tiles) { std::memset(static_cast<void*>(&tiles), 0, sizeof tiles); }

void zero(Tiles& tiles, int tile) {
    require_configured(tiles, tile);
    std::memset(tiles.tile[tile].rows, 0, sizeof(Tile));
}

void load(Tiles& tiles, int tile, const uint8_t* from, int64_t stride) {
    require_configured(tiles, tile);
    const size_t bytes = tiles.configuration.row_bytes[tile];
    for (int r = 0; r < tiles.configuration.rows[tile]; ++r)
        std::memcpy(tiles.tile[tile].rows[r], from + r * stride, bytes);
}

void store(const Tiles& tiles, int tile, uint8_t* to, int64_t stride) {
    require_configured(tiles, tile);
    const size_t bytes = tiles.configuration.row_bytes[tile];
    for (int r = 0; r < tiles.configuration.rows[tile]; ++r)
        std::memcpy(to + r * stride, tiles.tile[tile].rows[r], bytes);
}

void multiply_add(Tiles& tiles, Product product, int sum, int rows, int panel) {
    if (sum == rows || sum == panel || rows == panel) refuse("tiles %d, %d and %d are not three", sum, rows, panel);
    for (const int t : {sum, rows, panel}) {
        require_configured(tiles, t);
        if (tiles.configuration.row_bytes[t] % 4)
            refuse("tile %d has rows of %d bytes, expected a multiple of 4", t, tiles.configuration.row_bytes[t]);
    }
    const auto rows_of = [&](int t) { return int(tiles.configuration.rows[t]); };
    const auto bytes_of = [&](int t) { return int(tiles.configuration.row_bytes[t]); };
    if (rows_of(sum) != rows_of(rows))
        refuse("the sum, tile %d, has %d rows, but tile %d has %d", sum, rows_of(sum), rows, rows_of(rows));
    if (bytes_of(sum) != bytes_of(panel))
        refuse("the sum, tile %d, has rows of %d bytes, but those of tile %d have %d", sum, bytes_of(sum), panel,
               bytes_of(panel));
    if (bytes_of(rows) != rows_of(panel) * 4)
        refuse("tile %d has rows of %d bytes, but tile %d has %d rows of four of depth", rows, bytes_of(rows), panel,
               rows_of(panel));
    const ProductShape shape{rows_of(sum), rows_of(panel)};
    Tile &to = tiles.tile[sum], &left = tiles.tile[rows], &right = tiles.tile[panel];
    if (product == Product::kBf16) return multiply_add_bf16(to, left, right, shape);
    const bool signed_rows = product == Product::kSignedSigned || product == Product::kSignedUnsigned;
    const bool signed_panel = product == Product::kSignedSigned || product == Product::kUnsignedSigned;
    multiply_add_bytes(to, left, right, shape, signed_rows, signed_panel);
}

}  // namespace patchbay::amx_by_hand
