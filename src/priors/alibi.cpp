#include "priors/alibi.h"

namespace bamtrain {

PriorInfo alibi_prior() {
  PriorInfo p;
  p.name = "alibi";
  p.formula = "b = -m_h d, m_h = 2^(-8h/H)";
  p.family = table_family<Alibi>();
  return p;
}

}  // namespace bamtrain
