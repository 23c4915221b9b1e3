#include "inspect/map_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "inspect/colour_bar.h"
#include "inspect/map_axes.h"
#include "report/markup.h"

namespace bamtrain {

namespace {

// Colour indices: 0 if not visible, then kLevels steps of opacity. Signed values use half of them
// on either side of zero.
constexpr int kLevels = 255, kZero = 128;
constexpr uint32_t kBlue = 0x2e97de, kOrange = 0xe07010, kUnseen = 0x80808030;

std::vector<uint32_t> palette(MapColours colours) {
  std::vector<uint32_t> rgba(256, kUnseen);
  for (int n = 1; n <= kLevels; ++n) {
    const bool weights = colours == MapColours::weights;
    const double size = weights ? (n - 1) / 254.0 : std::abs(n - kZero) / 127.0;
    const uint32_t colour = weights || n < kZero ? kBlue : kOrange;
    rgba[static_cast<size_t>(n)] = colour << 8 | static_cast<uint32_t>(std::lround(255 * size));
  }
  return rgba;
}

uint8_t index_of(double x, MapColours colours, double most) {
  if (std::isnan(x)) return 0;
  const double share = most > 0 ? std::clamp(x / most, -1.0, 1.0) : 0;
  if (colours == MapColours::signs) return static_cast<uint8_t>(kZero + std::lround(127 * share));
  return static_cast<uint8_t>(1 + std::lround(254 * std::sqrt(std::max(share, 0.0))));
}

// --- PNG (ISO/IEC 15948) ------------------------------------------------------------------------

void add_u32(std::string& to, uint32_t x) {
  for (const int shift : {24, 16, 8, 0}) to += static_cast<char>(x >> shift & 0xFF);
}

uint32_t crc32(const std::string& bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table;
    for (uint32_t n = 0; n < 256; ++n) {
      uint32_t c = n;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320U ^ c >> 1 : c >> 1;
      table[n] = c;
    }
    return table;
  }();
  uint32_t c = 0xFFFFFFFFU;
  for (const char byte : bytes) c = kTable[(c ^ static_cast<uint8_t>(byte)) & 0xFF] ^ c >> 8;
  return ~c;
}

void add_chunk(std::string& to, const std::string& type, const std::string& data) {
  add_u32(to, static_cast<uint32_t>(data.size()));
  to += type + data;
  add_u32(to, crc32(type + data));
}

/// zlib format (RFC 1950) with stored blocks (RFC 1951).
std::string stored(const std::string& bytes) {
  constexpr size_t kMostStored = 65535;
  std::string out = "\x78\x01";
  uint32_t a = 1, b = 0;  // Adler-32
  for (const char byte : bytes) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  for (size_t at = 0; at < bytes.size(); at += kMostStored) {
    const size_t size = std::min(kMostStored, bytes.size() - at);
    out += at + size == bytes.size() ? '\1' : '\0';
    for (const size_t x : {size, ~size}) {
      out += static_cast<char>(x & 0xFF);
      out += static_cast<char>(x >> 8 & 0xFF);
    }
    out += bytes.substr(at, size);
  }
  add_u32(out, b << 16 | a);
  return out;
}

// --- the page -----------------------------------------------------------------------------------

constexpr const char* kStyle = R"css(<style>
.map.large { grid-column: 1 / -1; max-width: max(40rem, min(100%, 90vh)); }
.picture { outline: 1px solid var(--rule); outline-offset: -1px; }
.map img { display: block; width: 100%; height: auto; image-rendering: pixelated; cursor: zoom-in;
  touch-action: pan-y; }
.map.large img { cursor: zoom-out; }
.map figcaption { font-size: 0.82rem; }
.map figcaption span { font-weight: 400; color: var(--soft); }
.map img:focus-visible { outline: 2px solid var(--k0); }
.map output { position: static; display: block; border: 0; padding: 0; max-width: none;
  font-size: 0.75rem; color: var(--ink); min-height: 2.9em; overflow-wrap: anywhere; }
.map output:empty { display: none; }
</style>
)css";

