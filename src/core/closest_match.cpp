#include "core/closest_match.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace bamtrain {

namespace {

// No key is longer. Only this much of a longer word is compared, so a hostile file costs nothing.
constexpr size_t kLongestCompared = 64;

/// Names in other programs, and the names here.
constexpr std::pair<const char*, const char*> kMeant[] = {
    {"gpu", "cuda"},
    {"adam", "adamw"},
    {"float32", "fp32"},
    {"bfloat16", "bf16"},
    {"rotary", "rope"},
    {"hellaswag", "choice"},
    {"arc", "choice"},
    {"piqa", "choice"},
    {"lambada", "cloze"},
    {"ruler", "niah"},
    {"needle", "niah"},
    // Keys of nanoGPT, litgpt, torchtitan and transformers.
    {"learning_rate", "lr"},
    {"max_lr", "lr"},
    {"min_lr", "min_ratio"},
    {"beta1", "betas"},
    {"beta2", "betas"},
    {"grad_clip", "clip"},
    {"max_norm", "clip"},
    {"warmup_iters", "warmup_steps"},
    {"max_iters", "steps"},
    {"max_steps", "steps"},
    {"batch_size", "micro_batch"},
    {"micro_batch_size", "micro_batch"},
    {"global_batch_size", "tokens_per_step"},
    {"block_size", "sequence_length"},
    {"context_length", "sequence_length"},
    {"seq_len", "sequence_length"},
    {"max_seq_len", "sequence_length"},
    {"n_layer", "layers"},
    {"num_hidden_layers", "layers"},
    {"n_head", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"n_query_groups", "kv_heads"},
    {"n_embd", "width"},
    {"d_model", "width"},
    {"hidden_size", "width"},
    {"intermediate_size", "hidden"},
    {"vocab_size", "vocab"},
    {"tie_word_embeddings", "tied"},
    {"dtype", "precision"},
    {"positional_encoding", "prior"}};

std::string folded(const std::string& word) {
  std::string out = word.substr(0, kLongestCompared);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Whether `word` is `name`, or a prefix of it, with a typo or two.
bool is_slip(const std::string& word, const std::string& name) {
  const size_t longer = std::max(folded(word).size(), folded(name).size());
  const size_t most = std::max<size_t>(1, longer / 3);
  const size_t distance = edit_distance(word, name);
  if (distance <= most && (distance < longer || distance == 0)) return true;
  return word.size() >= 3 && word.size() < name.size() &&
         edit_distance(word, name.substr(0, word.size())) <= word.size() / 3;
}

}  // namespace

size_t edit_distance(const std::string& first, const std::string& second) {
  const std::string a = folded(first), b = folded(second);
  // Rows i - 2, i - 1 and i of the table of distances between prefixes.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string name_here(const std::string& word) {
  const auto found = std::ranges::find_if(
      kMeant, [&word](const auto& meant) { return folded(word) == meant.first; });
  return found == std::end(kMeant) ? "" : found->second;
}

std::string closest_match(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string own = name_here(word);
  if (std::ranges::find(candidates, own) != candidates.end()) return own;
  constexpr size_t kLettersOfBeginning = 3;
  const auto begins = std::ranges::find_if(candidates, [&word](const std::string& candidate) {
    const size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
    return letters >= kLettersOfBeginning && candidate.starts_with(word);
  });
  if (begins != candidates.end()) return *begins;
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (!is_slip(word, candidate)) continue;
    const size_t distance = edit_distance(word, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates,
                         const std::string& otherwise) {
  const std::string near = closest_match(word, candidates);
  return near.empty() ? otherwise : "did you mean " + near + "?";
}

}  // namespace bamtrain
