#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/input_file.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "data/sentencepiece_specification.h"

namespace bamtrain {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{1} << 28;  // the largest in use have a few million
constexpr uint32_t kSpaceSign = 0x2581;               // stands for a space in pieces

Error damaged(const std::string& path, const std::string& found) {
  return Error(ExitCode::data, path, "a SentencePiece model", found,
               "give the tokenizer's own .model file, undamaged");
}

std::string read_model_file(const std::string& path) {
  const InputFile file(path, ExitCode::io, "check the path");
  if (file.bytes() == 0) throw damaged(path, "an empty file");
  if (file.bytes() > kMaxModelBytes) {
    throw damaged(path, "a file of more than " + std::to_string(kMaxModelBytes) + " bytes");
  }
  return file.text(kMaxModelBytes);
}

/// The character at text[at], and how many bytes it takes. A byte that begins no valid sequence is
/// a character of its own, past the last of Unicode: SentencePiece, too, passes over one byte then.
std::pair<uint32_t, size_t> character_at(std::string_view text, size_t at) {
  const uint32_t first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const Utf8Character c = utf8_character_at(text, at);
  if (!c.valid) return {0x110000 + first, 1};
  return {c.code == kSpaceSign ? ' ' : c.code, c.bytes};
}

}  // namespace

class Tokenizer::Model : public sentencepiece::SentencePieceProcessor {};

/// Which characters stand side by side in some piece. Between all others text may be cut.
class Tokenizer::SafeCuts {
 public:
  SafeCuts(const Model& model, bool dummy_prefix) : dummy_prefix_(dummy_prefix) {
    std::vector<uint64_t> wide;
    for (int id = 0; id < model.GetPieceSize(); ++id) {
      if (model.IsControl(id) || model.IsUnknown(id) || model.IsByte(id)) continue;
      const std::string& piece = model.IdToPiece(id);
      uint32_t before = 0;
      for (size_t at = 0; at < piece.size();) {
        const auto [c, n] = character_at(piece, at);
        if (at > 0 && (before | c) < 128) ascii_.set(before * 128 + c);
        if (at > 0 && (before | c) >= 128) wide.push_back(key(before, c));
        before = c;
        at += n;
      }
    }
    size_t size = 16;
    while (size < 4 * wide.size()) size *= 2;
    wide_.resize(size);
    for (uint64_t k : wide) *slot(k) = k;
    std::vector<int> lead;
    lead_ok_ = model.Encode(std::string(1, kLead), &lead).ok();
    for (uint32_t c = 0; c < 128; ++c)
      lead_ok_ = lead_ok_ && !joined(kLead, c) && !joined(c, kLead);
    lead_ids_ = lead.size();
  }

  /// No piece holds kLead beside another character.
  bool usable() const { return lead_ok_; }
  bool dummy_prefix() const { return dummy_prefix_; }
  size_t lead_ids() const { return lead_ids_; }

  /// Whether a merge might join a symbol that ends in `a` to one that begins with `b`.
  bool joined(uint32_t a, uint32_t b) const {
    if ((a | b) < 128) return ascii_[a * 128 + b];
    return *const_cast<SafeCuts*>(this)->slot(key(a, b)) != 0;
  }

  /// Goes before a stretch that is encoded alone: it takes the place at the start, where
  /// SentencePiece may add a space of its own. Its ids are then dropped.
  static constexpr char kLead = '\x01';

 private:
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }
  /// Where `k` is, or the empty place where it would be (open addressing; never full).
  uint64_t* slot(uint64_t k) {
    size_t i = (k * 0x9E3779B97F4A7C15u) >> 32 & (wide_.size() - 1);
    while (wide_[i] != 0 && wide_[i] != k) i = (i + 1) & (wide_.size() - 1);
    return &wide_[i];
  }

  std::bitset<128 * 128> ascii_;
  std::vector<uint64_t> wide_;  // pairs with a character past ASCII
  bool dummy_prefix_;
  bool lead_ok_ = false;
  size_t lead_ids_ = 0;
};

/// One cache line, a seqlock (Boehm 2012): the first word changes before and after the others do.
/// It holds a version with a bit that says "being written", the number of ids and the first of
/// them; then come the other ids and the key: the stretch, padded with zeros, its length in the
/// last byte.
class alignas(64) Tokenizer::Cache::Slot {
 public:
  static constexpr size_t kTextBytes = 23;
  static constexpr size_t kIds = 9;
  using Key = std::array<uint64_t, 3>;
  static_assert(sizeof(Key) == kTextBytes + 1);

  static Key key_of(std::string_view text) {
    char bytes[kTextBytes + 1] = {};
    std::memcpy(bytes, text.data(), text.size());
    bytes[kTextBytes] = static_cast<char>(text.size());
    Key k;
    std::memcpy(k.data(), bytes, sizeof k);
    return k;
  }

