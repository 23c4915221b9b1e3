#include "data/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <bitset>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "data/sentencepiece_specification.h"
#include "data/tokenizer_cache.h"

namespace bamtrain {
namespace {

constexpr uint32_t kSpaceSign = 0x2581;  // stands for a space in vocabulary entries

Error damaged(const std::string& path, const std::string& found) {
  return Error(ExitCode::data, path, "a SentencePiece model", found,
               "give the tokenizer's original .model file");
}

/// The character at text[at] and its number of bytes. An invalid byte counts as one character past
/// Unicode's last: SentencePiece also skips a single byte there.
std::pair<uint32_t, size_t> character_at(std::string_view text, size_t at) {
  const uint32_t first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const Utf8Character c = utf8_character_at(text, at);
  if (!c.valid) return {0x110000 + first, 1};
  return {c.code == kSpaceSign ? ' ' : c.code, c.bytes};
}

}  // namespace

class SentencePieceModel::Processor : public sentencepiece::SentencePieceProcessor {};

/// Pairs of characters that are adjacent in some vocabulary entry. Text may be split between all
/// others.
class SentencePieceModel::SafeCuts {
 public:
  SafeCuts(const Processor& model, bool dummy_prefix) : dummy_prefix_(dummy_prefix) {
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

  /// True if no vocabulary entry has kLead next to an ASCII character.
  bool usable() const { return lead_ok_; }
  bool dummy_prefix() const { return dummy_prefix_; }
  size_t lead_ids() const { return lead_ids_; }

  /// Whether a merge might join a symbol that ends in `a` to one that begins with `b`.
  bool joined(uint32_t a, uint32_t b) const {
    if ((a | b) < 128) return ascii_[a * 128 + b];
    return *const_cast<SafeCuts*>(this)->slot(key(a, b)) != 0;
  }

  /// Prepended to a stretch that is encoded alone: it takes the leading position, where
  /// SentencePiece may add a space of its own. Its ids are dropped afterwards.
  static constexpr char kLead = '\x01';

 private:
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }
  /// The slot of `k`, or the empty slot for it (open addressing; never full).
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

SentencePieceModel::SentencePieceModel(const std::string& bytes, const std::string& path) {
  const auto specification = read_sentencepiece_specification(bytes);
  if (!specification) throw damaged(path, "a file that is not a protocol buffer");
  processor_ = std::make_unique<Processor>();
  const auto status = processor_->LoadFromSerializedProto(bytes);
  if (!status.ok()) throw damaged(path, status.ToString());
  facts_.vocab = processor_->GetPieceSize();
  if (facts_.vocab < 1) throw damaged(path, "an empty vocabulary");
  facts_.bos = processor_->bos_id();
  facts_.eos = processor_->eos_id();
  facts_.pad = processor_->pad_id();
  facts_.unknown = processor_->unk_id();
  facts_.user_defined = specification->user_defined;
  facts_.adds_space = specification->dummy_prefix;
  drops_first_space_ = specification->dummy_prefix || specification->squeezes_spaces;
  if (specification->cuttable()) {
    cuts_ = std::make_unique<SafeCuts>(*processor_, specification->dummy_prefix);
    if (!cuts_->usable()) cuts_.reset();
  }
  facts_.exact = cuts_ != nullptr;
}
SentencePieceModel::~SentencePieceModel() = default;

void SentencePieceModel::encode(std::string_view text, TokenizerCache* cache,
                                std::vector<int32_t>* ids) const {
  if (!cuts_) return encode_whole(text, ids);
  if (text.empty()) return;
  std::string first;  // prefix of the first stretch: SentencePiece's dummy prefix
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

void SentencePieceModel::encode_stretch(std::string_view text, TokenizerCache* cache,
                                        std::vector<int32_t>* ids) const {
  std::optional<TokenizerCache::Place> place;
  if (cache && TokenizerCache::keeps(text)) {
    place = cache->place_of(text);
    if (place->read(ids)) return;
  }
  std::string led(1, SafeCuts::kLead);
  led.append(text);
  std::vector<int> found;
  const auto status = processor_->Encode(led, &found);
  if (!status.ok() || found.size() <= cuts_->lead_ids()) {
    throw Error::fault(ExitCode::internal, "SentencePiece",
                       "cannot encode a text: " + (status.ok() ? "no ids" : status.ToString()),
                       "report the text that caused this");
  }
  const auto of_text = std::span(found).subspan(cuts_->lead_ids());
  ids->insert(ids->end(), of_text.begin(), of_text.end());
  if (place) place->write(of_text);
}

void SentencePieceModel::encode_whole(std::string_view text, std::vector<int32_t>* ids) const {
  while (!text.empty()) {
    size_t n = text.size();
    if (n > kLongestStretch) {
      n = text.rfind('\n', kLongestStretch - 1) + 1;  // npos + 1 == 0
      if (n == 0) n = text.rfind(' ', kLongestStretch - 1) + 1;
      if (n == 0) n = utf8_boundary_before(text, kLongestStretch);
    }
    std::vector<int> found;
    const auto status = processor_->Encode(text.substr(0, n), &found);
    if (!status.ok()) {
      throw Error::fault(ExitCode::internal, "SentencePiece",
                         "cannot encode a text: " + status.ToString(),
                         "report the text that caused this");
    }
    ids->insert(ids->end(), found.begin(), found.end());
    text.remove_prefix(n);
  }
}

std::string SentencePieceModel::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  const auto status = processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) {
    throw Error::fault(ExitCode::internal, "SentencePiece",
                       "cannot decode ids: " + status.ToString(),
                       "report the ids that caused this");
  }
  return text;
}

std::string SentencePieceModel::bytes(int32_t id, bool first) const {
  const std::string spelled = piece(id);
  if (processor_->IsControl(id)) return "";
  if (processor_->IsUnknown(id)) return decode({id});
  if (processor_->IsByte(id)) {  // "<0x0A>"
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

TokenKind SentencePieceModel::kind(int32_t id) const {
  if (processor_->IsUnknown(id)) return TokenKind::unknown;
  if (processor_->IsControl(id)) return TokenKind::control;
  if (processor_->IsByte(id)) return TokenKind::byte;
  return processor_->IsUnused(id) ? TokenKind::unused : TokenKind::normal;
}

float SentencePieceModel::score(int32_t id) const { return processor_->GetScore(id); }

std::string SentencePieceModel::piece(int32_t id) const { return processor_->IdToPiece(id); }

}  // namespace bamtrain
