// The tests that judge mutants of the attention kernels (see mutants.py). They are small enough to
// run once per mutant.

#include "catch.h"
#include "kernels/attention_cases.h"

using namespace bamtrain;
using namespace bamtrain::test;

TEST_CASE("fused attention kernels of one head dimension agree with the plain ones in every form") {
  for (const AttentionForm& form : kEveryForm) {
    if (reads_content(bias_of(form.bias))) continue;  // not in the fused kernels
    for (const AttentionCase& c :
         {AttentionCase{2, 130, 2, 1}, AttentionCase{1, 161, 2, 1, true, 33}}) {
      INFO(text_of(c, 16, form));
      const AttentionValues x = attention_values<DeviceBf16>(c, 16);
      const Results plain = attention_on_engine<DeviceBf16>(Kernels::reference, c, 16, x, form);
      const Results fused = attention_on_engine<DeviceBf16>(Kernels::fused, c, 16, x, form);
      for (const auto& [name, p] : plain) {
        INFO(name);
        // Both round out and gradients to bf16; the fused kernels also round p and dz.
        CHECK(relative_error(fused.at(name), p) <
              (name == "lse" ? 1e-6 : 3 * kRoundoff<DeviceBf16>));
      }
    }
  }
}