constexpr const char* kScript = R"js(
for (const img of document.querySelectorAll('.map img')) {
  const figure = img.closest('figure'), output = figure.querySelector('output');
  const rows = Number(img.dataset.rows), columns = Number(img.dataset.columns);
  const most = Number(img.dataset.most), signs = img.dataset.colours === 'signs';
  let pixels = null, at = [0, 0];
  const read = (row, column) => {
    if (!pixels) {
      const canvas = document.createElement('canvas');
      canvas.width = columns;
      canvas.height = rows;
      const context = canvas.getContext('2d', {willReadFrequently: true});
      context.drawImage(img, 0, 0);
      pixels = context.getImageData(0, 0, columns, rows).data;
    }
    const [r, g, b, a] = pixels.subarray(4 * (row * columns + column));
    if (r === g && g === b && a > 40) return null;
    if (!signs) return a * a / 65025 * most;
    return (r > b ? 1 : -1) * a / 255 * most;
  };
  const block = Math.ceil(prompt.length / rows);
  const named = n => {
    if (!img.dataset.tokens) return String(n);
    const first = n * block, last = Math.min(first + block, prompt.length) - 1;
    return first === last ? `${first} \u201c${prompt[first]}\u201d`
                          : `${first}\u2013${last} \u201c${prompt[first]}\u2026\u201d`;
  };
  const show = () => {
    const [row, column] = at, x = read(row, column);
    const place = img.dataset.tokens ? `${named(row)} \u2192 ${named(column)}`
                                     : `layer ${img.dataset.names.split(' ')[row]}, head ${column}`;
    output.textContent = place + ': ' + (x === null ? 'not seen'
        : img.dataset.unit + ' ' + x.toLocaleString('en-US', {maximumSignificantDigits: 2}));
  };
  img.addEventListener('pointermove', event => {
    const box = img.getBoundingClientRect();
    const part = (x, size, n) => Math.max(0, Math.min(n - 1, Math.floor(x / size * n)));
    at = [part(event.clientY - box.top, box.height, rows),
          part(event.clientX - box.left, box.width, columns)];
    show();
  });
  img.addEventListener('keydown', event => {
    const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    if (event.key === 'Enter') return figure.classList.toggle('large');
    if (!move[event.key]) return;
    event.preventDefault();
    const [y, x] = move[event.key];
    at = [Math.max(0, Math.min(rows - 1, at[0] + y)), Math.max(0, Math.min(columns - 1, at[1] + x))];
    show();
  });
  img.addEventListener('pointerleave', () => { output.textContent = ''; });
  img.addEventListener('click', () => figure.classList.toggle('large'));
}
addEventListener('beforeprint', () => {
  for (const layer of document.querySelectorAll('details')) layer.open = true;
});
)js";

}  // namespace

double largest_size(const std::vector<float>& values) {
  double most = 0;
  for (const float x : values) {
    if (std::isfinite(x)) most = std::max(most, std::abs(static_cast<double>(x)));
  }
  return most;
}

std::vector<float> averaged(const std::vector<float>& values, const std::vector<float>& seen,
                            int64_t side, int64_t by) {
  const int64_t fewer = (side + by - 1) / by;
  std::vector<double> sum(static_cast<size_t>(fewer * fewer)), count(sum.size());
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t j = 0; j < side; ++j) {
      const auto field = static_cast<size_t>(i * side + j);
      const auto at = static_cast<size_t>(i / by * fewer + j / by);
      if (seen[field] == 0) continue;
      sum[at] += static_cast<double>(values[field]) * static_cast<double>(seen[field]);
      count[at] += static_cast<double>(seen[field]);
    }
  }
  std::vector<float> out(sum.size(), std::numeric_limits<float>::quiet_NaN());
  for (size_t n = 0; n < out.size(); ++n) {
    if (count[n] > 0) out[n] = static_cast<float>(sum[n] / count[n]);
  }
  return out;
}