  /// Appends the ids of `key`; false where the slot holds another, or is being written.
  bool read(const Key& key, std::vector<int32_t>* ids) const {
    const uint64_t first = words_[0].load(std::memory_order_acquire);
    if ((first & kBusy) != 0) return false;
    for (size_t k = 0; k < key.size(); ++k) {
      if (words_[kKey + k].load(std::memory_order_relaxed) != key[k]) return false;
    }
    std::array<uint64_t, kKey> found = {first};
    for (size_t w = 1; w < kKey; ++w) found[w] = words_[w].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (words_[0].load(std::memory_order_relaxed) != first) return false;
    const size_t count = first & kCount;
    for (size_t i = 0; i < count; ++i) {
      // Two to a word, the first of all in the upper half of the first word.
      const size_t half = i + 1;
      ids->push_back(static_cast<int32_t>(found[half / 2] >> (half % 2 * 32)));
    }
    return true;
  }

  void write(const Key& key, const int* ids, size_t count) {
    uint64_t first = words_[0].load(std::memory_order_relaxed);
    if ((first & kBusy) != 0 ||
        !words_[0].compare_exchange_strong(first, first | kBusy, std::memory_order_relaxed)) {
      return;
    }
    std::atomic_thread_fence(std::memory_order_release);
    std::array<uint64_t, kKey> now = {};
    for (size_t i = 0; i < count; ++i) {
      const size_t half = i + 1;
      now[half / 2] |= uint64_t{static_cast<uint32_t>(ids[i])} << (half % 2 * 32);
    }
    for (size_t w = 1; w < kKey; ++w) words_[w].store(now[w], std::memory_order_relaxed);
    for (size_t k = 0; k < key.size(); ++k) {
      words_[kKey + k].store(key[k], std::memory_order_relaxed);
    }
    const uint64_t version = (first + kVersion) & kVersions;
    words_[0].store(now[0] | version | count, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kCount = 15, kBusy = 16, kVersion = 32;
  static constexpr uint64_t kVersions = 0xFFFFFFE0u;
  static constexpr size_t kKey = 5;  // words before the key

  std::array<std::atomic<uint64_t>, 8> words_ = {};
};

Tokenizer::Cache::Cache(size_t slots) : size_(slots), slots_(new Slot[slots]) {
  static_assert(sizeof(Slot) == 64);
  require(std::has_single_bit(slots), "a number of slots that is a power of two");
}
Tokenizer::Cache::~Cache() = default;

Tokenizer::Cache::Slot& Tokenizer::Cache::slot_of(const Slot::Key& key) const {
  uint64_t h = (key[0] ^ 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  h = (h ^ h >> 32 ^ key[1]) * 0x94D049BB133111EBu;
  h = (h ^ h >> 29 ^ key[2]) * 0xD6E8FEB86659FD93u;
  return slots_[(h >> 32) & (size_ - 1)];
}

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::open(const std::string& path) {
  const std::string bytes = read_model_file(path);
  const auto specification = read_sentencepiece_specification(bytes);
  if (!specification) throw damaged(path, "bytes that are no protocol buffer");
  Tokenizer t;
  t.model_ = std::make_unique<Model>();
  const auto status = t.model_->LoadFromSerializedProto(bytes);
  if (!status.ok()) throw damaged(path, status.ToString());
  t.sha256_ = sha256_hex(bytes);
  t.vocab_ = t.model_->GetPieceSize();
  t.bos_ = t.model_->bos_id();
  t.eos_ = t.model_->eos_id();
  t.pad_ = t.model_->pad_id();
  t.unknown_ = t.model_->unk_id();
  t.has_user_defined_ = specification->user_defined;
  t.adds_space_ = specification->dummy_prefix;
  if (t.vocab_ < 1) throw damaged(path, "a model without pieces");
  t.drops_first_space_ = specification->dummy_prefix || specification->squeezes_spaces;
  if (specification->cuttable()) {
    t.cuts_ = std::make_unique<SafeCuts>(*t.model_, specification->dummy_prefix);
    if (!t.cuts_->usable()) t.cuts_.reset();
  }
  return t;
}

bool Tokenizer::begins_like_model(const std::string& path) {
  try {
    const InputFile file(path, ExitCode::io, "check the path");
    if (file.bytes() < 4 || file.bytes() > kMaxModelBytes) return false;
    // The first piece, a message whose first field is its text: each a tag and a length.
    std::array<char, 3> start;
    file.read(0, start.data(), start.size());
    constexpr char kFirstField = '\x0A';
    return start[0] == kFirstField && start[2] == kFirstField;
  } catch (const Error&) {
    return false;
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, nullptr, &ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, Cache* cache, std::vector<int32_t>* ids) const {
  if (!cuts_) return encode_whole(text, ids);
  if (text.empty()) return;
  std::string first;  // of the stretch that SentencePiece's own leading space begins
  uint32_t before = 0;
  if (cuts_->dummy_prefix()) {
    first = " ";
    before = ' ';
  }
  size_t begin = 0;
  const auto emit = [&](size_t end) {
    if (first.empty()) {
      if (end > begin) encode_stretch(text.substr(begin, end - begin), cache, ids);
    } else {
      encode_stretch(first.append(text.substr(begin, end - begin)), cache, ids);
      first.clear();
    }
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const auto [c, n] = character_at(text, at);
    if (!cuts_->joined(before, c) || at + n - begin > kLongestStretch) emit(at);
    before = c;
    at += n;
  }
  emit(text.size());
}

void Tokenizer::encode_stretch(std::string_view text, Cache* cache,
                               std::vector<int32_t>* ids) const {
  Cache::Slot* slot = nullptr;
  Cache::Slot::Key key{};
  if (cache && text.size() <= Cache::Slot::kTextBytes) {
    key = Cache::Slot::key_of(text);
    slot = &cache->slot_of(key);
    if (slot->read(key, ids)) return;
  }
  std::string led(1, SafeCuts::kLead);
  led.append(text);
  std::vector<int> found;
  const auto status = model_->Encode(led, &found);
  if (!status.ok() || found.size() <= cuts_->lead_ids()) {
    throw Error(ExitCode::internal, "SentencePiece", "ids for every text",
                status.ok() ? "none" : status.ToString(), "report the text that did this");
  }
  const auto begin = found.begin() + static_cast<std::ptrdiff_t>(cuts_->lead_ids());
  ids->insert(ids->end(), begin, found.end());
  const size_t count = found.size() - cuts_->lead_ids();
  if (slot && count <= Cache::Slot::kIds) slot->write(key, &*begin, count);
}

void Tokenizer::encode_whole(std::string_view text, std::vector<int32_t>* ids) const {
  while (!text.empty()) {
    size_t n = text.size();
    if (n > kLongestStretch) {
      n = text.rfind('\n', kLongestStretch - 1) + 1;  // npos + 1 == 0
      if (n == 0) n = text.rfind(' ', kLongestStretch - 1) + 1;
      if (n == 0) n = utf8_boundary_before(text, kLongestStretch);
    }
    std::vector<int> found;
    const auto status = model_->Encode(text.substr(0, n), &found);
    if (!status.ok()) {
      throw Error(ExitCode::internal, "SentencePiece", "ids for every text", status.ToString(),
                  "report the text that did this");
    }
    ids->insert(ids->end(), found.begin(), found.end());
    text.remove_prefix(n);
  }
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  for (int32_t id : ids) piece(id);
  std::string text;
  const auto status = model_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) {
    throw Error(ExitCode::internal, "SentencePiece", "a text for every list of ids",
                status.ToString(), "report the ids that did this");
  }
  return text;
}

std::string Tokenizer::bytes(int32_t id, bool first) const {
  const std::string spelled = piece(id);
  if (model_->IsControl(id)) return "";
  if (model_->IsUnknown(id)) return decode({id});
  if (model_->IsByte(id)) {  // "<0x0A>"
    return {static_cast<char>(std::stoi(spelled.substr(3, 2), nullptr, 16))};
  }
  constexpr std::string_view kSpace = "\xE2\x96\x81";
  std::string text;
  for (size_t at = 0; at < spelled.size();) {
    const bool space = spelled.compare(at, kSpace.size(), kSpace) == 0;
    text += space ? ' ' : spelled[at];
    at += space ? kSpace.size() : 1;
  }
  if (first && drops_first_space_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

Tokenizer::Kind Tokenizer::kind(int32_t id) const {
  check_id(id);
  if (model_->IsUnknown(id)) return Kind::unknown;
  if (model_->IsControl(id)) return Kind::control;
  if (model_->IsByte(id)) return Kind::byte;
  return model_->IsUnused(id) ? Kind::unused : Kind::normal;
}

float Tokenizer::score(int32_t id) const {
  check_id(id);
  return model_->GetScore(id);
}

std::string Tokenizer::piece(int32_t id) const {
  check_id(id);
  return model_->IdToPiece(id);
}

void Tokenizer::check_id(int32_t id) const {
  if (id >= 0 && id < vocab_) return;
  throw Error(ExitCode::data, "token id " + std::to_string(id),
              "an id below the vocabulary of " + std::to_string(vocab_), std::to_string(id),
              "use the tokenizer that made these tokens");
}

}  // namespace bamtrain
