#include "model/gpt2_tensors.h"

#include "model/parameters.h"

namespace bamtrain {

std::vector<Gpt2Tensor> gpt2_tensors(int64_t layers, bool tied) {
  std::vector<Gpt2Tensor> out;
  const auto norm = [&out](const std::string& theirs, const std::string& ours) {
    for (const char* member : {".weight", ".bias"})
      out.push_back({theirs + member, {ours + member}});
  };
  const auto linear = [&out](const std::string& theirs, const std::vector<std::string>& ours) {
    for (const char* member : {".weight", ".bias"}) {
      Gpt2Tensor t = {theirs + member, {}, member == std::string(".weight")};
      for (const std::string& name : ours) t.parts.push_back(name + member);
      out.push_back(std::move(t));
    }
  };
  out.push_back({"transformer.wte.weight", {"model.embed_tokens.weight"}});
  out.push_back({"transformer.wpe.weight", {"model.embed_positions.weight"}});
  for (int64_t l = 0; l < layers; ++l) {
    const std::string theirs = "transformer.h." + std::to_string(l) + ".", ours = layer_prefix(l);
    const std::string attention = ours + "self_attn.";
    norm(theirs + "ln_1", ours + "input_layernorm");
    linear(theirs + "attn.c_attn",
           {attention + "q_proj", attention + "k_proj", attention + "v_proj"});
    linear(theirs + "attn.c_proj", {attention + "o_proj"});
    norm(theirs + "ln_2", ours + "post_attention_layernorm");
    linear(theirs + "mlp.c_fc", {ours + "mlp.up_proj"});
    linear(theirs + "mlp.c_proj", {ours + "mlp.down_proj"});
  }
  norm("transformer.ln_f", "model.norm");
  if (!tied) out.push_back({"lm_head.weight", {"lm_head.weight"}});
  return out;
}

std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns) {
  std::vector<float> out(matrix.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      out[static_cast<size_t>(c * rows + r)] = matrix[static_cast<size_t>(r * columns + c)];
    }
  }
  return out;
}

}  // namespace bamtrain