std::string indexed_png(int64_t width, int64_t height, const std::vector<uint8_t>& pixels,
                        const std::vector<uint32_t>& rgba) {
  std::string head, colours, opacities, lines;
  add_u32(head, static_cast<uint32_t>(width));
  add_u32(head, static_cast<uint32_t>(height));
  head += {8, 3, 0, 0, 0};  // 8 bits, indexed; the only compression and filters; no interlacing
  for (const uint32_t c : rgba) {
    for (const int shift : {24, 16, 8}) colours += static_cast<char>(c >> shift & 0xFF);
    opacities += static_cast<char>(c & 0xFF);
  }
  for (int64_t y = 0; y < height; ++y) {
    lines += '\0';  // no filter
    lines.append(reinterpret_cast<const char*>(pixels.data()) + y * width,
                 static_cast<size_t>(width));
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  add_chunk(png, "IHDR", head);
  add_chunk(png, "PLTE", colours);
  add_chunk(png, "tRNS", opacities);
  add_chunk(png, "IDAT", stored(lines));
  add_chunk(png, "IEND", "");
  return png;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t n) {
      return at + n < bytes.size() ? static_cast<uint8_t>(bytes[at + n]) : 0U;
    };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (const int shift : {18, 12, 6, 0}) out += kDigits[three >> shift & 63];
    if (at + 2 >= bytes.size()) out.back() = '=';
    if (at + 1 >= bytes.size()) out[out.size() - 2] = '=';
  }
  return out;
}

namespace {

/// "layer 3" for each row.
std::vector<std::string> layer_names(const MapFigure& map) {
  std::vector<std::string> out;
  std::istringstream numbers(map.row_names);
  for (std::string layer; numbers >> layer;) out.push_back("layer " + layer);
  return out;
}

std::vector<std::string> head_names(const MapFigure& map) {
  std::vector<std::string> out;
  for (int64_t h = 0; h < map.columns; ++h) out.push_back(fmt::format("head {}", h));
  return out;
}

}  // namespace

std::string map_figure(const MapFigure& map) {
  require(map.rows >= 1 && map.columns >= 1 && map.rows <= 512 && map.columns <= 512 &&
              std::ssize(map.values) == map.rows * map.columns,
          "a matrix of 512 rows and columns at most");
  std::vector<uint8_t> pixels;
  for (const float x : map.values) pixels.push_back(index_of(x, map.colours, map.most));
  const bool signs = map.colours == MapColours::signs, tokens = map.row_names.empty();
  const double shared = map.shared > 0 ? map.shared : map.most;
  const std::string style = shared == map.most
                                ? ""
                                : fmt::format(" style=\"--shared: {:.4f}\"",
                                              shared_opacity(map.colours, map.most, shared));
  const std::string picture = fmt::format(
      "<div class=\"picture\"{}><img alt=\"{}, {}\" tabindex=\"0\" width=\"{}\" height=\"{}\" "
      "data-rows=\"{}\" data-columns=\"{}\" data-most=\"{:.9g}\" data-unit=\"{}\" "
      "data-colours=\"{}\"{} src=\"data:image/png;base64,{}\"></div>",
      style, escaped(map.title), escaped(map.unit), map.columns, map.rows, map.rows, map.columns,
      map.most, escaped(map.unit), signs ? "signs" : "weights",
      tokens ? " data-tokens=\"1\"" : fmt::format(" data-names=\"{}\"", escaped(map.row_names)),
      base64(indexed_png(map.columns, map.rows, pixels, palette(map.colours))));
  return fmt::format(
      "<figure class=\"map\"><figcaption>{} <span>{}</span></figcaption>{}{}<output></output>"
      "</figure>\n",
      escaped(map.title), escaped(map.note),
      !tokens     ? with_axes(picture, layer_names(map), head_names(map))
      : map.named ? with_token_axes(picture, map.rows)
                  : picture,
      map.bar);
}

std::string map_page_parts(const std::vector<std::string>& tokens) {
  std::string names = nlohmann::json(tokens).dump(-1, ' ', true);
  // "</script>" ends a script anywhere, even in a string.
  for (size_t at = 0; (at = names.find('<', at)) != std::string::npos;) {
    names.replace(at, 1, "\\u003c");
  }
  return axes_style(std::ssize(tokens)) + colour_bar_style() + kStyle + token_axes(tokens) +
         "<script>const prompt = " + names + ";\n" + kScript + "</script>\n";
}

}  // namespace bamtrain
