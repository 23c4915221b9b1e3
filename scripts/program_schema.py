"""What the program says of itself, for scripts that walk over all of it."""

import json


def mechanism_names(schema, kind):
    """Every prior, scale or normalizer, in the registry's order, by the text that bamtrain
    --print-schema writes."""
    model = json.loads(schema)["properties"]["model"]["properties"]
    return [m["properties"]["name"]["const"]
            for m in model["attention"]["properties"][kind]["oneOf"] if m["type"] == "object"]
